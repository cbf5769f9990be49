-- Share of pairs without onset up to a step (Kaplan-Meier), by component. Every curve begins with all pairs, and has a
-- row at each step at which any curve of its group falls, so that a chart can draw all of them as stairs.
-- grain: component_kind, arm, metric_group, onset_kind, duration
-- materialized: view
with curves as (
    select
        component_kind,
        arm,
        metric_group,
        onset_kind,
        duration,
        survival
    from mart_drift_survival
    union all
    select distinct
        component_kind,
        arm,
        metric_group,
        onset_kind,
        0 as duration,
        1.0 as survival
    from mart_drift_survival
),

steps as (
    select distinct
        metric_group,
        onset_kind,
        duration
    from curves
),

ends as (
    select
        component_kind,
        arm,
        metric_group,
        onset_kind,
        max(duration) as duration
    from curves
    group by component_kind, arm, metric_group, onset_kind
)

select
    curves.component_kind, -- hardware, driver, ...; none for pairs of equal runs
    curves.arm, -- name and version of the component
    curves.metric_group, -- category of metrics, or all
    curves.onset_kind, -- decouple or drift
    steps.duration, -- steps
    min(curves.survival) as survival -- share of pairs without onset after these steps; it never rises
from curves
inner join ends
    on
        curves.component_kind = ends.component_kind
        and curves.arm = ends.arm
        and curves.metric_group = ends.metric_group
        and curves.onset_kind = ends.onset_kind
inner join steps
    on
        curves.metric_group = steps.metric_group
        and curves.onset_kind = steps.onset_kind
        and curves.duration <= steps.duration
        and ends.duration >= steps.duration
group by curves.component_kind, curves.arm, curves.metric_group, curves.onset_kind, steps.duration
