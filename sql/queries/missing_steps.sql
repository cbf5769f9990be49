-- Which steps are missing in the logs?
-- A step is missing where a run has none between its first and its last, at its stride, as mart_run_health counts it.
-- test: count(*) = 0
-- planted: count(*) = 1 and min(first_missing) = 20 and max(last_missing) = 21 and sum(missing) = 2
with steps as (
    select
        run_id,
        step_axis,
        step,
        lead(step) over (
            partition by run_id
            order by step
        ) as next_step
    from dim_step
    where is_current and step_axis = 'step'
),

gap_counts as (
    select
        run_id,
        next_step - step as gap,
        count(*) as gap_count
    from steps
    where next_step is not null
    group by run_id, gap
),

strides as (
    select
        run_id,
        arg_max(gap, (gap_count, -gap)) as stride
    from gap_counts
    group by run_id
)

select
    runs.migration,
    runs.run_name,
    steps.step_axis,
    steps.step + strides.stride as first_missing,
    steps.next_step - strides.stride as last_missing,
    (steps.next_step - steps.step) // strides.stride - 1 as missing
from steps
inner join strides on steps.run_id = strides.run_id
inner join dim_run as runs on steps.run_id = runs.run_id
where (steps.next_step - steps.step) // strides.stride > 1
order by runs.migration, runs.run_name, first_missing
