-- Metrics of time of a pair that are 25% or more apart: from the first step on (from_start), or from some step on
-- (change). None of them is drift: a new stack may be slower and right.
-- grain: pair_id, metric_id, step_axis, shift_kind
-- materialized: incremental(pair_id)
with fits as (
    select * from int_level_fit
),

onsets as (
    select
        pair_id,
        metric_id,
        step_axis,
        onset_step,
        onset_step_low,
        onset_step_high
    from int_onset
),

tests as (
    select
        pair_id,
        metric_id,
        step_axis,
        metric,
        category,
        q_value,
        is_drift
    from int_drift_test
    where family = 'time'
),

metrics as (
    select
        metric_id,
        scale,
        unit
    from dim_metric
),

pairs as (
    select
        pair_id,
        migration
    from dim_migration
),

judged as (
    select
        fits.* exclude (onset_step),
        onsets.onset_step,
        onsets.onset_step_low,
        onsets.onset_step_high,
        tests.metric,
        tests.category,
        tests.q_value,
        tests.is_drift,
        case when tests.is_drift then fits.median_before else fits.median_level end as start_level
    from fits
    inner join tests
        on
            fits.pair_id = tests.pair_id and fits.metric_id = tests.metric_id
            and fits.step_axis = tests.step_axis
    inner join metrics on fits.metric_id = metrics.metric_id
    left join onsets
        on
            fits.pair_id = onsets.pair_id and fits.metric_id = onsets.metric_id
            and fits.step_axis = onsets.step_axis
    where metrics.scale = 'log'
),

changed as (
    select
        pair_id,
        metric_id,
        step_axis,
        metric,
        category,
        'change' as shift_kind,
        exp(median_shift) as ratio,
        onset_step,
        onset_step_low,
        onset_step_high,
        q_value
    from judged
    where is_drift
),

from_start as (
    select
        pair_id,
        metric_id,
        step_axis,
        metric,
        category,
        'from_start' as shift_kind,
        exp(start_level) as ratio,
        null::bigint as onset_step,
        null::bigint as onset_step_low,
        null::bigint as onset_step_high,
        null::double as q_value
    from judged
    where
        abs(start_level) >= time_limit()
        and abs(start_level) - 2.0 * 1.25 * sigma * sqrt(inflation / n) >= ln(1.15)
),

shifts as (
    select * from changed
    union all by name
    select * from from_start
)

select
    shifts.pair_id,  -- the pair
    pairs.migration,  -- its migration
    shifts.metric_id,  -- the metric
    shifts.metric,  -- its canonical name
    shifts.category,  -- its category
    shifts.step_axis,  -- which counter the step counts
    shifts.shift_kind,  -- change (from onset_step on) or from_start
    shifts.ratio,  -- candidate over baseline, for a change: after over before; above 1 is slower
    shifts.onset_step,  -- first step of the change
    shifts.onset_step_low,  -- lower end of its interval
    shifts.onset_step_high,  -- upper end of its interval
    shifts.q_value,  -- false discovery rate of the change within the metrics of time
    shifts.metric || ' ' || speed_in_words(shifts.ratio)
    || case
        when shifts.shift_kind = 'change' then ' from step ' || shifts.onset_step
        else ' from the first step'
    end as sentence  -- the same in words
from shifts
inner join pairs on shifts.pair_id = pairs.pair_id
