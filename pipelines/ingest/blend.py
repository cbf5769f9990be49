"""One run told by several logs: the most precise one is believed, metric by metric.

Here belongs the choice among logs of one folder and the report of where they disagree. Reading them belongs to the
readers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl
import pyarrow as pa

from pipelines.ingest.base import ParseIssue, RunLog
from pipelines.ingest.reading import Facts, joined
from warehouse.contract import LOG_PRECISIONS, POINT_SCHEMA

_KEY = ["metric_name", "step_axis", "step"]
_ABSOLUTE = {"float64": 0.0, "float32": 0.0, "decimal3": 5.1e-4, "digits4": 0.0}
_RELATIVE = {"float64": 0.0, "float32": 2.0**-23, "decimal3": 0.0, "digits4": 5.1e-4}
_ENOUGH = 0.5
"""Share of the points of the fullest log that a more precise one must have to be preferred."""
_COMPLETE = 0.9
"""Share of the points of another log below which the one that is kept is said to lack some."""
_COMPARED_POINTS = 1 << 19
"""How many points are compared at a time; those of one metric always are."""


@dataclass(frozen=True)
class Told:
    """One of several logs of a run.

    Attributes:
        log_format: The reader's name.
        log_precision: One of `LOG_PRECISIONS`.
        points: The columns of `POINT_SCHEMA`.
    """

    log_format: str
    log_precision: str
    points: pl.LazyFrame

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of points of each metric; counting passes over all of them, so it is done once."""
        counted = self.points.group_by("metric_name").len().sort("metric_name")
        return dict(counted.collect(engine="streaming").rows())


def choose(logs: Sequence[Told]) -> dict[str, int]:
    """Return the log that each metric is taken from, as an index.

    It is the one that keeps it most precisely, of those that have at least half as many points as the fullest: a log
    that ended early does not hide a long one. Of equally precise ones it is the one with more of its points, then the
    earlier one.
    """
    found: dict[str, list[tuple[int, int, int]]] = {}
    for at, log in enumerate(logs):
        precision = LOG_PRECISIONS.index(log.log_precision)
        for name, count in log.counts.items():
            found.setdefault(name, []).append((precision, -count, at))
    most = {name: max(-entry[1] for entry in entries) for name, entries in found.items()}
    return {
        name: min(entry for entry in entries if -entry[1] >= _ENOUGH * most[name])[2] for name, entries in found.items()
    }


def precisions(logs: Sequence[Told], chosen: Mapping[str, int]) -> dict[str, str]:
    """Return how precisely each metric is kept, for those kept better than the coarsest of the logs that are used."""
    kept = {name: logs[at].log_precision for name, at in chosen.items()}
    coarsest = max(kept.values(), key=LOG_PRECISIONS.index, default="float64")
    return {name: precision for name, precision in kept.items() if precision != coarsest}


def disagreements(logs: Sequence[Told], chosen: Mapping[str, int]) -> list[ParseIssue]:
    """Return where logs contradict those that were preferred.

    Args:
        logs: The logs of a run.
        chosen: What `choose` returned for them.

    Returns:
        An issue for each metric of each log whose current values differ by more than the coarser log can show; it says
        at how many steps, and at which first. And one for each metric of which the log that was preferred lacks points
        that another one has.
    """
    return [
        _shortfall(name, kept, log)
        for log in logs
        for name, count in log.counts.items()
        if (kept := logs[chosen[name]]).counts[name] < _COMPLETE * count
    ] + [
        issue
        for at, log in enumerate(logs)
        for kept, other in enumerate(logs)
        if kept != at
        for some in _portions({n: c + other.counts[n] for n, c in log.counts.items() if chosen[n] == kept})
        for issue in _disagreements(log, other, some)
    ]


