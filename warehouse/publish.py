"""Publishing: a read-only copy that is swapped in whole.

Readers open the published file and never the working file, so they see neither a lock nor a half-built
table. Formats for other tools belong to warehouse.export.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from warehouse.connection import scalar
from warehouse.runner import quote
from warehouse.schema import analyst_files, macro_files
from warehouse.wording import counted

# DuckDB 1.x clients, most BI drivers among them, can't read the default storage of DuckDB 2.
STORAGE_VERSION = "v1.2.0"
_KEPT_FILES = 3
_PUBLIC = re.compile(r"^(?:dim_|bridge_|fct_|mart_)")
PUBLICATION = "publication"


@dataclass(frozen=True)
class Publication:
    """A published file.

    Attributes:
        path: The stable name that readers open.
        version: Identifier of its content.
        published_at: When it was made (UTC, ISO 8601).
        row_counts: Rows by table.
        is_new: False where the content equals what was published already, and nothing was written.
    """

    path: Path
    version: str
    published_at: str
    row_counts: dict[str, int]
    is_new: bool


class PublishError(ValueError):
    """The new file did not pass the checks that readers rely on; the published one stays."""


def public_tables(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the tables that readers get: dimensions, bridges, facts and marts, in the order of names."""
    rows = con.execute(
        "select table_name from information_schema.tables "
        "where table_schema = 'main' and table_catalog = current_database()"
    ).fetchall()
    return sorted(name for (name,) in rows if _PUBLIC.match(name))


def content_version(con: duckdb.DuckDBPyConnection) -> str:
    """Return a hash of what the tables were built from and with: equal versions have equal content."""
    rows = con.execute(
        """
        select model, build_key, fingerprint, input_version from etl_model_state
        union all
        select 'dim_run', '', '', run::varchar from (select * exclude (loaded_at) from dim_run) as run
        union all
        select 'dim_migration', '', '', pair::varchar from dim_migration as pair
        union all
        select 'dim_component', '', '', component::varchar from dim_component as component
        union all
        select 'bridge_run_component', '', '', bridge::varchar from bridge_run_component as bridge
        union all
        select 'etl_state', name, value, '' from etl_state
        order by all
        """
    ).fetchall()
    moves = [path.read_text(encoding="utf-8") for path in analyst_files()]
    return hashlib.sha256(repr((STORAGE_VERSION, moves, rows)).encode()).hexdigest()[:16]


def publish(con: duckdb.DuckDBPyConnection, target: Path, report: Callable[[str], None] | None = None) -> Publication:
    """Make a copy for readers and swap it in.

    Args:
        con: A connection to the working file.
        target: The stable name of the published file. Earlier versions are kept beside it.
        report: Called with the name of each table when it is copied.

    Raises:
        PublishError: If the new file lacks a table or rows; the published one then stays.
    """
    version = content_version(con)
    current = read_publication(target)
    if current and current["version"] == version and _is_whole(target, current):
        return Publication(target, version, current["published_at"], current["row_counts"], False)
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_drafts(target)
    draft = target.parent / f"draft-{version}-{os.getpid()}.duckdb"
    counts = _copy_tables(con, draft, version, report)
    _verify(draft, counts)
    draft.chmod(0o444)
    kept = target.parent / f"firstdrift-{version}.duckdb"
    # The versioned name comes first: whoever needs an old version finds it, and a kill in between leaves
    # the stable name on the previous one.
    draft.replace(kept)
    link = target.parent / f"draft-{version}-{os.getpid()}.link"
    link_or_copy(kept, link)
    link.replace(target)
    published_at = datetime.now(UTC).isoformat(timespec="seconds")
    publication = Publication(target, version, published_at, counts, True)
    write_json(
        target.parent / "current.json",
        {
            "version": version,
            "published_at": published_at,
            "file": kept.name,
            "row_counts": counts,
            "size": kept.stat().st_size,
        },
    )
    _retain(target, kept)
    return publication


def read_publication(target: Path) -> dict | None:
    """Return what is known of the published file; None where nothing is, or what is known is damaged."""
    path = target.parent / "current.json"
    if not path.exists():
        return None
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    is_whole = isinstance(known, dict) and {"version", "published_at", "row_counts"} <= known.keys()
    return known if is_whole else None


def _is_whole(target: Path, current: dict) -> bool:
    """Tell whether the published file is what was published: cut off or spoilt, it is published anew."""
    if not target.is_file() or target.stat().st_size != current.get("size"):
        return False
    try:
        _verify(target, current["row_counts"])
    except (duckdb.Error, PublishError):
        return False
    return True


