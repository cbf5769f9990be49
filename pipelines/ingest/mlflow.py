"""MLflow's stores: the SQLite file, and the older folder of text files.

The SQLite store rewrites what is not finite, and this is undone here: `is_nan` marks NaN, plus and minus
1.7976931348623157e308 are the infinities. Every write of a metric is kept by MLflow; rows are read in the order in
which they were inserted (SQLite) or by their time (folder). Keys that begin with `system/` are monitored hardware:
they go to the axis `system`. Deleted runs are left out. Where a store holds several runs, the run is chosen by
its name or identifier.
"""

import hashlib
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from pipelines.ingest import metadata
from pipelines.ingest.draft import SLICE_POINTS, Draft, LogFile
from pipelines.ingest.sources import Line, read_lines, text_of
from pipelines.ingest.sqlite_store import (
    batches,
    cell_text,
    choose,
    columns,
    connect,
    digest,
    hash_batch,
    row_number,
    settled_at,
)
from pipelines.ingest.text_number import STEP_FAULT, STEP_LIMIT, from_text, whole_step
from warehouse.contract import DEFAULT_STEP_AXIS

NAME = "mlflow"
SYSTEM_AXIS = "system"

_LARGEST = sys.float_info.max
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.float64()),
        ("timestamp", pa.int64()),
        ("step", pa.int64()),
        ("is_nan", pa.int64()),
        ("row", pa.int64()),
    ]
)
_NUMERIC = (np.float64, np.float64, np.int64, bool, np.int64)  # value, timestamp, step, is_nan, rowid
_COLUMN_TYPES = ({bytes}, {float, int}, {float, int})  # key, value, timestamp
_FLAGS = {"0": 0, "0.0": 0, "": 0, "false": 0, "f": 0, "no": 0, "1": 1, "1.0": 1, "true": 1, "t": 1, "yes": 1}
_FETCH = 2_000
_ROW_FAULT = f"a row of the table metrics holds no number, time or flag, or its step {STEP_FAULT}"
_STATUS = {
    "FINISHED": "finished",
    "RUNNING": "running",
    "FAILED": "crashed",
    "KILLED": "crashed",
    1: "running",
    3: "finished",
    4: "crashed",
    5: "crashed",
}
_RUN_DEPTH = ("meta.yaml", "*/meta.yaml", "*/*/meta.yaml", "mlruns/*/*/meta.yaml")


def sniff(path: Path) -> bool:
    """Tell whether this is MLflow's SQLite file or a folder of its file store."""
    if path.is_file():
        return {"key", "value", "is_nan", "run_uuid"} <= columns(path, "metrics")
    return path.is_dir() and bool(_run_folders(path))


def files(path: Path) -> list[Path]:
    """Return the SQLite file, or the metric files of all runs of a folder."""
    if path.is_file():
        return [path] if sniff(path) else []
    return sorted(f for run in _run_folders(path) for f in (run / "metrics").rglob("*") if f.is_file())


def units(path: Path) -> list[Path]:
    """Return what `scan` takes: the file or folder itself."""
    return [path]


def scan(log: LogFile) -> Iterator[Draft]:
    """Yield the points of one run in the order of writing.

    The SQLite store is taken up behind the last row that was read; the folder is read whole.

    Raises:
        LogError: If it is not clear which run is meant, or the store is damaged.
    """
    return _scan_folder(log) if log.path.is_dir() else _scan_sqlite(log)


def proof(log: LogFile) -> str:
    """Return what the rows before the mark are recognised by.

    MLflow only adds rows, so all that was read is still there in the same order.
    """
    with connect(log.path) as con:
        run = _chosen(con, log)[0]
    return digest(log.path, _rows(log, "rowid <= ?"), run, log.since.offset)


def _rows(log: LogFile, condition: str) -> str:
    """Return the query for the rows of a run in the order of writing."""
    row = row_number(log.path, "metrics")
    return (
        f"select cast(key as blob) as key, value, timestamp, step, is_nan, {row} as row from metrics "
        f"where run_uuid = ? {condition and 'and ' + condition.replace('rowid', row)} order by {row}"
    )


