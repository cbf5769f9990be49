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


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the examples have been taken in, built and published once."""
    from tests.integration.conftest import firstdrift

    home = tmp_path_factory.mktemp("demo")
    done = firstdrift(home, "demo", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (home / "first_output.txt").write_text(done.stdout, encoding="utf-8")
    return home
