-- Each pair of each comparison of component versions: its stratum (recipe, and the rest of the stack as far as it
-- varies freely) and its log-rank score, onset less what its stratum had to expect.
-- grain: component_kind, arm, metric_group, onset_kind, pair_id
-- materialized: table
with contrasts as (
    select * from int_contrast
),

arms as (
    select
        pair_id,
        component_kind,
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
        contrasts.arm,
        contrasts.confounded_with,
        arms.pair_id,
        arms.arm = contrasts.arm as is_in_arm
    from contrasts
    inner join arms on contrasts.component_kind = arms.component_kind
),

rest as (
    select
        sides.component_kind,
        sides.arm,
        sides.pair_id,
        string_agg(
            case
                when not list_contains(sides.confounded_with, others.component_kind)
                    then others.component_kind || '=' || others.arm
            end, '|'
            order by others.component_kind, others.arm
        ) as rest_of_stack
    from sides
    left join arms as others on sides.pair_id = others.pair_id and sides.component_kind <> others.component_kind
    group by sides.component_kind, sides.arm, sides.pair_id
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
        survival.duration,
        survival.is_event,
        survival.is_competing
    from sides
    inner join rest
        on
            sides.component_kind = rest.component_kind and sides.arm = rest.arm
            and sides.pair_id = rest.pair_id
    inner join survival on sides.pair_id = survival.pair_id
),

-- Of each stratum and duration: who leaves, who has an onset, on which side.
leaving as (
    select
        component_kind,
        arm,
        metric_group,
        onset_kind,
        stratum,
        duration,
        count(*) as leaving,
        count(*) filter (where is_in_arm) as leaving_in_arm,
        count(*) filter (where is_event) as events
    from members
    group by component_kind, arm, metric_group, onset_kind, stratum, duration
),

at_risk as (
    select
        *,
        sum(leaving) over backward as at_risk,
        sum(leaving_in_arm) over backward as at_risk_in_arm
    from leaving
    window backward as (
        partition by component_kind, arm, metric_group, onset_kind, stratum
        order by duration desc
        rows unbounded preceding
    )
),

hazards as (
    select
        *,
        sum(events * 1.0 / at_risk) over (
            partition by component_kind, arm, metric_group, onset_kind, stratum
            order by duration
            rows unbounded preceding
        ) as cumulative_hazard,
        case
            when at_risk > 1
                then
                    events * (at_risk_in_arm * 1.0 / at_risk) * (1.0 - at_risk_in_arm * 1.0 / at_risk)
                    * (at_risk - events) / (at_risk - 1.0)
            else 0.0
        end as variance
    from at_risk
),

variances as (
    select
        *,
        sum(variance) over (partition by component_kind, arm, metric_group, onset_kind) as total_variance
    from hazards
)

select
    members.component_kind,  -- kind of the component
    members.arm,  -- the version that is compared
    members.is_in_arm,  -- the pair ran on it
    members.metric_group,  -- a category, or all metrics of training
    members.onset_kind,  -- drift or decouple
    members.pair_id,  -- the pair
    members.baseline_run_id,  -- its baseline
    members.stratum,  -- recipe, and the rest of the stack
    members.duration,  -- steps to the onset, or to the end
    members.is_event,  -- the onset came
    members.is_competing,  -- a crash or a value that is not finite came first
    members.is_event::integer - variances.cumulative_hazard as score,  -- onset less expected onsets
    variances.total_variance  -- variance of the sum of the scores in the arm, over all strata
from members
inner join variances
    on
        members.component_kind = variances.component_kind and members.arm = variances.arm
        and members.metric_group = variances.metric_group and members.onset_kind = variances.onset_kind
        and members.stratum = variances.stratum and members.duration = variances.duration
