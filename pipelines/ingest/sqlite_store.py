"""SQLite files of trackers: opened for reading only, and the choice of one run among several.

What the tables mean belongs to the readers of the trackers.
"""

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from pipelines.ingest.arrow_columns import numbers, texts
from pipelines.ingest.base import ClosedLogError, LogError
from pipelines.ingest.draft import Draft
from pipelines.ingest.sources import head, text_of

_SIGNATURE = b"SQLite format 3\0"
_WAL_MODE = b"\2"
_BATCH_ROWS = 65_536


def _address(path: Path) -> str:
    # A store in WAL mode is opened with files beside it, which SQLite would make; without a -wal it needs none.
    alone = not _has_wal(path) and head(path, 20)[18:19] == _WAL_MODE
    return f"file:{quote(os.fsencode(path.resolve()))}?{'immutable=1' if alone else 'mode=ro'}"


def _has_wal(path: Path) -> bool:
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except OSError:
        return False


def _check_size(path: Path) -> None:
    """Refuse a file that is shorter than its header says: SQLite reads what is left of it as if that were all."""
    header = head(path, 100)
    # The count of pages holds if it was written with the last change; a -wal file may hold the missing pages.
    if len(header) < 100 or header[24:28] != header[92:96] or _has_wal(path):
        return
    page = int.from_bytes(header[16:18], "big")
    whole = int.from_bytes(header[28:32], "big") * (1 << 16 if page == 1 else page)
    size = path.stat().st_size
    if size < whole:
        raise ClosedLogError(f"{path}: the store is cut off: {size} of {whole} bytes are there; copy it anew")


@contextmanager
def connect(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file without ever writing to it or its folder's files.

    Raises:
        LogError: If it is cut off, SQLite finds it damaged, or what is asked for is not in it.
    """
    _check_size(path)
    try:
        with closing(sqlite3.connect(_address(path), uri=True)) as con:
            con.text_factory = text_of
            yield con
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise ClosedLogError(f"{path}: {_fault(path, str(error))}") from None


def _fault(path: Path, error: str) -> str:
    if error.startswith("no such "):
        return f"the store lacks what its tracker writes ({error}); is it a whole store, of a version that is known?"
    if "unable to open" in error and _has_wal(path):
        return (
            f"SQLite can't read this file together with its -wal file ({error}): it needs a -shm file beside them; "
            "copy the store and its -wal file to a folder that you may write to"
        )
    return f"SQLite can't read this file ({error}); copy it anew, with its -wal file"


def row_number(path: Path, table: str) -> str:
    """Return what SQLite calls the number of a row of a table: a column may have the usual name.

    Raises:
        LogError: If there is no such name.
    """
    taken = {name.lower() for name in columns(path, table)}
    with connect(path) as con:
        is_table = con.execute("select 1 from sqlite_master where type = 'table' and name = ?", (table,)).fetchone()
    free = [name for name in ("rowid", "_rowid_", "oid") if name not in taken and is_table]
    if not free:
        raise LogError(f"{path}: the rows of {table} have no numbers to read them by; it is no plain table")
    return free[0]


def cell_text(cell: object) -> str:
    """Return a cell as text, whatever its type; nothing for a null."""
    if isinstance(cell, bytes):
        return text_of(cell)
    return "" if cell is None else str(cell)


def digest(path: Path, sql: str, *values: Any) -> str:
    """Return the SHA-256 of all cells that a query returns, in its order.

    Args:
        path: The store; it is only read.
        sql: The query, with a question mark for each value.
        values: The values.
    """
    found, rows = hashlib.sha256(), 0
    for batch in batches(path, sql, *values):
        rows += batch.num_rows
        hash_batch(found, batch)
    with connect(path) as con:  # what Arrow could not hold
        for row in con.execute(f"select * from ({sql}) limit -1 offset {rows}", values):
            found.update(repr(row).encode())
    return found.hexdigest()


def hash_batch(found: "hashlib._Hash", batch: pa.RecordBatch) -> None:
    """Add the cells of a batch to a hash, as `digest` does."""
    for column in batch.columns:
        found.update(str(column.type).encode())
        for buffer in column.buffers():
            found.update(buffer if buffer is not None else b"-")


def settled_at(draft: Draft, row: int | None, proof: str = "") -> Draft:
    """Return the draft with its mark behind a row; numbers below 1 are no marks: 0 is the beginning.

    Args:
        draft: What was read.
        row: The number of the last row.
        proof: The digest of all rows up to it, if reading made it on the way.
    """
    if row is None or row <= 0:
        return draft
    return draft.settle(row, state={"proof": proof} if proof else None)


def _bound(values: Sequence[str | int]) -> pa.RecordBatch:
    columns = [texts([v]) if isinstance(v, str) else numbers(np.array([v]), pa.int64()) for v in values]
    return pa.RecordBatch.from_arrays(columns, names=[str(at) for at in range(len(values))])


def batches(path: Path, sql: str, *values: Any) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query as Arrow, made in C: an object a cell would cost most of the time of a long table.

    Ends early before the first batch that holds a cell of another type than its column had so far.

    Args:
        path: The store; it is only read.
        sql: The query, with a question mark for each value.
        values: The values; there is no batch where one is neither text nor integer.
    """
    if not all(isinstance(value, str | int) for value in values):
        return
    from adbc_driver_manager import AdbcConnection, AdbcStatement, Error
    from adbc_driver_sqlite import StatementOptions
    from adbc_driver_sqlite import connect as open_store

    # The driver's own cursor imports pandas: what it does is these calls.
    try:
        with open_store(_address(path)) as store, AdbcConnection(store) as con, AdbcStatement(con) as statement:
            statement.set_options(**{StatementOptions.BATCH_ROWS.value: str(_BATCH_ROWS)})
            statement.set_sql_query(sql)
            statement.prepare()
            statement.bind(_bound(values))
            stream, _ = statement.execute_query()
            yield from pa.RecordBatchReader.from_stream(stream)
    except (Error, pa.ArrowException, OSError):
        return


def columns(path: Path, table: str) -> frozenset[str]:
    """Return the columns of a table; none if the file is no SQLite file or has no such table.

    Raises:
        LogError: If it is a SQLite file that can't be read.
    """
    if head(path, 16) != _SIGNATURE:
        return frozenset()
    with connect(path) as con:
        return frozenset(row[1] for row in con.execute("select * from pragma_table_info(?)", (table,)))


def choose(path: Path, runs: Mapping[Any, Any], wanted: str | None) -> Any:
    """Return the identifier of the run to read.

    Args:
        path: The store, for messages.
        runs: Name by identifier, as the cells of the store hold them.
        wanted: Name or identifier of the run; needed only where there are several.

    Raises:
        LogError: If there is no run, or it is not clear which one is meant.
    """
    if not runs:
        raise LogError(f"{path}: the store holds no run")
    if len(runs) == 1:
        return next(iter(runs))
    named = {key: cell_text(name) or cell_text(key) for key, name in runs.items()}
    found = [key for key, name in named.items() if wanted is not None and wanted in (cell_text(key), name)]
    if len(found) == 1:
        return found[0]
    some = ", ".join(sorted(set(named.values()))[:8])
    fault = "none is" if not found else f"{len(found)} are"
    asked = f"{fault} named {wanted}" if wanted else "say which one"
    raise LogError(f"{path}: the store holds {len(runs)} runs ({some}) and {asked}; name the run by name or identifier")