def _chosen(con: sqlite3.Connection, log: LogFile) -> tuple[Any, object]:
    """Return identifier and status of the run to read."""
    alive = con.execute("select run_uuid, name, status from runs where lifecycle_stage is not 'deleted'").fetchall()
    chosen = choose(log.path, {uuid: name for uuid, name, _ in alive}, log.run)
    return chosen, next(status for uuid, _, status in alive if uuid == chosen)


def _scan_sqlite(log: LogFile) -> Iterator[Draft]:
    draft = log.draft()
    with connect(log.path) as con:
        run, status = _chosen(con, log)
        draft.status = _STATUS.get(status, "unknown")
        params = con.execute("select key, value from params where run_uuid = ?", (run,)).fetchall()
        draft.metadata.update(metadata.from_config(dict(params)))
        last = log.since.offset or None  # None: nothing was read, and there may be rows with numbers below 1

        def behind() -> tuple[str, tuple]:
            return (_rows(log, ""), (run,)) if last is None else (_rows(log, "rowid > ?"), (run, last))

        # Read from its first row on, a store is hashed on the way: its proof needs no second look.
        seen = None if last is not None else hashlib.sha256()
        sql, values = behind()
        for batch in batches(log.path, sql, *values):
            if not _SCHEMA.equals(batch.schema.remove_metadata()):
                break
            last = batch["row"][-1].as_py()
            _add_batch(draft, batch, log.source)
            if seen is not None:
                hash_batch(seen, batch)
            if len(draft) >= SLICE_POINTS:
                yield settled_at(draft, last, seen.hexdigest() if seen is not None else "")
        # What is left holds a cell of another type than its column: it comes row by row.
        rows = con.execute(*behind())
        while few := rows.fetchmany(_FETCH):
            last, seen = few[-1][5], None
            _add_rows(draft, few, log.source)
            if len(draft) >= SLICE_POINTS:
                yield settled_at(draft, last)
        yield settled_at(draft, last, seen.hexdigest() if seen is not None else "")


def _add_batch(draft: Draft, batch: pa.RecordBatch, source: str) -> None:
    """Append rows of the table metrics by whole columns; where cells are missing, one by one."""
    step = None if batch["step"].null_count else np.from_dlpack(batch["step"])
    fits = step is not None and bool(((step > -STEP_LIMIT) & (step < STEP_LIMIT)).all())
    if not fits or any(column.null_count for column in batch.columns):
        _add_rows(draft, list(zip(*(column.to_pylist() for column in batch.columns), strict=True)), source)
        return
    keys = batch["key"].dictionary_encode()
    numeric = [np.from_dlpack(batch[name]) for name in ("value", "timestamp", "step", "is_nan", "row")]
    _add_columns(draft, keys.dictionary.to_pylist(), [np.from_dlpack(keys.indices), *numeric], source)


def _add_rows(draft: Draft, rows: list[tuple], source: str) -> None:
    """Append sound rows of the table metrics; each of the others is an issue."""
    sound = []
    for row in rows:
        step, is_nan = whole_step(row[3]), _flag(row[4])
        if step is None or is_nan is None or not _is_sound(row):
            value = float(row[1]) if isinstance(row[1], int) else row[1]  # as Arrow gives it
            shown = str((cell_text(row[0]), value, *row[2:5]))
            draft.issue((source, row[5]), _ROW_FAULT, shown, 1)
        else:
            sound.append((*row[:3], step, is_nan, row[5]))
    if sound:
        names, *numeric = zip(*sound, strict=True)
        codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
        columns = [np.array(c, dtype=kind) for c, kind in zip(numeric, _NUMERIC, strict=True)]
        _add_columns(draft, list(codes), [np.array([codes[name] for name in names]), *columns], source)


