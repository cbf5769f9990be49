-- What is the verdict on each migrated run, and why?
-- test: count(*) = 2
-- test: count(*) filter (where candidate = 'npu_attn_mask_at60' and verdict = 'drift') = 1
-- test: min(first_onset_step) between 59 and 61
-- test: count(*) filter (where candidate = 'npu_ess_overflow_at60' and verdict <> 'drift') = 1
select
    pairs.migration,
    pairs.candidate_run_name as candidate,
    pairs.baseline_run_name as baseline,
    verdicts.verdict,
    verdicts.grade,
    verdicts.first_metric,
    verdicts.first_stage,
    verdicts.first_onset_step,
    verdicts.reason
from mart_pair_verdict as verdicts
inner join dim_migration as pairs on verdicts.pair_id = pairs.pair_id
where pairs.pair_kind = 'migration'
order by pairs.migration, candidate
