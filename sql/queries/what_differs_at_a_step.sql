-- Which metrics are furthest outside the noise of equal runs at one step?
-- param candidate: name of the candidate run = npu_attn_mask_at60
-- values candidate: select candidate_run_name from dim_migration where pair_kind = 'migration'
-- param step: the step = 62
-- values step: select step from dim_step
-- test: count(*) >= 30
-- test: count(*) filter (where place <= 5 and category in ('mismatch', 'importance_sampling')) >= 4
-- test: min(abs(in_sigma)) filter (where place <= 3) > 4
select
    row_number() over (order by abs(deltas.standardised_delta) desc) as place,
    deltas.migration,
    deltas.metric,
    metrics.category,
    deltas.baseline_value,
    deltas.candidate_value,
    deltas.delta,
    deltas.standardised_delta as in_sigma
from mart_paired_delta as deltas
inner join dim_metric as metrics on deltas.metric_id = metrics.metric_id
inner join dim_migration as pairs on deltas.pair_id = pairs.pair_id
where
    pairs.candidate_run_name = $candidate
    and pairs.pair_kind = 'migration'
    and deltas.step = $step::bigint
    and isfinite(deltas.standardised_delta)
order by place
