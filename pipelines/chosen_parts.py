"""Runs that several trackers logged: which of their parts hold the points that count.

Each log is read and kept in the lake on its own, so one that grew is read on from where it was. What counts is chosen
from those parts: a part of which every metric is taken counts as it is; of the others, what is taken is written as a
further part. Which log a metric is taken from, and what a disagreement is, belongs to `pipelines.ingest.blend`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.ingest.base import issues_table
from pipelines.ingest.blend import Told, choose, disagreements, precisions
from warehouse import lake as lake_files
from warehouse.contract import POINT_SCHEMA

_NOTHING = "nothing"


@dataclass(frozen=True)
class ChosenParts:
    """What counts of the logs of a run.

    Attributes:
        used: Formats of the logs that some metric is taken from.
        precisions: How precisely each metric is kept, for those kept better than the coarsest of these logs.
        points: Names of the parts.
        issues: Names of the parts that say where the logs disagree.
        state: What the next pass needs to write only what changed, fit for JSON.
    """

    used: frozenset[str]
    precisions: Mapping[str, str]
    points: tuple[str, ...]
    issues: tuple[str, ...]
    state: dict[str, Any]


def choose_parts(
    folder: Path, logs: Sequence[tuple[str, str, tuple[str, ...]]], before: Mapping[str, Any] | None
) -> ChosenParts:
    """Choose what counts of several logs of a run, and write what is not there as a part.

    Args:
        folder: Of the run.
        logs: Format, precision and names of the parts with points, the most precise log first.
        before: The state of an earlier pass.
    """
    told = [Told(name, precision, _scan(folder, parts)) for name, precision, parts in logs]
    chosen = choose(told)
    taken = {metric: logs[at][0] for metric, at in chosen.items()}
    # A part never changes, so what was taken of it still holds if its metrics are still taken from the same logs.
    holds = before is not None and before["taken"].items() <= taken.items()
    known: Mapping[str, str] = before["parts"] if before is not None and holds else {}
    metrics = {name: {metric for metric, log in taken.items() if log == name} for name, _, _ in logs}
    parts = {
        part: known.get(part) or _taken_of(folder, part, metrics[name]) for name, _, names in logs for part in names
    }
    issues = disagreements(told, chosen)
    return ChosenParts(
        used=frozenset(taken.values()),
        precisions=precisions(told, chosen),
        points=tuple(part for part in parts.values() if part != _NOTHING),
        issues=(lake_files.write_part(folder, issues_table(issues)),) if issues else (),
        state={"taken": taken, "parts": parts},
    )


def _scan(folder: Path, parts: Sequence[str]) -> pl.LazyFrame:
    if not parts:
        return pl.DataFrame(POINT_SCHEMA.empty_table()).lazy()
    return pl.scan_parquet([folder / part for part in parts], glob=False)


def _taken_of(folder: Path, part: str, metrics: set[str]) -> str:
    """Return the name of a part with those metrics of a part alone; it may be the part itself."""
    names = pl.scan_parquet(folder / part, glob=False).select("metric_name").unique().collect()["metric_name"]
    unwanted = [name for name in names if name not in metrics]
    if not unwanted:
        return part
    if len(unwanted) == len(names):
        return _NOTHING
    table = lake_files.read_part(folder, part)
    wanted = pl.Series(table["metric_name"]).is_in(list(metrics))
    return lake_files.write_part(folder, table.filter(wanted.to_arrow()))
