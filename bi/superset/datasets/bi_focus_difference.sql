-- How far the candidate of a pair is from its baseline at a step, for the metrics to look at first.
-- grain: pair_id, metric_id, step_axis, step
-- materialized: view
select
    deltas.pair_id, -- the pair
    deltas.migration, -- its migration
    pairs.migration || ': ' || pairs.candidate_run_name || ' against ' || pairs.baseline_run_name as pair, -- its name
    deltas.pair_kind, -- migration (two stacks) or replicate (one stack, nothing should differ)
    deltas.metric_id, -- the metric
    deltas.metric, -- its name
    metrics.focus_rank, -- rank among the metrics to look at first
    deltas.step_axis, -- which counter the step counts
    deltas.step, -- the step
    deltas.delta, -- candidate minus baseline
    deltas.standardised_delta -- the same in units of what equal runs differ by
from mart_paired_delta as deltas
inner join dim_metric as metrics on deltas.metric_id = metrics.metric_id
inner join dim_migration as pairs on deltas.pair_id = pairs.pair_id
where
    metrics.focus_rank is not null
    and deltas.baseline_kind = 'finite'
    and deltas.candidate_kind = 'finite'
