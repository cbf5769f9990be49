-- How the difference of two replicates of one stack moves along the run: spread, autocorrelation, and how much
-- its level wanders. Nothing is wrong between them, so this is what a test has to bear.
-- grain: left_run_id, right_run_id, metric_id, step_axis
-- materialized: incremental(migration)
with replicates as (
    select
        run_id,
        migration,
        stack
    from dim_run
    where role in ('baseline', 'replicate')
),

points as (
    select
        run_id,
        metric_id,
        step_axis,
        step,
        scaled_value
    from int_scaled_point
),

duos as (
    select
        a.migration,
        a.stack,
        a.run_id as left_run_id,
        b.run_id as right_run_id
    from replicates as a
    inner join replicates as b on a.migration = b.migration and a.stack = b.stack and a.run_id < b.run_id
),

deltas as (
    select
        duos.migration,
        duos.stack,
        duos.left_run_id,
        duos.right_run_id,
        l.metric_id,
        l.step_axis,
        l.step,
        r.scaled_value - l.scaled_value as delta
    from duos
    inner join points as l on duos.left_run_id = l.run_id
    inner join points as r
        on
            duos.right_run_id = r.run_id and l.metric_id = r.metric_id
            and l.step_axis = r.step_axis and l.step = r.step
),

local_spread as (
    select
        *,
        avg(delta * delta) over near as local_square,
        avg(delta * delta) over whole as mean_square
    from deltas
    window
        near as (
            partition by left_run_id, right_run_id, metric_id, step_axis
            order by step
            rows between 7 preceding and 7 following
        ),
        whole as (partition by left_run_id, right_run_id, metric_id, step_axis)
),

standardised as (
    select
        *,
        least(greatest(delta / sqrt(greatest(local_square, 0.1 * mean_square)), -4.0), 4.0) as z
    from local_spread
    where mean_square > 0
),

running as (
    select
        *,
        row_number() over along as k,
        count(*) over whole as n,
        sum(z) over along as left_sum,
        sum(z) over whole as total,
        sum(z * z) over whole as squares,
        lag(z) over along as previous
    from standardised
    window
        along as (
            partition by left_run_id, right_run_id, metric_id, step_axis
            order by step
            rows unbounded preceding
        ),
        whole as (partition by left_run_id, right_run_id, metric_id, step_axis)
),

contrasts as (
    select
        *,
        case
            when k between shortest_segment(n) and n - shortest_segment(n)
                then split_f(k, left_sum, n, total, squares)
        end as f
    from running
),

fitted as (
    select
        migration,
        stack,
        left_run_id,
        right_run_id,
        metric_id,
        step_axis,
        any_value(n) as n,
        any_value(mean_square) as mean_square,
        sum((z - total / n) * (previous - total / n)) / nullif(sum((z - total / n) * (z - total / n)), 0) as raw_lag1,
        avg(f) as mean_f,
        max(f) as max_f
    from contrasts
    group by migration, stack, left_run_id, right_run_id, metric_id, step_axis
)

select
    migration,  -- the migration
    stack,  -- replicate group of both runs
    left_run_id,  -- one run
    right_run_id,  -- the other run
    metric_id,  -- the metric
    step_axis,  -- which counter the step counts
    n,  -- steps that both logged
    mean_square,  -- mean squared difference
    least(greatest(raw_lag1 + (1.0 + 4.0 * raw_lag1) / n, 0.0), 0.95) as autocorrelation,  -- at lag one, bias removed
    mean_f,  -- mean of the two-segment statistic over the possible splits; about 1 for independent steps
    max_f  -- largest two-segment statistic
from fitted
where n >= 12
