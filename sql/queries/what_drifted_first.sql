-- Which metrics of each migrated run drifted first, and how sure is that?
-- param top: number of metrics for each pair = 5
-- test: count(*) = 5 and bool_and(candidate = 'npu_attn_mask_at60')
-- test: min(onset_step) filter (where rank = 1) between 59 and 61
-- test: any_value(stage) filter (where rank = 1) = 'rollout_or_weight_sync'
select
    pairs.migration,
    pairs.candidate_run_name as candidate,
    drifts.rank,
    drifts.metric,
    drifts.category,
    drifts.stage,
    drifts.onset_step,
    drifts.onset_step_low,
    drifts.onset_step_high,
    drifts.probability_first,
    drifts.is_tied
from mart_first_drift as drifts
inner join dim_migration as pairs on drifts.pair_id = pairs.pair_id
where pairs.pair_kind = 'migration' and drifts.rank <= $top::integer
order by pairs.migration, candidate, drifts.rank
