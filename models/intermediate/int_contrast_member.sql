-- Each pair of each comparison of component versions: its stratum (recipe, and the other components that tell
-- something) and its log-rank score, onset less what its stratum had to expect.
-- grain: component_kind, arm, metric_group, onset_kind, pair_id
-- materialized: table
with contrasts as (
    select * from int_contrast
),

effects as (
    select * from int_factor_effect
),

arms as (
    select
        pair_id,
        factor,
        arm
    from int_survival_arm
    where component_kind <> 'none'
),

survival as (
    select * from int_pair_survival
    where pair_kind = 'migration'
),

sides as (
    select
        contrasts.component_kind,
        contrasts.factor,
        contrasts.arm,
        arms.pair_id,
        bool_or(arms.arm = contrasts.arm) as is_in_arm
    from contrasts
    inner join arms on contrasts.factor = arms.factor
    group by contrasts.component_kind, contrasts.factor, contrasts.arm, arms.pair_id
),

fixed as (
    select
        contrasts.factor,
        contrasts.arm,
        effects.metric_group,
        effects.onset_kind,
        effects.factor as fixed_factor
    from contrasts
    inner join effects
        on
            contrasts.factor <> effects.factor
            and effects.is_held_fixed
            and not list_contains(contrasts.confounded_with, effects.factor)
),

held as (
    select
        factor,
        arm,
        metric_group,
        onset_kind,
        list(fixed_factor order by fixed_factor) as held_fixed
    from fixed
    group by factor, arm, metric_group, onset_kind
),

rest as (
    select
        fixed.factor,
        fixed.arm,
        fixed.metric_group,
        fixed.onset_kind,
        arms.pair_id,
        string_agg(arms.factor || '=' || arms.arm, '|' order by arms.factor, arms.arm) as rest_of_stack
    from fixed
    inner join arms on fixed.fixed_factor = arms.factor
    group by fixed.factor, fixed.arm, fixed.metric_group, fixed.onset_kind, arms.pair_id
),

members as (
    select
        sides.component_kind,
        sides.arm,
        sides.is_in_arm,
        sides.pair_id,
        survival.metric_group,
        survival.onset_kind,
        survival.baseline_run_id,
        survival.recipe || '|' || coalesce(rest.rest_of_stack, '') as stratum,
        coalesce(held.held_fixed, []) as held_fixed,
        survival.duration,
        survival.is_event,
        survival.is_competing
    from sides
    inner join survival on sides.pair_id = survival.pair_id
    left join held
        on
            sides.factor = held.factor and sides.arm = held.arm
            and survival.metric_group = held.metric_group and survival.onset_kind = held.onset_kind
    left join rest
        on
            sides.factor = rest.factor and sides.arm = rest.arm and sides.pair_id = rest.pair_id
            and survival.metric_group = rest.metric_group and survival.onset_kind = rest.onset_kind
),

at_risk as (
    select
        *,
        count(*) over backward as at_risk,
        count(*) filter (where is_in_arm) over backward as at_risk_in_arm,
        count(*) filter (where is_event) over (
            partition by component_kind, arm, metric_group, onset_kind, stratum, duration
        ) as events
    from members
    window backward as (
        partition by component_kind, arm, metric_group, onset_kind, stratum
        order by duration desc
        range unbounded preceding
    )
),

-- Each onset brings its share of the variance of all that come at its step.
hazards as (
    select
        *,
        sum(is_event::integer / at_risk) over (
            partition by component_kind, arm, metric_group, onset_kind, stratum
            order by duration
            range unbounded preceding
        ) as cumulative_hazard,
        case
            when is_event and at_risk > 1
                then
                    (at_risk_in_arm / at_risk) * (1.0 - at_risk_in_arm / at_risk)
                    * (at_risk - events) / (at_risk - 1.0)
            else 0.0
        end as variance
    from at_risk
)

select
    component_kind,  -- kind of the component
    arm,  -- the version that is compared
    is_in_arm,  -- the pair ran on it
    metric_group,  -- a category, or all metrics of training
    onset_kind,  -- drift or decouple
    pair_id,  -- the pair
    baseline_run_id,  -- its baseline
    stratum,  -- recipe, and the versions of what is held fixed
    held_fixed,  -- the other components that tell something, and are equal inside a stratum
    duration,  -- steps to the onset, or to the end
    is_event,  -- the onset came
    is_competing,  -- a crash or a value that is not finite came first
    is_event::integer - cumulative_hazard as score,  -- onset less expected onsets
    -- variance of the sum of the scores in the arm, over all strata
    sum(variance) over (partition by component_kind, arm, metric_group, onset_kind) as total_variance
from hazards
