"""Applying the hand-owned statements of sql/schema and sql/macros to a connection."""

from pathlib import Path

import duckdb

from warehouse.settings import project_folder


def schema_files() -> list[Path]:
    """Return the files of sql/schema in the order in which they apply."""
    return sorted((project_folder("sql") / "schema").glob("*.sql"))


def macro_files() -> list[Path]:
    """Return the files of sql/macros in the order in which they apply."""
    return sorted((project_folder("sql") / "macros").glob("*.sql"))


def apply_schema(con: duckdb.DuckDBPyConnection) -> None:
    """Create the tables of the star where they don't exist, and renew their comments, in one transaction."""
    with_transaction(con, [path.read_text(encoding="utf-8") for path in schema_files()])


def apply_macros(con: duckdb.DuckDBPyConnection) -> None:
    """Create or replace the macros, in one transaction."""
    with_transaction(con, [path.read_text(encoding="utf-8") for path in macro_files()])


def with_transaction(con: duckdb.DuckDBPyConnection, scripts: list[str]) -> None:
    """Execute scripts in one transaction; none of them has an effect if one fails."""
    con.begin()
    try:
        for script in scripts:
            con.execute(script)
    except BaseException:
        con.rollback()
        raise
    con.commit()
