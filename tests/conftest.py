"""Fixtures that every test may use."""

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from warehouse.schema import apply_macros, apply_schema

PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def cases_dir() -> Path:
    """The folder of real logs with known answers; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("FIRSTDRIFT_CASES") or PROJECT.parent / "shared" / "cases")
    if not folder.is_dir():
        pytest.skip(f"no real logs: {folder} does not exist (set FIRSTDRIFT_CASES)")
    return folder


@pytest.fixture
def star() -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty star schema with the macros, in memory."""
    con = duckdb.connect()
    con.execute("set timezone = 'UTC'")
    apply_schema(con)
    apply_macros(con)
    yield con
    con.close()
