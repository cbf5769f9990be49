"""What a log holds, in short: the content of `firstdrift inspect`.

Nothing is changed or written. Which metrics the catalogue knows is for the caller to add: this module knows the log
alone.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.ingest.base import ParseIssue, RunLog, begins_late
from pipelines.ingest.registry import log_files, read_log


@dataclass(frozen=True)
class AxisSummary:
    """One attempt on one step axis: its points, its distinct steps, the lowest two and the highest of them."""

    step_axis: str
    attempt: int
    points: int
    steps: int
    first_step: int
    second_step: int
    last_step: int


@dataclass(frozen=True)
class MetricSummary:
    """One metric on one axis: how often it was written, and what of that was not finite."""

    metric_name: str
    step_axis: str
    points: int
    first_step: int
    last_step: int
    not_finite: dict[str, int]


@dataclass(frozen=True)
class LogSummary:
    """A log in short.

    Attributes:
        log_format, log_precision, framework, status: As the log tells them.
        files: The files read.
        points: Number of points.
        axes: One entry for each axis and attempt.
        metrics: One entry for each metric and axis, by name.
        value_kinds: Number of points by kind.
        metadata: Facts about the run.
        issues: What could not be read.
        notes: Sentences about what a reader should know: a log that begins in the middle of a run, restarts.
    """

    log_format: str
    log_precision: str
    framework: str
    status: str
    files: tuple[str, ...]
    points: int
    axes: tuple[AxisSummary, ...]
    metrics: tuple[MetricSummary, ...]
    value_kinds: dict[str, int]
    metadata: dict[str, Any]
    issues: tuple[ParseIssue, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as plain data for JSON."""
        return asdict(self)


def summarize(path: Path | Sequence[Path], columns: Sequence[str] | None = None, run: str | None = None) -> LogSummary:
    """Read a log and say what it holds.

    Args:
        path: A file or folder, or several files of one run.
        columns: Names of the columns of a table without a header.
        run: Name or identifier of the run, for a store that holds several.

    Raises:
        LogError: If nothing of it can be read.
    """
    log = read_log(path, columns, run)
    frame = pl.DataFrame(log.points.select(["metric_name", "step_axis", "attempt", "step", "value_kind"]))
    axes = _axes(frame)
    return LogSummary(
        log_format=log.log_format,
        log_precision=log.log_precision,
        framework=log.framework,
        status=log.status,
        files=tuple(str(file) for file in log_files(path)),
        points=frame.height,
        axes=axes,
        metrics=_metrics(frame),
        value_kinds=dict(frame.group_by("value_kind").len().sort("value_kind").rows()),
        metadata=dict(log.metadata),
        issues=log.issues,
        notes=tuple(_notes(log, axes)),
    )


def _axes(frame: pl.DataFrame) -> tuple[AxisSummary, ...]:
    grouped = frame.group_by("step_axis", "attempt").agg(
        pl.len(),
        pl.col("step").n_unique().alias("steps"),
        pl.col("step").min().alias("first"),
        pl.col("step").unique().bottom_k(2).max().alias("second"),
        pl.col("step").max().alias("last"),
    )
    return tuple(AxisSummary(*row) for row in grouped.sort("step_axis", "attempt").rows())


def _metrics(frame: pl.DataFrame) -> tuple[MetricSummary, ...]:
    key = ["metric_name", "step_axis"]
    bad = frame.filter(pl.col("value_kind") != "finite").group_by(*key, "value_kind").len().sort("value_kind")
    not_finite: dict[tuple[str, str], dict[str, int]] = {}
    for name, axis, kind, count in bad.rows():
        not_finite.setdefault((name, axis), {})[kind] = count
    grouped = frame.group_by(key).agg(pl.len(), pl.col("step").min().alias("first"), pl.col("step").max().alias("last"))
    return tuple(
        MetricSummary(name, axis, points, first, last, not_finite.get((name, axis), {}))
        for name, axis, points, first, last in grouped.sort(key).rows()
    )


def _notes(log: RunLog, axes: Sequence[AxisSummary]) -> list[str]:
    notes = []
    for axis in axes:
        if axis.attempt == 1 and begins_late(axis.first_step, axis.second_step):
            notes.append(
                f"The log begins at step {axis.first_step} of the axis {axis.step_axis}: what came before is not in it."
            )
        if axis.attempt > 1:
            notes.append(f"Attempt {axis.attempt} on the axis {axis.step_axis} begins again at step {axis.first_step}.")
    remarks = [issue for issue in log.issues if issue.source_position == 0 and issue.lost_points == 0]
    notes += [f"{remark.source_file}: {remark.reason}." for remark in remarks]
    lost = sum(issue.lost_points or 0 for issue in log.issues)
    unknown = sum(issue.lost_points is None for issue in log.issues)
    if pieces := len(log.issues) - len(remarks):
        more = f" and an unknown number in {unknown} places" if unknown else ""
        notes.append(f"{pieces} pieces could not be read; {lost} points{more} are quarantined.")
    if log.log_format == "clearml":
        notes.append("ClearML writes values that are not finite as 0.0: its zeros can't be trusted.")
    return notes
