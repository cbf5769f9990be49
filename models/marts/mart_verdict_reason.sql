-- The reasons behind the verdict on a pair, one a row: what was seen, in which metric, from which step, and on what
-- evidence.
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
    where causal_tier < 8
),

times as (
    select * from mart_time_shift
),

differences as (
    select * from int_first_difference
),

starts as (
    select * from int_start_offset
    where is_material
),

metrics as (
    select
        metric_id,
        metric,
        causal_tier,
        scale,
        scale_constant,
        focus_rank,
        practical_limit,
        practical_limit_kind
    from dim_metric
),

fits as (
    select * from int_level_fit
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

-- The practical limit of a metric as a size of its values, at the level that the baseline has.
limits as (
    select
        fits.pair_id,
        fits.step_axis,
        fits.baseline_level,
        metrics.*,
        metrics.practical_limit
        * case metrics.practical_limit_kind when 'relative' then fits.baseline_level else 1.0 end as raw_limit
    from fits
    inner join metrics on fits.metric_id = metrics.metric_id
    where metrics.focus_rank is not null and metrics.causal_tier < 8
),

-- A share above one half has its limit taken downwards, away from the end of its scale.
scaled_limits as (
    select
        *,
        abs(
            comparison_value(
                baseline_level
                + case when scale = 'logit' and baseline_level > 0.5 then -raw_limit else raw_limit end,
                null, scale, scale_constant
            )
            - comparison_value(baseline_level, null, scale, scale_constant)
        ) as scaled_limit
    from limits
),

-- Metrics to look at first in which a shift that matters would not have been found.
blind as (
    select
        verdicts.pair_id,
        onsets.metric,
        scaled_limits.focus_rank,
        scaled_limits.practical_limit,
        scaled_limits.practical_limit_kind,
        onsets.smallest_detectable_shift / scaled_limits.scaled_limit as missed_limits
    from verdicts
    inner join onsets on verdicts.pair_id = onsets.pair_id
    inner join scaled_limits
        on
            onsets.pair_id = scaled_limits.pair_id and onsets.metric_id = scaled_limits.metric_id
            and onsets.step_axis = scaled_limits.step_axis
    where
        verdicts.verdict in ('decoupled_only', 'within_floor')
        and onsets.onset_kind = 'drift'
        and onsets.smallest_detectable_shift > scaled_limits.scaled_limit
        and scaled_limits.scaled_limit > 0
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
        differences.pair_id,
        'baseline_nonfinite' as reason_kind,
        1.3 as place,
        metrics.metric,
        differences.baseline_nonfinite as step,
        metrics.metric || ' of the baseline is not finite at step ' || differences.baseline_nonfinite
        || ': steps at which it is not are not compared.' as sentence
    from differences
    inner join metrics on differences.metric_id = metrics.metric_id
    where differences.baseline_nonfinite is not null and metrics.causal_tier < 9
    union all by name
    select
        pair_id,
        'initial_mismatch' as reason_kind,
        1.6 as place,
        metric,
        first_step as step,
        metric || ' is ' || printf('%.3g', first_delta) || ' apart at step ' || first_step
        || ', the first that both logged: beyond its practical limit and its noise.' as sentence
    from starts
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
        metric || ' is off from ' || step_in_words(onset_step, onset_step_low, onset_step_high)
        || '; chance of being first ' || printf('%.2f', probability_first) || '.' as sentence
    from first_drift
    union all by name
    select
        pair_id,
        'insufficient' as reason_kind,
        4 as place,
        null::varchar as metric,
        null::bigint as step,
        reason as sentence
    from verdicts
    where verdict = 'insufficient'
    union all by name
    select
        pair_id,
        'decouple' as reason_kind,
        5 as place,
        arg_min(metric, (onset_step, metric)) as metric,
        min(onset_step) as step,
        counted(count(*), 'metric') || ' lost step-by-step equality'
        || case when count(*) > 1 then ', the first' else '' end || ' at step ' || min(onset_step) || '.' as sentence
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
            when effective_size = 0
                then
                    counted(baseline_replicates, 'replicate') || ' of the baseline and ' || candidate_replicates
                    || ' of the candidate beside the judged runs do not tell how far equal runs part, '
                    || 'two of one stack do: small drifts are missed.'
            else
                'The noise floor stems from ' || counted(baseline_replicates, 'replicate')
                || ' of the baseline and ' || candidate_replicates || ' of the candidate, the judged runs left out.'
        end as sentence
    from verdicts
    union all by name
    select
        pair_id,
        'sensitivity' as reason_kind,
        9.0 + focus_rank / 10000.0 as place,
        metric,
        null::bigint as step,
        'A lasting shift of ' || metric || ' by less than ' || printf('%.1f', missed_limits)
        || ' times its practical limit (' || practical_limit
        || case practical_limit_kind when 'relative' then ' of the baseline' else '' end
        || ') would not have been found.' as sentence
    from blind
)

select
    reasons.pair_id,  -- the pair
    verdicts.migration,  -- its migration
    row_number() over (
        partition by reasons.pair_id
        order by reasons.place asc, reasons.step asc, reasons.metric asc, reasons.sentence asc
    ) as ordinal,  -- 1 for the first reason
    reasons.reason_kind,  -- nonfinite, baseline_nonfinite, initial_mismatch, parity, drift, insufficient, decouple,
    -- first_diff, time, evidence or sensitivity (what would not have been found)
    reasons.metric,  -- the metric, where it is about one
    reasons.step,  -- the step from which it holds
    reasons.sentence  -- the reason in words
from reasons
inner join verdicts on reasons.pair_id = verdicts.pair_id
