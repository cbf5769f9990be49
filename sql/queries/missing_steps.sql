-- Which steps are missing in the logs?
-- test: count(*) = 0
-- planted: count(*) = 1 and min(first_missing) = 20 and max(last_missing) = 21
with steps as (
    select
        run_id,
        step_axis,
        step,
        lead(step) over (
            partition by run_id, step_axis
            order by step
        ) as next_step
    from dim_step
    where is_current
),

strides as (
    select
        run_id,
        step_axis,
        mode(next_step - step) as stride
    from steps
    group by run_id, step_axis
)

select
    runs.migration,
    runs.run_name,
    steps.step_axis,
    steps.step + strides.stride as first_missing,
    steps.next_step - strides.stride as last_missing,
    (steps.next_step - steps.step) // strides.stride - 1 as missing
from steps
inner join strides on steps.run_id = strides.run_id and steps.step_axis = strides.step_axis
inner join dim_run as runs on steps.run_id = runs.run_id
where steps.next_step - steps.step > strides.stride
order by runs.migration, runs.run_name, first_missing