def _add_columns(draft: Draft, names: list[bytes], columns: list[np.ndarray], source: str) -> None:
    """Append points: distinct names, and as columns of shape (n,) index into them and what `_NUMERIC` lists."""
    at, stored, milliseconds, step, is_nan, position = columns
    main, system = (draft.axes.setdefault(axis, len(draft.axes)) for axis in (DEFAULT_STEP_AXIS, SYSTEM_AXIS))
    codes = np.array([draft.code(text_of(name)) for name in names], dtype=np.int32)
    axes = np.array([system if name.startswith(b"system/") else main for name in names], dtype=np.int32)
    flagged = is_nan != 0
    value = np.where(flagged, np.nan, stored)
    value[~flagged & (stored >= _LARGEST)] = np.inf
    value[~flagged & (stored <= -_LARGEST)] = -np.inf
    first = len(draft)
    draft.add_columns(codes[at], step, value, position, milliseconds / 1000.0, source, axes[at])
    for row in np.flatnonzero(~np.isfinite(value)).tolist():
        draft.raw[first + row] = "is_nan" if flagged[row] else repr(float(stored[row]))


def _is_sound(row: tuple) -> bool:
    return all(type(cell) in kinds for cell, kinds in zip(row, _COLUMN_TYPES, strict=False))


def _flag(cell: object) -> int | None:
    """Return a flag as 0 or 1, whatever type a store gave it; None for what is none."""
    if cell is None or isinstance(cell, int | float):
        return int(bool(cell))
    return _FLAGS.get(cell.strip().lower()) if isinstance(cell, str) else None


def _run_folders(path: Path) -> list[Path]:
    found = {meta.parent for pattern in _RUN_DEPTH for meta in path.glob(pattern) if (meta.parent / "metrics").is_dir()}
    return sorted(found)


def _meta(folder: Path) -> dict:
    try:
        content = yaml.safe_load((folder / "meta.yaml").read_text("utf-8", "replace"))
    except (OSError, yaml.YAMLError):
        return {}
    return content if isinstance(content, dict) else {}


def _scan_folder(log: LogFile) -> Iterator[Draft]:
    metas = {folder: _meta(folder) for folder in _run_folders(log.path)}
    alive = {folder: meta for folder, meta in metas.items() if meta.get("lifecycle_stage") != "deleted"}
    names = {folder.name: str(meta.get("run_name") or "") for folder, meta in alive.items()}
    chosen = choose(log.path, names, log.run)
    folder = next(f for f in alive if f.name == chosen)
    draft = log.draft()
    draft.status = _STATUS.get(alive[folder].get("status"), "unknown")
    params = folder / "params"
    config = {p.name: p.read_text("utf-8", "replace") for p in sorted(params.glob("*")) if p.is_file()}
    draft.metadata.update(metadata.from_config(config))
    rows = [
        row
        for file in sorted((folder / "metrics").rglob("*"))
        if file.is_file()
        for row in _writes(draft, file, folder)
    ]
    for time, name, step, value, raw, place in sorted(rows, key=lambda row: row[0]):
        axis = SYSTEM_AXIS if name.startswith("system/") else DEFAULT_STEP_AXIS
        draft.add(name, step, value, raw, place, axis=axis, wall_time=time)
    yield draft


def _writes(draft: Draft, file: Path, folder: Path) -> list[tuple]:
    """Return the writes of one metric: time, name, step, value, raw text, place."""
    name = file.relative_to(folder / "metrics").as_posix()
    source = file.relative_to(folder).as_posix()
    rows = []

    def take(line: Line) -> None:
        place = (source, line.number)
        cells = text_of(line.body).split()
        if not cells:
            return
        time, number = from_text(cells[0]), from_text(cells[1]) if len(cells) > 1 else None
        step = whole_step(cells[2]) if len(cells) > 2 else 0
        if not line.whole:
            draft.issue(place, "the file ends within this line: its last number may be cut off", text_of(line.body), 1)
        elif time is None or time.value is None or number is None or step is None:
            draft.issue(place, "the line is not `time value step`", text_of(line.body), 1)
        else:
            rows.append((time.value / 1000.0, name, step, number.value, number.raw, place))

    own = Draft()  # the folder's draft is not settled by one of its files
    for _ in read_lines(LogFile(file, source), own, take):
        pass
    draft.issues += own.issues
    return rows
