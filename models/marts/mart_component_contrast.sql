-- Does a version of a component drift earlier than the other versions of its kind? Log-rank, stratified by recipe and
-- the other components that tell something, with chances from permuting the versions inside the strata; equal runs
-- stand beside it.
-- grain: component_kind, arm, metric_group, onset_kind
-- materialized: table
with members as (
    select * from int_contrast_member
),

contrasts as (
    select * from int_contrast
),

curves as (
    select distinct
        component_kind,
        arm,
        metric_group,
        onset_kind,
        median_duration,
        restricted_mean,
        pair_count,
        event_count
    from mart_drift_survival
),

-- Only strata that hold both sides say anything.
informative as (
    select
        *,
        bool_or(is_in_arm) over one and bool_or(not is_in_arm) over one as is_informative
    from members
    window one as (partition by component_kind, arm, metric_group, onset_kind, stratum)
),

summed as (
    select
        component_kind,
        arm,
        metric_group,
        onset_kind,
        count(*) filter (where is_in_arm) as pairs,
        count(*) filter (where not is_in_arm) as other_pairs,
        count(*) filter (where is_in_arm and is_event) as events,
        count(*) filter (where not is_in_arm and is_event) as other_events,
        count(*) filter (where is_competing) as competing,
        count(distinct stratum) filter (where is_informative) as strata,
        sum(score) filter (where is_in_arm and is_informative) as excess,
        any_value(total_variance) as variance,
        any_value(held_fixed) as held_fixed
    from informative
    group by component_kind, arm, metric_group, onset_kind
),

-- Pairs of one version that share a baseline move as one.
units as (
    select
        component_kind,
        arm,
        metric_group,
        onset_kind,
        stratum,
        baseline_run_id,
        is_in_arm,
        sum(score) as score,
        min(pair_id) as unit
    from informative
    where is_informative
    group by component_kind, arm, metric_group, onset_kind, stratum, baseline_run_id, is_in_arm
),

draws as (
    select unnest(range(1, permutation_count() + 1)) as draw
),

-- Permutations are drawn by hash, so that the same warehouse has the same chances.
shuffled as (
    select
        units.*,
        draws.draw,
        row_number() over (
            partition by draws.draw, component_kind, arm, metric_group, onset_kind, stratum
            order by hash(draws.draw::varchar || '/' || unit::varchar), unit, is_in_arm
        ) as place,
        count(*) filter (where is_in_arm) over (
            partition by draws.draw, component_kind, arm, metric_group, onset_kind, stratum
        ) as units_in_arm
    from units
    cross join draws
),

drawn as (
    select
        component_kind,
        arm,
        metric_group,
        onset_kind,
        draw,
        coalesce(sum(score) filter (where place <= units_in_arm), 0.0) as excess
    from shuffled
    group by component_kind, arm, metric_group, onset_kind, draw
),

chances as (
    select
        summed.component_kind,
        summed.arm,
        summed.metric_group,
        summed.onset_kind,
        (1.0 + count(*) filter (where drawn.excess >= summed.excess - 1e-9)) / (1.0 + count(*)) as p_value
    from summed
    inner join drawn
        on
            summed.component_kind = drawn.component_kind and summed.arm = drawn.arm
            and summed.metric_group = drawn.metric_group and summed.onset_kind = drawn.onset_kind
    group by summed.component_kind, summed.arm, summed.metric_group, summed.onset_kind
),

judgeable as (
    select
        summed.*,
        contrasts.confounded_with,
        chances.p_value,
        case
            when len(contrasts.confounded_with) > 0 then 'confounded'
            when summed.events < 5 or summed.other_events < 5 then 'too_few_onsets'
            when summed.strata = 0 or summed.variance <= 0 then 'confounded'
        end as obstacle
    from summed
    inner join contrasts on summed.component_kind = contrasts.component_kind and summed.arm = contrasts.arm
    left join chances
        on
            summed.component_kind = chances.component_kind and summed.arm = chances.arm
            and summed.metric_group = chances.metric_group and summed.onset_kind = chances.onset_kind
),

-- Holm over all comparisons of one kind of onset and one group of metrics.
ranked as (
    select
        *,
        row_number() over (
            partition by metric_group, onset_kind, obstacle is null
            order by p_value, component_kind, arm
        ) as place,
        count(*) over (partition by metric_group, onset_kind, obstacle is null) as comparisons
    from judgeable
),

adjusted as (
    select
        *,
        case when obstacle is null then excess / variance end as log_ratio,
        case when obstacle is null then 1.0 / sqrt(variance) end as log_error,
        least(1.0, max(p_value * (comparisons - place + 1)) over (
            partition by metric_group, onset_kind, obstacle is null
            order by place
            rows unbounded preceding
        )) as p_adjusted
    from ranked
)

select
    adjusted.component_kind,  -- kind of the component
    adjusted.arm,  -- the version that is compared with all others of its kind
    adjusted.metric_group,  -- a category, or all metrics of training
    adjusted.onset_kind,  -- drift or decouple
    case
        when adjusted.obstacle is not null then adjusted.obstacle
        when adjusted.p_adjusted > 0.05 then 'no_difference'
        else 'earlier'
    end as finding,  -- earlier, no_difference, confounded or too_few_onsets
    adjusted.confounded_with,  -- other components that always change together with it
    adjusted.held_fixed,  -- other components that were equal wherever it was compared
    exp(adjusted.log_ratio) as hazard_ratio,  -- rate of onsets against the other versions (Peto); above 1: earlier
    exp(adjusted.log_ratio - 1.959964 * adjusted.log_error) as hazard_ratio_low,  -- lower end of its 95% interval
    exp(adjusted.log_ratio + 1.959964 * adjusted.log_error) as hazard_ratio_high,  -- upper end of its 95% interval
    pow(adjusted.log_ratio / adjusted.log_error, 2) as chi_square,  -- of the stratified log-rank test
    case when adjusted.obstacle is null then adjusted.p_value end as p_value,  -- by permutation
    case when adjusted.obstacle is null then adjusted.p_adjusted end as p_adjusted,  -- controlled over all comparisons
    adjusted.pairs,  -- pairs on the version
    adjusted.events,  -- their onsets
    adjusted.other_pairs,  -- pairs on other versions
    adjusted.other_events,  -- their onsets
    adjusted.competing,  -- ends by crash or values that are not finite, on both sides
    adjusted.strata,  -- strata that hold both sides
    own.median_duration,  -- steps until half of the pairs on the version have an onset; null where not reached
    own.restricted_mean,  -- mean steps without onset, within the span that all versions were followed
    equal.median_duration as equal_runs_median,  -- the same for pairs of equal runs
    equal.pair_count as equal_runs_pairs,  -- pairs of equal runs
    equal.event_count as equal_runs_events  -- their onsets
from adjusted
left join curves as own
    on
        adjusted.component_kind = own.component_kind and adjusted.arm = own.arm
        and adjusted.metric_group = own.metric_group and adjusted.onset_kind = own.onset_kind
left join curves as equal
    on
        equal.component_kind = 'none'
        and adjusted.metric_group = equal.metric_group and adjusted.onset_kind = equal.onset_kind
