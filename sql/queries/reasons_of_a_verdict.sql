-- What stands behind the verdict on a run, reason by reason?
-- param candidate: name of the candidate run = npu_ess_overflow_at60
-- values candidate: select candidate_run_name from dim_migration where pair_kind = 'migration'
-- test: count(*) >= 3 and min(ordinal) = 1
-- test: count(*) filter (where reason_kind = 'nonfinite' and step = 60) = 1
select
    pairs.migration,
    pairs.baseline_run_name as baseline,
    reasons.ordinal,
    reasons.reason_kind,
    reasons.metric,
    reasons.step,
    reasons.sentence
from mart_verdict_reason as reasons
inner join dim_migration as pairs on reasons.pair_id = pairs.pair_id
where pairs.candidate_run_name = $candidate and pairs.pair_kind = 'migration'
order by pairs.migration, baseline, reasons.ordinal
