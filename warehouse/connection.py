"""Opening DuckDB files: one writer, or many readers of a published file."""

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

LOCK_WAIT_SECONDS = 30.0
_DAMAGE = re.compile(r"not a valid DuckDB database|[Cc]orrupt database file|[Cc]hecksum|[Ff]ailed to deserialize")
_CUT_OFF = "Could not read enough bytes"
_LOG = logging.getLogger("firstdrift")


class WarehouseLockedError(Exception):
    """Another process holds the working file; the message says what to do."""


class NothingPublishedError(Exception):
    """There is no published file yet; the message says how to make one."""


@contextmanager
def open_writer(path: Path, wait_seconds: float = LOCK_WAIT_SECONDS) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the working file for writing, waiting while another process has it.

    Args:
        path: The working file; made where it does not exist.
        wait_seconds: How long to wait for the lock.

    Raises:
        WarehouseLockedError: If another process still holds the file after that time.
        ValueError: If the file proves damaged while it is used; it is then set aside. One that can't even be opened
            is set aside at once.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            con = duckdb.connect(path)
            break
        except duckdb.Error as error:
            if path.is_file() and _is_damage(error, path):
                _LOG.warning(_give_up(path))
                continue
            if not isinstance(error, duckdb.IOException) or "lock" not in str(error).lower():
                raise
            if time.monotonic() >= deadline:
                raise WarehouseLockedError(
                    f"{path} is in use by another process. Wait until that run has ended, or read the "
                    "published file instead, which is never locked."
                ) from error
            time.sleep(0.2)
    try:
        con.execute("set timezone = 'UTC'")
        con.execute("set preserve_insertion_order = false")
        con.execute("set enable_progress_bar = false")
        yield con
    except duckdb.Error as error:
        if not _is_damage(error, path):
            raise
        con.close()
        raise ValueError(f"{_give_up(path)} Run again.") from error
    finally:
        con.close()


def _is_damage(error: duckdb.Error, path: Path) -> bool:
    """Tell whether DuckDB can't read the file itself, for it was cut off or spoilt."""
    text = str(error)
    return bool(_DAMAGE.search(text)) or (_CUT_OFF in text and path.name in text)


def _give_up(path: Path) -> str:
    moved = set_aside(path, ".wal")
    return f"{path} was damaged and is now {moved.name}; the warehouse is rebuilt from the lake."


def repair(path: Path) -> str:
    """Set the working file aside if it can't be opened any more; return a sentence that says so, or "".

    The next writer makes a new one, which is filled from the lake.
    """
    if not path.is_file():
        return ""
    try:
        duckdb.connect(path).close()
    except duckdb.Error as error:
        return _give_up(path) if _is_damage(error, path) else ""
    return ""


def set_aside(path: Path, *companions: str) -> Path:
    """Give a damaged file another name, beside the old one, and return it.

    Args:
        path: The file.
        companions: Endings of the files that belong to it (".wal"), renamed too where they are there.
    """
    moved = path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    for ending in ("", *companions):
        source = path.with_name(path.name + ending)
        if source.exists():
            source.replace(moved.with_name(moved.name + ending))
    return moved


@contextmanager
def transaction(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Run a block in one transaction: whatever is raised in it, nothing of it has an effect."""
    con.begin()
    try:
        yield
    except BaseException:
        con.rollback()
        raise
    con.commit()


def scalar(con: duckdb.DuckDBPyConnection, sql: str, parameters: list | None = None) -> Any:
    """Return the first value of the first row; None where there is no row.

    All rows are fetched: DuckDB refuses further work on a connection with an unread result.
    """
    rows = con.execute(sql, parameters or []).fetchall()
    return rows[0][0] if rows else None


def seal(con: duckdb.DuckDBPyConnection) -> None:
    """Take from a connection the right to read and write other files; it can't be given back."""
    con.execute("set enable_external_access = false")


@contextmanager
def open_reader(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a published file read-only.

    Raises:
        NothingPublishedError: If the file does not exist.
        ValueError: If it is damaged.
    """
    if not path.exists():
        raise NothingPublishedError(
            f"{path} does not exist: nothing has been published yet. Run `firstdrift run` first, or name "
            "the right home folder with --home."
        )
    con = None
    try:
        con = duckdb.connect(path, read_only=True)
        con.execute("set timezone = 'UTC'")
        yield con
    except duckdb.Error as error:
        if not _is_damage(error, path):
            raise
        raise ValueError(f"{path}: the published file is damaged; `firstdrift run` publishes it anew.") from error
    finally:
        if con is not None:
            con.close()
