"""Curves of pairs that have not drifted, for the index page; mart_drift_survival has computed them."""

import duckdb

from warehouse.report.data import Row, rows

_CURVES = """
select component_kind, arm, duration, survival, event_count, pair_count
from mart_drift_survival
where metric_group = 'all' and onset_kind = 'drift'
order by component_kind = 'none', component_kind, arm, duration
"""


def hardware_curves(con: duckdb.DuckDBPyConnection) -> list[Row]:
    """Return the curve of each hardware of the candidates, and that of equal runs: rows of group, step, share."""
    return _named([row for row in rows(con, _CURVES) if row["component_kind"] in ("hardware", "none")])


def version_curves(con: duckdb.DuckDBPyConnection) -> list[Row]:
    """Return the same by version of the other components, of those on which some pair drifted."""
    found = [row for row in rows(con, _CURVES) if row["component_kind"] not in ("hardware", "none")]
    return _named([row for row in found if row["event_count"]])


def contrasts(con: duckdb.DuckDBPyConnection) -> list[Row]:
    """Return what mart_component_contrast finds about each version: does it drift earlier than the others?"""
    return rows(
        con,
        """
        select component_kind, arm, finding, confounded_with, pairs, events, other_pairs, other_events,
            hazard_ratio, hazard_ratio_low, hazard_ratio_high, p_adjusted
        from mart_component_contrast
        where metric_group = 'all' and onset_kind = 'drift'
        order by p_adjusted nulls last, component_kind, arm
        """,
    )


def _named(curves: list[Row]) -> list[Row]:
    """Return the curves, those that are equal as one under all their names: on each other only one would be seen."""
    points: dict[str, list[tuple[int, float]]] = {}
    for row in curves:
        kind = "" if row["component_kind"] == "none" else f"{row['component_kind']} "
        group = f"{kind}{row['arm']} ({row['event_count']} / {row['pair_count']})"
        points.setdefault(group, [(0, 1.0)]).append((row["duration"], row["survival"]))
    names: dict[tuple[tuple[int, float], ...], list[str]] = {}
    for group, curve in points.items():
        names.setdefault(tuple(curve), []).append(group)
    return [
        {"group": "\n".join(groups), "step": step, "share": share}
        for curve, groups in names.items()
        for step, share in curve
    ]
