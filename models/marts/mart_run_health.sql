-- How complete and how sound the log of each run is, before anyone compares it with another.
-- grain: run_id
-- materialized: incremental(run_id)
with runs as (
    select * from dim_run
),

points as (
    select * from stg_current_point
),

steps as (
    select * from dim_step
),

focus as (
    select count(*) as focus_count
    from dim_metric
    where focus_rank is not null
),

anomalies as (
    select
        run_id,
        count(*) filter (where severity = 'error') as error_count,
        count(*) filter (where severity = 'warning') as warning_count
    from mart_anomaly
    group by run_id
),

point_counts as (
    select
        points.run_id,
        count(*) as current_points,
        count(distinct points.metric_id) as metric_count,
        count(distinct points.metric_id) filter (where points.category = 'uncatalogued') as uncatalogued_count,
        count(distinct points.metric_id) filter (where metrics.focus_rank is not null) as focus_logged,
        count(*) filter (where not points.is_finite) as nonfinite_points,
        min(points.step) filter (where not points.is_finite) as first_nonfinite_step
    from points
    inner join dim_metric as metrics on points.metric_id = metrics.metric_id
    group by points.run_id
),

step_counts as (
    select
        run_id,
        count(distinct step) filter (where is_current) as current_steps,
        count(*) filter (where not is_current) as superseded_steps
    from steps
    where step_axis = 'step'
    group by run_id
),

gaps as (
    select
        run_id,
        lead(step) over (
            partition by run_id
            order by step
        ) - step as gap
    from steps
    where step_axis = 'step' and is_current
),

gap_counts as (
    select
        run_id,
        gap,
        count(*) as gap_count
    from gaps
    where gap is not null
    group by run_id, gap
),

-- Who logs every tenth step lacks none of the nine between: the stride is what most steps lie apart.
strides as (
    select
        run_id,
        arg_max(gap, (gap_count, -gap)) as stride
    from gap_counts
    group by run_id
),

missing as (
    select
        gap_counts.run_id,
        sum(gap_counts.gap_count * (gap_counts.gap // strides.stride - 1))::bigint as missing_steps
    from gap_counts
    inner join strides on gap_counts.run_id = strides.run_id
    where gap_counts.gap > strides.stride
    group by gap_counts.run_id
)

select
    runs.run_id,  -- the run
    runs.run_name,  -- its name
    runs.migration,  -- its migration
    runs.status,  -- finished, running, crashed or unknown
    runs.attempt_count - 1 as restart_count,  -- times the run was started again
    coalesce(step_counts.superseded_steps, 0) as superseded_steps,  -- steps that a later attempt took over
    coalesce(step_counts.current_steps, 0) as step_count,  -- different steps with a current value
    coalesce(missing.missing_steps, 0) as missing_steps,  -- steps between first and last that lack, at the run's stride
    coalesce(point_counts.metric_count, 0) as metric_count,  -- different metrics
    coalesce(point_counts.uncatalogued_count, 0) as uncatalogued_metrics,  -- metrics that nobody described
    coalesce(point_counts.focus_logged, 0) as focus_metrics_logged,  -- metrics to look at first that are logged
    focus.focus_count as focus_metrics,  -- metrics to look at first, in all
    coalesce(point_counts.nonfinite_points, 0) as nonfinite_points,  -- current values that are not finite
    point_counts.first_nonfinite_step,  -- first step with such a value
    coalesce(anomalies.error_count, 0) as error_count,  -- broken rules of severity error
    coalesce(anomalies.warning_count, 0) as warning_count,  -- broken rules of severity warning
    runs.issue_count as quarantined_lines  -- pieces of the log that could not be read
from runs
cross join focus
left join point_counts on runs.run_id = point_counts.run_id
left join step_counts on runs.run_id = step_counts.run_id
left join missing on runs.run_id = missing.run_id
left join anomalies on runs.run_id = anomalies.run_id
