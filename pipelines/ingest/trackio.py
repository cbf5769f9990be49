"""trackio's SQLite files: one file a project, one JSON object a row.

Non-finite values are the texts "NaN", "Infinity" and "-Infinity"; repeated steps are all kept and read in the
order of their rows. Where a project holds several runs, the run is chosen by its name or identifier. A run
that was resumed keeps its identifier.
"""

import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from pipelines.ingest import metadata
from pipelines.ingest.draft import SLICE_POINTS, Draft, LogFile
from pipelines.ingest.sqlite_store import cell_text, choose, columns, connect, digest, row_number, settled_at
from pipelines.ingest.text_number import STEP_FAULT, whole_step
from pipelines.ingest.verl_jsonl import scan_row

NAME = "trackio"


def sniff(path: Path) -> bool:
    """Tell whether this is a project of trackio."""
    return path.is_file() and {"run_name", "step", "metrics", "timestamp"} <= columns(path, "metrics")


def scan(log: LogFile) -> Iterator[Draft]:
    """Yield the points of one run in the order of writing, behind the last row that was read.

    Raises:
        LogError: If it is not clear which run is meant, or the file is damaged.
    """
    draft = log.draft()
    with connect(log.path) as con:
        key, run = _chosen(con, log)
        if key in columns(log.path, "configs"):
            for (content,) in con.execute(f"select config from configs where {key} = ?", (run,)):
                draft.metadata.update(_config(content))
        last = log.since.offset or None  # None: nothing was read, and there may be rows with numbers below 1
        behind = (run,) if last is None else (run, last)
        for row, timestamp, step, content in con.execute(_rows(log, key, "" if last is None else ">"), behind):
            last = row
            _scan_row(draft, (log.source, row), timestamp, step, content)
            if len(draft) >= SLICE_POINTS:
                yield settled_at(draft, last)
        yield settled_at(draft, last)


def proof(log: LogFile) -> str:
    """Return what the rows before the mark are recognised by: trackio only adds rows, and never uses an id again."""
    with connect(log.path) as con:
        key, run = _chosen(con, log)
    return digest(log.path, _rows(log, key, "<="), run, log.since.offset)


def _rows(log: LogFile, key: str, side: str) -> str:
    """Return the query for the rows of a run in the order of writing, on one side of a row number."""
    row = row_number(log.path, "metrics")
    bound = f"and {row} {side} ?" if side else ""
    return f"select {row} as row, timestamp, step, metrics from metrics where {key} = ? {bound} order by {row}"


def _chosen(con: sqlite3.Connection, log: LogFile) -> tuple[str, Any]:
    """Return the column that identifies a run, and the run to read."""
    key = "run_id" if "run_id" in columns(log.path, "metrics") else "run_name"
    runs = dict(con.execute(f"select distinct {key}, run_name from metrics").fetchall())
    return key, choose(log.path, runs, log.run)


def _scan_row(draft: Draft, place: tuple[str, int], timestamp: object, step: object, content: bytes | str) -> None:
    try:
        metrics = orjson.loads(content)
    except ValueError:
        draft.issue(place, "the row holds no JSON", cell_text(content))
        return
    if not isinstance(metrics, dict) or whole_step(step) is None:
        draft.issue(place, f"the row holds no object of metrics, or its step {STEP_FAULT}", cell_text(content))
        return
    row = {"step": step, "data": metrics}
    if isinstance(timestamp, str) and (seconds := _seconds(timestamp)) is not None:
        row["timestamp"] = seconds
    scan_row(draft, row, place, None)


def _seconds(timestamp: str) -> float | None:
    try:
        moment = datetime.fromisoformat(timestamp)
        return moment.timestamp() if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _config(content: bytes | str) -> dict[str, str]:
    try:
        config = orjson.loads(content)
    except ValueError:
        return {}
    return metadata.from_config(config) if isinstance(config, dict) else {}
