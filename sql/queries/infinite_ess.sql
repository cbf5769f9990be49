-- In which runs is the effective sample size not finite, and what else broke at those steps?
-- param metric: the metric = rollout_is/mismatch/rollout_is_eff_sample_size
-- values metric: select metric from mart_metric_profile
-- test: count(*) = 1 and bool_and(run_name = 'npu_ess_overflow_at60')
-- test: min(first_step) = 60 and max(steps) = 91
-- test: bool_and(other_rules_broken is null and other_metrics_not_finite is null)
with broken as (
    select
        points.run_id,
        points.step_axis,
        points.step
    from fct_metric as points
    inner join dim_metric as metrics on points.metric_id = metrics.metric_id
    where
        metrics.metric = $metric
        and points.is_current
        and points.value_kind not in ('finite', 'rewritten_suspect')
),

other_rules as (
    select
        broken.run_id,
        string_agg(distinct anomalies.rule_id || ' of ' || anomalies.metric, ', ') as other_rules_broken
    from broken
    inner join mart_anomaly as anomalies on broken.run_id = anomalies.run_id and broken.step = anomalies.step
    where anomalies.metric <> $metric
    group by broken.run_id
),

other_metrics as (
    select
        broken.run_id,
        string_agg(distinct metrics.metric, ', ') as other_metrics_not_finite
    from broken
    inner join fct_metric as points
        on
            broken.run_id = points.run_id
            and broken.step_axis = points.step_axis
            and broken.step = points.step
    inner join dim_metric as metrics on points.metric_id = metrics.metric_id
    where
        metrics.metric <> $metric
        and points.is_current
        and points.value_kind not in ('finite', 'rewritten_suspect')
    group by broken.run_id
)

select
    runs.migration,
    runs.run_name,
    count(*) as steps,
    min(broken.step) as first_step,
    max(broken.step) as last_step,
    any_value(other_rules.other_rules_broken) as other_rules_broken,
    any_value(other_metrics.other_metrics_not_finite) as other_metrics_not_finite
from broken
inner join dim_run as runs on broken.run_id = runs.run_id
left join other_rules on broken.run_id = other_rules.run_id
left join other_metrics on broken.run_id = other_metrics.run_id
group by runs.migration, runs.run_name
order by runs.migration, runs.run_name
