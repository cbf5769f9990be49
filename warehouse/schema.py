"""Applying the hand-owned statements of sql/schema and sql/macros to a connection."""

import hashlib
from pathlib import Path

import duckdb

from warehouse.connection import scalar, transaction
from warehouse.settings import project_folder


def schema_files() -> list[Path]:
    """Return the files of sql/schema in the order in which they apply."""
    return sorted((project_folder("sql") / "schema").glob("*.sql"))


def macro_files() -> list[Path]:
    """Return the files of sql/macros in the order in which they apply."""
    return sorted((project_folder("sql") / "macros").glob("*.sql"))


def analyst_files() -> list[Path]:
    """Return the files of sql/analyst: macros over published tables, made in the published file alone."""
    return sorted((project_folder("sql") / "analyst").glob("*.sql"))


def apply_schema(con: duckdb.DuckDBPyConnection) -> None:
    """Create the tables of the star, with their comments, in one transaction."""
    with_transaction(con, [path.read_text(encoding="utf-8") for path in schema_files()])


def apply_macros(con: duckdb.DuckDBPyConnection) -> None:
    """Create or replace the macros, in one transaction."""
    with_transaction(con, [path.read_text(encoding="utf-8") for path in macro_files()])


def ensure_current(con: duckdb.DuckDBPyConnection) -> None:
    """Bring a working file to the schema and macros of this release.

    A file with another schema is emptied: everything in it can be rebuilt from the lake, which is simpler
    and safer than changing tables in place. What is published stays until the next publication.
    """
    schema = [path.read_text(encoding="utf-8") for path in schema_files()]
    macros = [path.read_text(encoding="utf-8") for path in macro_files()]
    if _stored_version(con, "schema_version") != _version(schema):
        with_transaction(con, [*_drop_statements(con), *schema, _remember("schema_version", _version(schema))])
    if _stored_version(con, "macro_version") != _version(macros):
        with_transaction(con, [*macros, _remember("macro_version", _version(macros))])


def _version(scripts: list[str]) -> str:
    return hashlib.sha256("".join(scripts).encode()).hexdigest()[:16]


def _remember(name: str, version: str) -> str:
    return f"insert or replace into etl_state values ('{name}', '{version}')"


def _stored_version(con: duckdb.DuckDBPyConnection, name: str) -> str | None:
    if not scalar(con, "select count(*) from duckdb_tables() where table_name = 'etl_state'"):
        return None
    return scalar(con, "select value from etl_state where name = ?", [name])


def _drop_statements(con: duckdb.DuckDBPyConnection) -> list[str]:
    rows = con.execute(
        """
        select 'drop view "' || view_name || '"' from duckdb_views()
        where schema_name = 'main' and database_name = current_database() and not internal
        union all
        select 'drop table "' || table_name || '"' from duckdb_tables()
        where schema_name = 'main' and database_name = current_database()
        """
    ).fetchall()
    return [statement for (statement,) in rows]


def with_transaction(con: duckdb.DuckDBPyConnection, scripts: list[str]) -> None:
    """Execute scripts in one transaction; none of them has an effect if one fails."""
    with transaction(con):
        for script in scripts:
            con.execute(script)
