"""SQLite files of trackers: opened for reading only, and the choice of one run among several.

What the tables mean belongs to the readers of the trackers.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from pipelines.ingest.base import LogError
from pipelines.ingest.sources import head

_SIGNATURE = b"SQLite format 3\0"


@contextmanager
def connect(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file without ever writing to it or its folder's files.

    Raises:
        LogError: If SQLite finds it damaged.
    """
    address = f"file:{quote(str(path.resolve()))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as con:
            con.text_factory = lambda data: data.decode("utf-8", "replace")
            yield con
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise LogError(f"{path}: SQLite can't read this file ({error}); copy it anew, with its -wal file") from None


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
