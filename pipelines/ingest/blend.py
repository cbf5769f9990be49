"""One run told by several logs: the most precise one is believed, metric by metric.

Here belongs the choice among logs of one folder and the report of where they disagree. Reading them belongs to the
readers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from pipelines.ingest.base import ParseIssue, RunLog
from pipelines.ingest.reading import Facts, joined
from warehouse.contract import LOG_PRECISIONS, POINT_SCHEMA

_KEY = ["metric_name", "step_axis", "step"]
_ABSOLUTE = {"float64": 0.0, "float32": 0.0, "decimal3": 5.1e-4, "digits4": 0.0, "text": 0.0}
_RELATIVE = {"float64": 0.0, "float32": 2.0**-23, "decimal3": 0.0, "digits4": 5.1e-4, "text": 1e-6}
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


def choose(logs: Sequence[Told]) -> dict[str, int]:
    """Return the log that each metric is taken from, as an index.

    It is the one that keeps it most precisely; of equally precise ones, the one with more of its points, then the
    earlier one.
    """
    best: dict[str, tuple[int, int, int]] = {}
    for at, log in enumerate(logs):
        precision = LOG_PRECISIONS.index(log.log_precision)
        for name, count in _counts(log).items():
            best[name] = min(best.get(name, (len(LOG_PRECISIONS), 0, 0)), (precision, -count, at))
    return {name: entry[2] for name, entry in best.items()}


def disagreements(logs: Sequence[Told], chosen: Mapping[str, int]) -> list[ParseIssue]:
    """Return where logs contradict those that were preferred.

    Args:
        logs: The logs of a run.
        chosen: What `choose` returned for them.

    Returns:
        An issue for each metric of each log whose current values differ by more than the coarser log can show; it says
        at how many steps, and at which first.
    """
    counts = [_counts(log) for log in logs]
    return [
        issue
        for at, log in enumerate(logs)
        for kept, other in enumerate(logs)
        if kept != at
        for some in _portions({n: c + counts[kept][n] for n, c in counts[at].items() if chosen[n] == kept})
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


def _counts(log: Told) -> dict[str, int]:
    return dict(log.points.group_by("metric_name").len().sort("metric_name").collect(engine="streaming").rows())


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


def _disagreements(log: Told, other: Told, metrics: Sequence[str]) -> Iterator[ParseIssue]:
    """Yield an issue for each of the metrics that a log contradicts another one in."""
    absolute, relative = _ABSOLUTE[log.log_precision], _RELATIVE[log.log_precision]
    both = _current(log, metrics).join(_current(other, metrics), on=_KEY, suffix="_kept")
    apart = both.filter(
        pl.col("value").is_finite()
        & pl.col("value_kept").is_finite()
        & ((pl.col("value") - pl.col("value_kept")).abs() > absolute + relative * pl.col("value_kept").abs())
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
