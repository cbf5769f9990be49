-- What is the verdict on each migrated run, and why?
-- test: count(*) = 2
-- test: count(*) filter (where candidate = 'npu_attn_mask_at60' and verdict = 'drift' and also is null) = 1
-- test: min(first_onset_step) between 59 and 61
-- test: count(*) filter (where candidate = 'npu_ess_overflow_at60' and verdict <> 'drift') = 1
-- test: any_value(also) filter (where candidate = 'npu_ess_overflow_at60') = 'not finite from 60'
-- planted: any_value(also) filter (where candidate = 'npu_attn_mask_at60') = 'slower from 60, rule broken from 70'
with nonfinite as (
    select
        pair_id,
        min(step) as since
    from mart_verdict_reason
    where reason_kind = 'nonfinite'
    group by pair_id
),

paces as (
    select
        pair_id,
        min(onset_step) filter (where ratio > 1) as slower_since,
        min(onset_step) filter (where ratio < 1) as faster_since
    from mart_time_shift
    where shift_kind = 'change'
    group by pair_id
),

-- A rule that the baseline breaks too says nothing about the migration.
rules as (
    select
        pairs.pair_id,
        min(broken.step) as since
    from dim_migration as pairs
    inner join mart_anomaly as broken on pairs.candidate_run_id = broken.run_id
    left join mart_anomaly as before
        on
            pairs.baseline_run_id = before.run_id
            and broken.rule_id = before.rule_id
            and broken.metric = before.metric
    where broken.severity = 'error' and broken.rule_id <> 'finite' and before.run_id is null
    group by pairs.pair_id
)

select
    pairs.migration,
    pairs.candidate_run_name as candidate,
    pairs.baseline_run_name as baseline,
    verdicts.verdict,
    verdicts.grade,
    verdicts.first_metric,
    verdicts.first_stage,
    verdicts.first_onset_step,
    nullif(concat_ws(
        ', ',
        'not finite from ' || nonfinite.since,
        'slower from ' || paces.slower_since,
        'faster from ' || paces.faster_since,
        'rule broken from ' || rules.since
    ), '') as also,
    verdicts.time_verdict,
    verdicts.reason
from mart_pair_verdict as verdicts
inner join dim_migration as pairs on verdicts.pair_id = pairs.pair_id
left join nonfinite on verdicts.pair_id = nonfinite.pair_id
left join paces on verdicts.pair_id = paces.pair_id
left join rules on verdicts.pair_id = rules.pair_id
where pairs.pair_kind = 'migration'
order by pairs.migration, candidate
