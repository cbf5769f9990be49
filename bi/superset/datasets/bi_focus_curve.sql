-- The value of a metric to look at first, at a step of one side of a pair; finite values alone.
-- grain: pair_id, metric_id, step_axis, step, side
-- materialized: view
with sides as (
    select
        pair_id,
        metric_id,
        metric,
        step_axis,
        step,
        'baseline' as side,
        baseline_value as value
    from mart_paired_delta
    where baseline_kind = 'finite'
    union all
    select
        pair_id,
        metric_id,
        metric,
        step_axis,
        step,
        'candidate' as side,
        candidate_value as value
    from mart_paired_delta
    where candidate_kind = 'finite'
)

select
    sides.pair_id, -- the pair
    pairs.migration, -- its migration
    pairs.migration || ': ' || pairs.candidate_run_name || ' against ' || pairs.baseline_run_name as pair, -- its name
    sides.metric_id, -- the metric
    sides.metric, -- its name
    metrics.focus_rank, -- rank among the metrics to look at first
    sides.step_axis, -- which counter the step counts
    sides.step, -- the step
    sides.side, -- baseline or candidate
    sides.value -- the value
from sides
inner join dim_metric as metrics on sides.metric_id = metrics.metric_id
inner join dim_migration as pairs on sides.pair_id = pairs.pair_id
where metrics.focus_rank is not null
