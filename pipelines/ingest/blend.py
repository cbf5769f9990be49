"""One run told by several logs: the most precise one is believed, metric by metric.

Here belongs the choice among logs of one folder and the report of where they disagree. Reading them belongs to the
readers.
"""

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from pipelines.ingest.base import ParseIssue, RunLog
from warehouse.contract import LOG_PRECISIONS, POINT_SCHEMA

_KEY = ["metric_name", "step_axis", "step"]
_ABSOLUTE = {"float64": 0.0, "float32": 0.0, "decimal3": 5.1e-4, "digits4": 0.0, "text": 0.0}
_RELATIVE = {"float64": 0.0, "float32": 2.0**-23, "decimal3": 0.0, "digits4": 5.1e-4, "text": 1e-6}


def blend(logs: Sequence[RunLog]) -> RunLog:
    """Join the logs of one run.

    Each metric comes whole from the log that keeps it most precisely; of equally precise logs, from the one with
    more of its points, then from the earlier one. The others are compared with it: where current values differ by
    more than the coarser log can show, an issue says at how many steps, and at which first.

    Args:
        logs: At least one, in the order of preference.
    """
    if len(logs) == 1:
        return logs[0]
    ranked = sorted(logs, key=lambda log: LOG_PRECISIONS.index(log.log_precision))
    chosen = _choose(ranked)
    tables = [
        log.points.filter(pa.array([chosen[name] is log for name in log.points["metric_name"].to_pylist()], pa.bool_()))
        for log in ranked
    ]
    order = [(name, "ascending") for name in ("metric_name", "step_axis", "attempt", "step", "write_no")]
    used = [log for log, table in zip(ranked, tables, strict=True) if table.num_rows]
    issues = [issue for log in ranked for issue in log.issues]
    for log in ranked:
        issues += _disagreements(log, chosen)
    return RunLog(
        log_format=ranked[0].log_format,
        points=pa.concat_tables(tables).sort_by(order).cast(POINT_SCHEMA),
        log_precision=max((log.log_precision for log in used), key=LOG_PRECISIONS.index, default="float64"),
        framework=next((log.framework for log in ranked if log.framework), ""),
        metadata={key: value for log in reversed(ranked) for key, value in log.metadata.items()},
        issues=tuple(issues),
        status=next((log.status for log in ranked if log.status != "unknown"), "unknown"),
    )


def _choose(ranked: Sequence[RunLog]) -> dict[str, RunLog]:
    """Return the log that each metric is taken from."""
    best: dict[str, tuple[int, int, RunLog]] = {}
    for log in ranked:
        precision = LOG_PRECISIONS.index(log.log_precision)
        for name, count in _counts(log):
            known = best.get(name)
            if known is None or (precision, -count) < (known[0], known[1]):
                best[name] = (precision, -count, log)
    return {name: entry[2] for name, entry in best.items()}


def _counts(log: RunLog) -> list[tuple[str, int]]:
    frame = pl.DataFrame(log.points.select(["metric_name"]))
    return frame.group_by("metric_name", maintain_order=True).len().rows()


def _current(log: RunLog) -> pl.DataFrame:
    frame = pl.DataFrame(log.points.select([*_KEY, "attempt", "write_no", "value", "source_file"]))
    return frame.sort("attempt", "write_no").unique(_KEY, keep="last")


def _disagreements(log: RunLog, chosen: dict[str, RunLog]) -> list[ParseIssue]:
    """Return an issue for each metric of a log that another log was preferred for and that it contradicts."""
    issues = []
    for other in {id(other): other for other in chosen.values() if other is not log}.values():
        shared = [name for name, _ in _counts(log) if chosen[name] is other]
        if not shared:
            continue
        absolute, relative = _ABSOLUTE[log.log_precision], _RELATIVE[log.log_precision]
        both = _current(log).filter(pl.col("metric_name").is_in(shared)).join(_current(other), on=_KEY, suffix="_kept")
        apart = both.filter(
            pl.col("value").is_finite()
            & pl.col("value_kept").is_finite()
            & ((pl.col("value") - pl.col("value_kept")).abs() > absolute + relative * pl.col("value_kept").abs())
        )
        for name, count, first, source in (
            apart.group_by("metric_name")
            .agg(pl.len(), pl.col("step").min().alias("first"), pl.col("source_file").first())
            .sort("metric_name")
            .rows()
        ):
            steps = both.filter(pl.col("metric_name") == name).height
            reason = (
                f"{name} differs from {other.log_format}, which is more precise and was kept, "
                f"at {count} of {steps} steps, first at step {first}"
            )
            issues.append(ParseIssue(source, 0, reason, "", 0))
    return issues
