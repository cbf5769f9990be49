"""What single assets show beyond their table: verdicts in words, numbers and a picture; anomalies in numbers."""

import base64
from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg
import duckdb

from pipelines.defs.metadata import markdown_table
from warehouse.report.data import Row, rows
from warehouse.report.onset_picture import MOST_PAIRS, onset_picture, onset_rows

_LINES = 5
_VERDICT_COLUMNS = ("migration", "candidate", "verdict", "grade", "onset", "first metric", "stage")


def verdict_metadata(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return how many pairs have which verdict, what drifted first, and the onsets as a picture."""
    pairs = onset_rows(con)
    drifted = [pair for pair in pairs if pair["first_onset_step"] is not None]
    lines = [
        f"{pair['migration']}: {pair['candidate']} drifts from step {_onset(pair)}, {pair['first_stage']}"
        for pair in drifted
    ]
    more = len(lines) - _LINES
    counts = {name: sum(pair["verdict"] == name for pair in pairs) for name in _verdict_names(con)}
    return {
        "drifted_first": "; ".join(lines[:_LINES]) + (f"; and {more} more" if more > 0 else "") or "no pair drifts",
        "onsets": dg.MetadataValue.md(_onset_page(pairs)),
        "pairs": len(pairs),
        **{f"pairs_{name}": count for name, count in counts.items()},
    }


def _verdict_names(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Return every verdict that some pair has, of equal runs too, so that a curve does not end when one is gone."""
    return [name for (name,) in con.execute("select distinct verdict from mart_pair_verdict order by 1").fetchall()]


def _onset(pair: Row) -> str:
    if pair["first_onset_step"] is None:
        return ""
    interval = "" if pair["low"] is None else f" ({pair['low']} to {pair['high']})"
    return f"{pair['first_onset_step']}{interval}"


def _onset_page(pairs: list[Row]) -> str:
    """Return picture and table of the pairs as Markdown; the picture is part of the text."""
    if not pairs:
        return "No pair yet: a migration needs a baseline and a candidate."
    picture = base64.b64encode(onset_picture(pairs).encode()).decode()
    shown = pairs[:MOST_PAIRS]
    table = markdown_table(
        _VERDICT_COLUMNS,
        [
            (p["migration"], p["candidate"], p["verdict"], p["grade"], _onset(p), p["first_metric"], p["first_stage"])
            for p in shown
        ],
    )
    rest = f"\n\nThe first {len(shown)} of {len(pairs)} pairs." if len(pairs) > len(shown) else ""
    return f"![Onsets of the pairs over steps](data:image/svg+xml;base64,{picture})\n\n{table}{rest}"


def anomaly_metadata(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return how many rules are broken and bent, and by how many runs."""
    (found,) = rows(
        con,
        """
        select
            count(*) filter (where severity = 'error') as errors,
            count(*) filter (where severity = 'warning') as warnings,
            count(distinct run_id) as runs_with_anomalies
        from mart_anomaly
        """,
    )
    return found


def profile_metadata(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return how many values are not finite, and of how many metrics."""
    (found,) = rows(
        con,
        """
        select
            coalesce(sum(point_count - finite_count), 0)::bigint as nonfinite_values,
            count(*) filter (where finite_count < point_count) as nonfinite_metrics
        from mart_metric_profile
        """,
    )
    return found


SHOWN: Mapping[str, Callable[[duckdb.DuckDBPyConnection], dict[str, Any]]] = {
    "mart_pair_verdict": verdict_metadata,
    "mart_anomaly": anomaly_metadata,
    "mart_metric_profile": profile_metadata,
}
"""Metadata of single tables, by table."""