def blend(logs: Sequence[RunLog]) -> RunLog:
    """Join the logs of one run, each metric whole from one log; the others are compared with it.

    Args:
        logs: At least one, in the order of preference.
    """
    if len(logs) == 1:
        return logs[0]
    ranked = sorted(logs, key=lambda log: LOG_PRECISIONS.index(log.log_precision))
    told = [Told(log.log_format, log.log_precision, pl.DataFrame(log.points).lazy()) for log in ranked]
    chosen = choose(told)
    tables = [
        log.points.filter(pa.array([chosen[name] == at for name in log.points["metric_name"].to_pylist()], pa.bool_()))
        for at, log in enumerate(ranked)
    ]
    order = [(name, "ascending") for name in ("metric_name", "step_axis", "attempt", "step", "write_no")]
    facts = [Facts(log.log_precision, log.framework, log.status, log.metadata) for log in ranked]
    whole = joined(facts, [one for one, table in zip(facts, tables, strict=True) if table.num_rows])
    return RunLog(
        log_format=ranked[0].log_format,
        points=pa.concat_tables(tables).sort_by(order).cast(POINT_SCHEMA),
        log_precision=whole.log_precision,
        framework=whole.framework,
        metadata=whole.metadata,
        issues=(*(issue for log in ranked for issue in log.issues), *disagreements(told, chosen)),
        status=whole.status,
    )


def _shortfall(name: str, kept: Told, other: Told) -> ParseIssue:
    points, more = kept.counts[name], other.counts[name]
    reason = f"{name} is kept from {kept.log_format} with {points} points, of which {other.log_format} has {more}"
    return ParseIssue(kept.log_format, 0, reason, "", 0)


def _portions(counts: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield metrics that together have about as many points as are compared at a time."""
    some: list[str] = []
    points = 0
    for name, count in counts.items():
        some.append(name)
        points += count
        if points >= _COMPARED_POINTS:
            yield some
            some, points = [], 0
    if some:
        yield some


def _current(log: Told, metrics: Sequence[str]) -> pl.DataFrame:
    some = log.points.filter(pl.col("metric_name").is_in(metrics))
    frame = some.select(*_KEY, "attempt", "write_no", "value", "source_file").collect(engine="streaming")
    return frame.sort("attempt", "write_no").unique(_KEY, keep="last")


def _shown(log: Told, column: str) -> pl.Expr:
    """Return by how much a value in a log may be off, by rounding alone."""
    value = pl.col(column)
    if log.log_precision != "text":
        return _ABSOLUTE[log.log_precision] + _RELATIVE[log.log_precision] * value.abs()
    # A text of any length was rounded at its last digit: that of the shortest text of the value, or the sixth of those
    # that count (%g) where the value shows no decimals.
    digits = value.abs().cast(pl.String).str.extract_groups(r"^\d+\.(\d*?)0*(?:e([+-]?\d+))?$")
    decimals = digits.struct.field("1").str.len_chars().cast(pl.Float64)
    exponent = digits.struct.field("2").cast(pl.Float64).fill_null(0.0)
    last_digit = pl.when(decimals > 0).then(0.51 * pl.lit(10.0).pow(exponent - decimals))
    return last_digit.otherwise(5.1e-6 * value.abs())


def _disagreements(log: Told, other: Told, metrics: Sequence[str]) -> Iterator[ParseIssue]:
    """Yield an issue for each of the metrics that a log contradicts another one in."""
    both = _current(log, metrics).join(_current(other, metrics), on=_KEY, suffix="_kept")
    shown = pl.max_horizontal(_shown(log, "value"), _shown(other, "value_kept"))
    apart = both.filter(
        pl.col("value").is_finite()
        & pl.col("value_kept").is_finite()
        & ((pl.col("value") - pl.col("value_kept")).abs() > shown)
    )
    steps = dict(both.group_by("metric_name").len().rows())
    for name, count, first, source in (
        apart.group_by("metric_name")
        .agg(pl.len(), pl.col("step").min().alias("first"), pl.col("source_file").min())
        .sort("metric_name")
        .rows()
    ):
        reason = (
            f"{name} differs from {other.log_format}, which was kept, "
            f"at {count} of {steps[name]} steps, first at step {first}"
        )
        yield ParseIssue(source, 0, reason, "", 0)
