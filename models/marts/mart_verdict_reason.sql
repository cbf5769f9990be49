-- The reasons behind the verdict on a pair, one a row: what was seen, in which metric, from which step, and on what
-- evidence. The sentence of the verdict is made of the first of them.
-- grain: pair_id, ordinal
-- materialized: incremental(pair_id)
with verdicts as (
    select * from mart_pair_verdict
),

first_drift as (
    select * from mart_first_drift
),

onsets as (
    select * from mart_divergence_onset
    where causal_tier < 9
),

times as (
    select * from mart_time_shift
),

broken as (
    select
        pair_id,
        'nonfinite' as reason_kind,
        1 as place,
        unnest(nonfinite_metrics).metric as metric,
        unnest(nonfinite_metrics).step as step
    from verdicts
    where nonfinite_metrics is not null
),

reasons as (
    select
        pair_id,
        reason_kind,
        place,
        metric,
        step,
        metric || ' is not finite from step ' || step || '.' as sentence
    from broken
    union all by name
    select
        pair_id,
        'parity' as reason_kind,
        2 as place,
        null::varchar as metric,
        parity_broken_at as step,
        'Data that must be equal is not from step ' || parity_broken_at
        || '; from there on the runs are unpaired, and judged by the noise that each has by itself.' as sentence
    from verdicts
    where parity_broken_at is not null
    union all by name
    select
        pair_id,
        'drift' as reason_kind,
        3.0 + rank / 10000.0 as place,
        metric,
        onset_step as step,
        metric || ' is off from step ' || onset_step || ' (between ' || onset_step_low || ' and ' || onset_step_high
        || '); chance of being first ' || printf('%.2f', probability_first) || '.' as sentence
    from first_drift
    union all by name
    select
        pair_id,
        'decouple' as reason_kind,
        5 as place,
        arg_min(metric, onset_step) as metric,
        min(onset_step) as step,
        count(*) || ' metrics lost step-by-step equality, the first at step ' || min(onset_step) || '.' as sentence
    from onsets
    where onset_kind = 'decouple' and not is_censored
    group by pair_id
    union all by name
    select
        pair_id,
        'first_diff' as reason_kind,
        6 as place,
        first_different_metric as metric,
        first_different_step as step,
        'The first unequal value is that of ' || first_different_metric || ' at step ' || first_different_step || '.'
            as sentence
    from verdicts
    where first_different_step is not null
    union all by name
    select
        pair_id,
        'time' as reason_kind,
        7 as place,
        metric,
        onset_step as step,
        sentence || '.' as sentence
    from times
    union all by name
    select
        pair_id,
        'evidence' as reason_kind,
        8 as place,
        null::varchar as metric,
        null::bigint as step,
        case
            when baseline_replicates + candidate_replicates = 0
                then
                    'Without a replicate the noise floor stems from what the two runs do from step to step: '
                    || 'small drifts are missed.'
            else
                'The noise floor stems from ' || baseline_replicates || ' replicates of the baseline and '
                || candidate_replicates || ' of the candidate, the judged runs left out.'
        end as sentence
    from verdicts
)

select
    reasons.pair_id,  -- the pair
    verdicts.migration,  -- its migration
    row_number() over (
        partition by reasons.pair_id
        order by reasons.place asc, reasons.step asc, reasons.metric asc
    ) as ordinal,  -- 1 for the first reason
    reasons.reason_kind,  -- nonfinite, parity, drift, decouple, first_diff, time or evidence
    reasons.metric,  -- the metric, where it is about one
    reasons.step,  -- the step from which it holds
    reasons.sentence  -- the reason in words
from reasons
inner join verdicts on reasons.pair_id = verdicts.pair_id
