"""Postgres: the published tables, typed, with comments, primary and foreign keys.

An export is one transaction over all tables, so a reader sees the version before or this one, never a part of
either, and an interrupted export changes nothing. Rows are replaced by migration: the table firstdrift_export says
what of each migration is there. This module holds the connection and what may go wrong with it; the statements are
in `postgres_tables`.
"""

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from warehouse.export.postgres_tables import bring_up_to_date, one
from warehouse.export.source import Export, ExportError, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

_CONNECT_SECONDS = 10
_LOCK_WAIT = "10s"
_LOCK_KEY = 0x6669727374  # "first": exports to one database take turns


def export_postgres(published: Path, url: str, report: Callable[[str], None] | None = None) -> Export:
    """Bring the tables of a database to the content of the published file.

    Args:
        published: The published file.
        url: The database, postgresql://user@host:port/name; the tables go to its first schema in search_path. A
            password may also come from PGPASSWORD or the password file, as with psql.
        report: Called with the name of each table when it is complete.

    Raises:
        NothingPublishedError: If nothing is published.
        ExportError: If the database can't be reached or written; it is then as it was.
    """
    shown = without_password(url)
    with open_source(published) as source, _connect(url, shown) as db:
        _take_turn(db)
        written = bring_up_to_date(db, source, report)
        rows = {table.name: table.rows for table in source.tables}
        return Export(shown, source.version, rows, written, bool(written))


def without_password(url: str) -> str:
    """Return the address of a database as it may be shown."""
    parts = urlsplit(url)
    user = f"{parts.username}@" if parts.username else ""
    port = f":{parts.port}" if parts.port else ""
    return f"postgresql://{user}{parts.hostname or ''}{port}{parts.path}"


@contextmanager
def _connect(url: str, shown: str) -> "Iterator[Connection]":
    """Open a connection whose block is one transaction, and say in one sentence what went wrong in it."""
    import psycopg
    from psycopg import errors

    try:
        with psycopg.connect(url, connect_timeout=_CONNECT_SECONDS, application_name="firstdrift export") as db:
            yield db
    except errors.InsufficientPrivilege as error:
        raise ExportError(
            f"{shown}: the user may not do that there ({_first_line(error)}); nothing was changed. "
            "Grant create on the schema, or export to another one."
        ) from error
    except errors.LockNotAvailable as error:
        raise ExportError(
            f"{shown}: a table with other columns than before is being read, and can't be replaced; nothing was "
            "changed. Export again when the reader has ended."
        ) from error
    except errors.DependentObjectsStillExist as error:
        raise ExportError(
            f"{shown}: {_first_line(error)} ({error.diag.message_detail}); the columns of the table have changed, so "
            "it must be replaced, and nothing was changed. Drop what depends on it, export, and create it again."
        ) from error
    except errors.UniqueViolation as error:
        raise ExportError(
            f"{shown}: {_first_line(error)} ({error.diag.message_detail}); nothing was changed. `firstdrift run` "
            "shows which check finds the row."
        ) from error
    except psycopg.OperationalError as error:
        raise ExportError(f"{shown}: {_why_not_connected(str(error))} Nothing was changed.") from error
    except psycopg.Error as error:
        raise ExportError(f"{shown}: {_first_line(error)}; nothing was changed.") from error


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _why_not_connected(message: str) -> str:
    known = {
        "password authentication failed": "the password was refused; set PGPASSWORD or mend the address.",
        "no password supplied": "a password is needed; set PGPASSWORD, or write it into the password file of psql.",
        '" does not exist': "there is no such database or user ({}); create it first, or mend the address.",
        "Connection refused": "no Postgres server answers there; start it, or mend host and port.",
        "resolve": "the name of the host is not known; mend the address.",
        "timeout": "the server did not answer in time; see that it runs and can be reached.",
    }
    last = message.strip().splitlines()[-1].rpartition("FATAL:")[2].strip()
    for sign, sentence in known.items():
        if sign in message:
            return sentence.format(last)
    return f"{last}."


def _take_turn(db: "Connection") -> None:
    db.execute(f"set local lock_timeout = '{_LOCK_WAIT}'")
    if one(db, "select current_schema()") is None:
        raise ExportError("The schema that search_path names does not exist in the database: create it first.")
    if not one(db, f"select pg_try_advisory_xact_lock({_LOCK_KEY})"):
        raise ExportError("Another export writes to the database; wait until it has ended.")
