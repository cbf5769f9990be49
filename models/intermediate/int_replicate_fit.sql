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

-- The profile of the noise along the run, as smooth as can follow the growth of the first steps: a closer one would
-- hide how the level wanders.
profiles as (
    select
        *,
        avg(delta * delta) over (
            partition by left_run_id, right_run_id, metric_id, step_axis
            order by step
            rows between 15 preceding and 15 following
        ) as local_square
    from deltas
),

plateaus as (
    select
        *,
        quantile_cont(local_square, 0.75) over (
            partition by left_run_id, right_run_id, metric_id, step_axis
        ) as plateau
    from profiles
),

weighted as (
    select
        *,
        drawn_in(delta, sqrt(plateau)) as d,
        noise_at_step(local_square, plateau) as variance,
        noise_at_step(local_square, plateau) = local_square as is_apart
    from plateaus
    where plateau > 0
),

running as (
    select
        *,
        row_number() over along as k,
        count(*) over whole as n,
        sum(1.0 / variance) over along as left_weight,
        sum(d / variance) over along as left_sum,
        sum(1.0 / variance) over whole as weight,
        sum(d / variance) over whole as total,
        sum(d * d / variance) over whole as squares,
        lag(d) over along as previous,
        lag(variance) over along as previous_variance
    from weighted
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
        (d - total / weight) / sqrt(variance) as residual,
        (previous - total / weight) / sqrt(previous_variance) as previous_residual,
        case
            when k between shortest_segment(n) and n - shortest_segment(n)
                then split_f(left_weight, left_sum, weight, total, squares, n)
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
        avg(delta * delta) as mean_square,
        any_value(plateau) as plateau,
        sum(residual * previous_residual) / nullif(sum(residual * residual), 0) as raw_lag1,
        coalesce(avg(f) filter (where is_apart), avg(f)) as mean_f,
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
    plateau,  -- the same on the plateau
    least(greatest(raw_lag1 + (1.0 + 4.0 * raw_lag1) / n, 0.0), 0.95) as autocorrelation,  -- at lag one, bias removed
    mean_f,  -- mean of the two-segment statistic over the splits at which the runs are apart; about 1 for independent
    -- steps
    max_f  -- largest two-segment statistic
from fitted
where n >= 12
