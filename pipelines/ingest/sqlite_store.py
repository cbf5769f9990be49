"""SQLite files of trackers: opened for reading only, and the choice of one run among several.

What the tables mean belongs to the readers of the trackers.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from pipelines.ingest.arrow_columns import numbers, texts
from pipelines.ingest.base import LogError
from pipelines.ingest.sources import head

_SIGNATURE = b"SQLite format 3\0"
_BATCH_ROWS = 65_536


def _address(path: Path) -> str:
    return f"file:{quote(str(path.resolve()))}?mode=ro"


@contextmanager
def connect(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file without ever writing to it or its folder's files.

    Raises:
        LogError: If SQLite finds it damaged.
    """
    try:
        with closing(sqlite3.connect(_address(path), uri=True)) as con:
            con.text_factory = lambda data: data.decode("utf-8", "replace")
            yield con
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise LogError(f"{path}: SQLite can't read this file ({error}); copy it anew, with its -wal file") from None


def _bound(values: Sequence[str | int]) -> pa.RecordBatch:
    columns = [texts([v]) if isinstance(v, str) else numbers(np.array([v]), pa.int64()) for v in values]
    return pa.RecordBatch.from_arrays(columns, names=[str(at) for at in range(len(values))])


def batches(path: Path, sql: str, *values: str | int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query as Arrow, made in C: an object a cell would cost most of the time of a long table.

    Ends early before the first batch that holds a cell of another type than its column had so far.

    Args:
        path: The store; it is only read.
        sql: The query, with a question mark for each value.
        values: The values.
    """
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
    """Return the columns of a table; none if the file is no SQLite file or has no such table."""
    if head(path, 16) != _SIGNATURE:
        return frozenset()
    try:
        with connect(path) as con:
            return frozenset(row[1] for row in con.execute("select * from pragma_table_info(?)", (table,)))
    except LogError:
        return frozenset()


def choose(path: Path, runs: Mapping[str, str], wanted: str | None) -> str:
    """Return the identifier of the run to read.

    Args:
        path: The store, for messages.
        runs: Name by identifier.
        wanted: Name or identifier of the run; needed only where there are several.

    Raises:
        LogError: If there is no run, or it is not clear which one is meant.
    """
    if not runs:
        raise LogError(f"{path}: the store holds no run")
    if len(runs) == 1:
        return next(iter(runs))
    found = [key for key, name in runs.items() if wanted is not None and wanted in (key, name)]
    if len(found) == 1:
        return found[0]
    some = ", ".join(sorted({name or key for key, name in runs.items()})[:8])
    fault = "none is" if not found else f"{len(found)} are"
    asked = f"{fault} named {wanted}" if wanted else "say which one"
    raise LogError(f"{path}: the store holds {len(runs)} runs ({some}) and {asked}; name the run by name or identifier")
