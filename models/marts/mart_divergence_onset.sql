-- Three onsets of each metric of a pair: the first unequal step (first_diff), the step at which step-by-step
-- equality is lost (decouple), the step from which the level is off (drift). Or censored at the last common step.
-- grain: pair_id, metric_id, step_axis, onset_kind
-- materialized: incremental(pair_id)
with pairs as (
    select
        pair_id,
        migration
    from dim_migration
),

metrics as (
    select
        metric_id,
        metric,
        category,
        stage,
        causal_tier
    from dim_metric
),

differences as (
    select * from int_first_difference
),

growth as (
    select * from int_growth_fit
),

levels as (
    select * from int_level_fit
),

tests as (
    select * from int_drift_test
),

found as (
    select * from int_onset
),

first_diff as (
    select
        pair_id,
        metric_id,
        step_axis,
        'first_diff' as onset_kind,
        first_difference as onset_step,
        first_difference as onset_step_low,
        first_difference as onset_step_high,
        null::double as p_value,
        null::double as q_value,
        null::double as q_value_strict,
        first_difference is null as is_censored,
        n,
        case when first_difference is not null then 'exact' end as shape,
        null::double as effect,
        null::double as effect_in_sigma,
        null::double as raw_effect,
        null::double as smallest_detectable_shift,
        null::double as statistic,
        null::double as threshold,
        null::double as doubling_steps,
        null::varchar as floor_source,
        null::double as sigma,
        null::boolean as is_unpaired,
        null::double as inflation,
        null::double as interval_inflation,
        first_difference is not null as is_confirmed
    from differences
    where n > 0
),

decoupled as (
    select
        *,
        p_value <= decouple_p_limit() and log_rise >= ln(4.0) as is_event
    from growth
),

decouple as (
    select
        pair_id,
        metric_id,
        step_axis,
        'decouple' as onset_kind,
        case when is_event then onset_step end as onset_step,
        case when is_event then onset_step_low end as onset_step_low,
        case when is_event then onset_step_high end as onset_step_high,
        p_value,
        null::double as q_value,
        null::double as q_value_strict,
        not is_event as is_censored,
        n,
        case when is_event then shape end as shape,
        log_rise as effect,
        null::double as effect_in_sigma,
        null::double as raw_effect,
        null::double as smallest_detectable_shift,
        f as statistic,
        null::double as threshold,
        case when is_event then doubling_steps end as doubling_steps,
        null::varchar as floor_source,
        null::double as sigma,
        null::boolean as is_unpaired,
        null::double as inflation,
        null::double as interval_inflation,
        is_event as is_confirmed
    from decoupled
),

drift as (
    select
        levels.pair_id,
        levels.metric_id,
        levels.step_axis,
        'drift' as onset_kind,
        found.onset_step,
        found.onset_step_low,
        found.onset_step_high,
        levels.p_value,
        tests.q_value,
        tests.q_value_strict,
        not tests.is_drift as is_censored,
        levels.n,
        found.shape,
        levels.mean_after as effect,
        levels.mean_after / nullif(levels.gate_sigma, 0.0) as effect_in_sigma,
        levels.raw_effect,
        greatest(
            sqrt(largest_f_limit(levels.n) * levels.inflation * 4.0 / levels.n) * levels.sigma,
            noise_gate(levels.is_across_stacks and levels.candidate_runs = 0, false) * levels.gate_sigma
        ) as smallest_detectable_shift,
        levels.statistic,
        largest_f_limit(levels.n) as threshold,
        null::double as doubling_steps,
        levels.floor_source,
        levels.sigma,
        levels.is_unpaired,
        levels.inflation,
        levels.interval_inflation,
        tests.is_confirmed
    from levels
    inner join tests
        on
            levels.pair_id = tests.pair_id and levels.metric_id = tests.metric_id
            and levels.step_axis = tests.step_axis
    left join found
        on
            levels.pair_id = found.pair_id and levels.metric_id = found.metric_id
            and levels.step_axis = found.step_axis
),

onsets as (
    select * from first_diff
    union all by name
    select * from decouple
    union all by name
    select * from drift
)

select
    onsets.pair_id,  -- the pair
    pairs.migration,  -- its migration
    onsets.metric_id,  -- the metric
    metrics.metric,  -- its canonical name
    metrics.category,  -- its category
    metrics.stage,  -- stage that a first drift of it points to
    metrics.causal_tier,  -- its place in the chain of causes
    onsets.step_axis,  -- which counter the step counts
    onsets.onset_kind,  -- first_diff, decouple or drift
    onsets.onset_step,  -- the onset; null where there is none
    onsets.onset_step_low,  -- lower end of its interval
    onsets.onset_step_high,  -- upper end of its interval
    onsets.p_value,  -- chance of such a statistic without a change
    onsets.q_value,  -- the same, controlled over the metrics of the pair
    onsets.q_value_strict,  -- the same, whatever the dependence between metrics
    onsets.is_censored,  -- no onset up to the last common step
    differences.last_common_step as censored_at,  -- last step that both runs logged
    onsets.n as step_count,  -- steps that took part
    onsets.shape,  -- exact; rise or scale (the spread jumps) of a decoupling; step, ramp, spike or sawtooth of a drift
    onsets.effect,  -- change on the comparison scale
    onsets.effect_in_sigma,  -- the same, in units of the noise of equal runs
    onsets.raw_effect,  -- change of the mean difference in the metric's own unit
    onsets.smallest_detectable_shift,  -- shift on the comparison scale that would have been found
    onsets.floor_source,  -- what the noise is taken from: replicates, first_steps, local or sampling
    onsets.sigma,  -- noise of one step on the comparison scale, once the runs are apart
    onsets.is_unpaired,  -- judged by the noise of unpaired runs from some step on, since the data were not the same
    onsets.inflation,  -- what the two-segment statistic was divided by for wandering and autocorrelation
    onsets.interval_inflation,  -- what the likelihood ratios of the interval were divided by
    onsets.statistic,  -- the statistic that was judged, after that division
    onsets.threshold,  -- limit of the statistic at 1% for a single metric
    onsets.doubling_steps,  -- steps in which the difference doubled while it grew
    onsets.is_confirmed  -- the change lasts
from onsets
inner join pairs on onsets.pair_id = pairs.pair_id
inner join metrics on onsets.metric_id = metrics.metric_id
left join differences
    on
        onsets.pair_id = differences.pair_id and onsets.metric_id = differences.metric_id
        and onsets.step_axis = differences.step_axis
