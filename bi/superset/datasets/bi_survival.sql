-- Share of pairs without onset up to a step (Kaplan-Meier), by component; every curve begins with all pairs.
-- grain: component_kind, arm, metric_group, onset_kind, duration
-- materialized: view
select
    component_kind, -- hardware, driver, ...; none for pairs of equal runs
    arm, -- name and version of the component
    metric_group, -- category of metrics, or all
    onset_kind, -- decouple or drift
    duration, -- steps
    survival, -- share of pairs without onset after these steps
    pair_count -- pairs that the curve is made from
from mart_drift_survival
union all
select distinct
    component_kind,
    arm,
    metric_group,
    onset_kind,
    0 as duration,
    1.0 as survival,
    pair_count
from mart_drift_survival
