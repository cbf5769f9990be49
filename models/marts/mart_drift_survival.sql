-- Kaplan-Meier curve of staying free of an onset, by component version, for each category and for all metrics of
-- training; the arm `equal runs` shows what no fault at all looks like.
-- grain: component_kind, arm, metric_group, onset_kind, duration
-- materialized: table
with survival as (
    select * from int_pair_survival
),

arms as (
    select * from int_survival_arm
),

members as (
    select
        arms.component_kind,
        arms.component_name,
        arms.component_version,
        arms.arm,
        survival.metric_group,
        survival.onset_kind,
        survival.duration,
        survival.is_event,
        survival.is_competing
    from survival
    inner join arms on survival.pair_id = arms.pair_id
),

ends as (
    select
        component_kind,
        arm,
        metric_group,
        onset_kind,
        any_value(component_name) as component_name,
        any_value(component_version) as component_version,
        duration,
        count(*) as leaving,
        count(*) filter (where is_event) as events,
        count(*) filter (where is_competing) as competing,
        count(*) filter (where is_event or is_competing) as ended,
        count(*) filter (where not is_event and not is_competing) as censored
    from members
    group by component_kind, arm, metric_group, onset_kind, duration
),

at_risk as (
    select
        *,
        cast(sum(leaving) over (
            partition by component_kind, arm, metric_group, onset_kind
            order by duration desc
            rows unbounded preceding
        ) as bigint) as at_risk
    from ends
),

-- The product is a sum of logs; where everybody at risk has an onset the log has no value and the curve is 0.
curves as (
    select
        *,
        case
            when bool_or(events = at_risk) over along then 0.0
            else exp(sum(case when events < at_risk then ln(1.0 - events * 1.0 / at_risk) else 0.0 end) over along)
        end as survival,
        sum(case when events < at_risk then events * 1.0 / (at_risk * (at_risk - events)) end) over along
            as greenwood,
        case
            when bool_or(ended = at_risk) over along then 0.0
            else exp(sum(case when ended < at_risk then ln(1.0 - ended * 1.0 / at_risk) else 0.0 end) over along)
        end as free_of_any
    from at_risk
    window along as (
        partition by component_kind, arm, metric_group, onset_kind
        order by duration
        rows unbounded preceding
    )
),

-- Restricted means of arms are compared over the span that all arms of a kind were followed.
longest as (
    select
        component_kind,
        arm,
        metric_group,
        onset_kind,
        max(duration) as longest
    from ends
    group by component_kind, arm, metric_group, onset_kind
),

spans as (
    select
        component_kind,
        metric_group,
        onset_kind,
        min(longest) as span
    from longest
    group by component_kind, metric_group, onset_kind
),

pieces as (
    select
        curves.*,
        spans.span,
        lag(curves.survival, 1, 1.0) over along as previous_survival,
        lag(curves.free_of_any, 1, 1.0) over along as previous_free,
        lag(curves.duration, 1, 0) over along as previous_duration,
        lead(curves.duration) over along as next_duration
    from curves
    inner join spans
        on
            curves.component_kind = spans.component_kind and curves.metric_group = spans.metric_group
            and curves.onset_kind = spans.onset_kind
    window along as (
        partition by curves.component_kind, curves.arm, curves.metric_group, curves.onset_kind
        order by curves.duration
    )
),

summed as (
    select
        *,
        sum(previous_free * events / at_risk) over (
            partition by component_kind, arm, metric_group, onset_kind
            order by duration
            rows unbounded preceding
        ) as cumulative_incidence,
        min(case when survival <= 0.5 then duration end) over whole as median_duration,
        cast(sum(leaving) over whole as bigint) as pair_count,
        cast(sum(events) over whole as bigint) as event_count,
        cast(sum(competing) over whole as bigint) as competing_count,
        sum(previous_survival * greatest(least(duration, span) - least(previous_duration, span), 0)) over whole
        + coalesce(max(
            case when next_duration is null then survival * greatest(span - duration, 0) end
        ) over whole, 0.0) as restricted_mean
    from pieces
    window whole as (partition by component_kind, arm, metric_group, onset_kind)
)

select
    component_kind,  -- kind of the component, none for equal runs
    component_name,  -- its name
    component_version,  -- its version
    arm,  -- name and version, or equal runs
    metric_group,  -- a category, or all metrics of training
    onset_kind,  -- drift or decouple
    duration,  -- steps since the first common one
    at_risk,  -- pairs without an end before
    events,  -- onsets at this duration
    competing,  -- other ends at this duration: crash, or not finite
    censored,  -- pairs that were followed no further
    survival,  -- share without onset, other ends taken as censored
    survival * sqrt(coalesce(greenwood, 0.0)) as standard_error,  -- of the share (Greenwood)
    cumulative_incidence,  -- share with an onset, other ends taken as ends (Aalen and Johansen)
    median_duration,  -- duration at which half have an onset; null where that is not reached
    span,  -- duration over which the restricted mean is taken: that which all arms of the kind were followed
    restricted_mean,  -- mean duration without onset within the span
    pair_count,  -- pairs of the arm
    event_count,  -- their onsets
    competing_count  -- their other ends
from summed