def _copy_tables(
    con: duckdb.DuckDBPyConnection, draft: Path, version: str, report: Callable[[str], None] | None
) -> dict[str, int]:
    counts = {}
    con.execute(f"attach {quote(str(draft))} as next_publication (storage_version {quote(STORAGE_VERSION)})")
    try:
        for table in public_tables(con):
            con.execute(f"create table next_publication.main.{table} ({_definition(con, table)})")
            con.execute(f"insert into next_publication.main.{table} select * from main.{table}")
            _copy_comments(con, table)
            counts[table] = scalar(con, f"select count(*) from next_publication.main.{table}")
            if report:
                report(table)
        con.execute(f"create table next_publication.main.{PUBLICATION} (version varchar, published_at timestamp)")
        con.execute(f"insert into next_publication.main.{PUBLICATION} values (?, now()::timestamp)", [version])
        con.execute(f"comment on table next_publication.main.{PUBLICATION} is 'What this file is. Grain: file.'")
        con.execute(f"comment on column next_publication.main.{PUBLICATION}.version is 'Hash of the content.'")
        con.execute(f"comment on column next_publication.main.{PUBLICATION}.published_at is 'When it was made (UTC).'")
        _copy_macros(con, has_marts="mart_pair_verdict" in counts)
        con.execute("checkpoint next_publication")
    finally:
        con.execute("detach next_publication")
    return counts


def _definition(con: duckdb.DuckDBPyConnection, table: str) -> str:
    columns = con.execute(
        """
        select column_name, data_type, is_nullable from duckdb_columns()
        where table_name = ? and schema_name = 'main' and database_name = current_database()
        order by column_index
        """,
        [table],
    ).fetchall()
    parts = [f'"{name}" {kind}{"" if nullable else " not null"}' for name, kind, nullable in columns]
    keys = con.execute(
        """
        select constraint_column_names from duckdb_constraints()
        where table_name = ? and constraint_type = 'PRIMARY KEY' and database_name = current_database()
        """,
        [table],
    ).fetchall()
    parts += [f"primary key ({', '.join(key)})" for (key,) in keys]
    return ", ".join(parts)


def _copy_comments(con: duckdb.DuckDBPyConnection, table: str) -> None:
    comment = scalar(
        con, "select comment from duckdb_tables() where table_name = ? and database_name = current_database()", [table]
    )
    if comment:
        con.execute(f"comment on table next_publication.main.{table} is {quote(comment)}")
    comments = con.execute(
        """
        select column_name, comment from duckdb_columns()
        where table_name = ? and database_name = current_database() and comment is not null
        """,
        [table],
    ).fetchall()
    for column, comment in comments:
        con.execute(f'comment on column next_publication.main.{table}."{column}" is {quote(comment)}')


def _copy_macros(con: duckdb.DuckDBPyConnection, *, has_marts: bool) -> None:
    """Create the macros in the published file, so that saved queries can use them there."""
    working = scalar(con, "select current_database()")
    con.execute("use next_publication.main")
    try:
        # Those for analysts read the marts, which a warehouse has once its models were built.
        for path in [*macro_files(), *(analyst_files() if has_marts else [])]:
            con.execute(path.read_text(encoding="utf-8"))
    finally:
        con.execute(f'use "{working}".main')


def _verify(draft: Path, counts: dict[str, int]) -> None:
    check = duckdb.connect(draft, read_only=True)
    try:
        for table, expected in counts.items():
            found = scalar(check, f"select count(*) from {table}")
            if found != expected:
                raise PublishError(f"{draft}: {table} has {counted(found, 'row')}, expected {expected}.")
    finally:
        check.close()
    with draft.open("rb") as stream:
        os.fsync(stream.fileno())


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where the file system has no hard links."""
    target.unlink(missing_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)


def _remove_drafts(target: Path) -> None:
    for path in target.parent.glob("draft-*"):
        path.unlink(missing_ok=True)


def _retain(target: Path, current: Path) -> None:
    files = sorted(target.parent.glob("firstdrift-*.duckdb"), key=lambda p: p.stat().st_mtime, reverse=True)
    for path in [p for p in files if p != current][_KEPT_FILES - 1 :]:
        path.unlink(missing_ok=True)


def write_json(path: Path, data: dict) -> None:
    """Write a file of JSON that readers see whole: the earlier one, or this one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(data, indent=1, sort_keys=True), encoding="utf-8")
    draft.replace(path)
