from collections.abc import Callable
from pathlib import Path

import pytest

from tests.warehouse.test_load import CATALOG, INF, NAN, put_run
from warehouse.connection import open_writer
from warehouse.load import load_lake
from warehouse.project import load_project
from warehouse.publish import publish
from warehouse.runner import build_all
from warehouse.schema import apply_macros, apply_schema, macro_files, schema_files
from warehouse.settings import project_folder

# A name that folders, statements and spreadsheets must all survive.
ODD = "910B / it's = 中文"


def points(shift: float, last: int = 30) -> list[tuple]:
    odd = {3: NAN, 4: INF, 5: -INF, 6: None}
    return [
        (metric, 1, step, odd.get(step, shift + step / 7) if metric == "reward" else shift + 1 / step)
        for metric in ("reward", "train/loss", "=1+1")
        for step in range(1, last + 1)
    ]


@pytest.fixture(scope="session")
def project():
    return load_project(project_folder("models"), schema_files(), macro_files())


@pytest.fixture
def put(tmp_path: Path, project) -> Callable[..., Path]:
    """Give a migration two runs, build everything and publish it; returns the published file."""

    def put(migration: str, shift: float, content: str = "1", last: int = 30) -> Path:
        gpu = put_run(tmp_path / "lake", points(0.0), "gpu", content, migration)
        put_run(
            tmp_path / "lake", points(shift, last), "npu", content, migration, others=(gpu,), role="candidate",
            baseline="gpu",
        )  # fmt: skip
        with open_writer(tmp_path / "warehouse.duckdb") as con:
            apply_schema(con)
            apply_macros(con)
            load_lake(con, tmp_path / "lake", CATALOG)
            build_all(con, project)
            publish(con, tmp_path / "published" / "firstdrift.duckdb")
        return tmp_path / "published" / "firstdrift.duckdb"

    return put


@pytest.fixture
def published(put) -> Path:
    """A published file of two migrations, with values that are not finite, long integers, and odd names."""
    put("a", 0.1)
    return put(ODD, 0.2)
