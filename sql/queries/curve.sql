-- What are the two curves of a metric, their difference and the noise of equal runs?
-- param candidate: name of the candidate run = npu_attn_mask_at60
-- values candidate: select candidate_run_name from dim_migration where pair_kind = 'migration'
-- param metric: the metric = mismatch/mismatch_k3_kl
-- values metric: select metric from mart_divergence_onset
-- test: count(*) = 150 and min(step) = 1 and max(step) = 150
-- test: avg(delta) filter (where step >= 60) > 5 * abs(avg(delta) filter (where step < 60))
select
    deltas.migration,
    deltas.step_axis,
    deltas.step,
    deltas.baseline_value,
    deltas.candidate_value,
    deltas.delta,
    deltas.scaled_delta,
    deltas.sigma,
    deltas.standardised_delta,
    deltas.is_comparable
from mart_paired_delta as deltas
inner join dim_migration as pairs on deltas.pair_id = pairs.pair_id
where
    pairs.candidate_run_name = $candidate
    and pairs.pair_kind = 'migration'
    and deltas.metric = $metric
order by deltas.migration, deltas.step_axis, deltas.step
