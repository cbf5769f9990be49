"""Curves of pairs that have not drifted, for the index page."""

import duckdb

from warehouse.report.data import Row, rows

_CURVES = """
with components as (
    select
        bridge.run_id,
        component.component_kind,
        concat_ws(' ', component.component_name, component.component_version) as has
    from bridge_run_component as bridge
    inner join dim_component as component on bridge.component_id = component.component_id
),

judged as (
    select
        components.component_kind,
        components.has,
        coalesce(verdicts.first_onset_step, verdicts.last_common_step) as step,
        (verdicts.first_onset_step is not null)::integer as event
    from mart_pair_verdict as verdicts
    inner join dim_migration as pairs on verdicts.pair_id = pairs.pair_id
    inner join components on pairs.candidate_run_id = components.run_id
    where
        pairs.pair_kind = 'migration'
        and verdicts.verdict not in ('insufficient', 'initial_mismatch', 'parity_broken')
        and verdicts.last_common_step is not null
),

counted as (
    select component_kind, has, step, sum(event) as events, count(*) as leaving
    from judged
    group by component_kind, has, step
),

at_risk as (
    select
        *,
        sum(leaving) over (partition by component_kind, has order by step desc) as risk
    from counted
)

select
    component_kind,
    has,
    step,
    sum(events) over (partition by component_kind, has) as all_events,
    sum(leaving) over (partition by component_kind, has) as pairs,
    product(1.0 - events * 1.0 / risk) over (partition by component_kind, has order by step) as share
from at_risk
order by component_kind, has, step
"""


def hardware_curves(con: duckdb.DuckDBPyConnection) -> list[Row]:
    """Return the Kaplan-Meier curve of each hardware of the candidates: rows of group, step, share.

    The estimate is the product over steps of 1 - drifted / still watched (Kaplan and Meier 1958). A pair without
    drift leaves at its last common step.
    """
    return _named([row for row in rows(con, _CURVES) if row["component_kind"] == "hardware"])


def version_curves(con: duckdb.DuckDBPyConnection) -> list[Row]:
    """Return the same by version of the other components, of those that some pair drifted on, earliest first."""
    others = [row for row in rows(con, _CURVES) if row["component_kind"] != "hardware" and row["all_events"]]
    return _named(others)


def _named(curves: list[Row]) -> list[Row]:
    found: list[Row] = []
    for row in curves:
        group = f"{row['component_kind']} {row['has']} ({row['all_events']:.0f} / {row['pairs']:.0f})"
        if not found or found[-1]["group"] != group:
            found.append({"group": group, "step": 0, "share": 1.0})
        found.append({"group": group, "step": row["step"], "share": row["share"]})
    return found
