import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.warehouse.test_load import CATALOG, INF, NAN, put_run
from warehouse.connection import open_writer
from warehouse.load import load_lake
from warehouse.project import Project, load_project
from warehouse.publish import publish
from warehouse.runner import build_all
from warehouse.schema import apply_macros, apply_schema, macro_files, schema_files
from warehouse.settings import project_folder

# A name that folders, statements and spreadsheets must all survive.
ODD = "910B, it's = 50% 中文"


def points(shift: float, last: int = 30) -> list[tuple]:
    odd = {3: NAN, 4: INF, 5: -INF, 6: None}
    return [
        (metric, 1, step, odd.get(step, shift + step / 7) if metric == "reward" else shift + 1 / step)
        for metric in ("reward", "train/loss", "=1+1")
        for step in range(1, last + 1)
    ]


def put_migration(home: Path, project: Project, migration: str, shift: float, content: str = "1") -> Path:
    """Give a migration two runs, build everything and publish it; returns the published file."""
    gpu = put_run(home / "lake", points(0.0), "gpu", content, migration)
    put_run(home / "lake", points(shift), "npu", content, migration, (gpu,), role="candidate", baseline="gpu")
    with open_writer(home / "warehouse.duckdb") as con:
        apply_schema(con)
        apply_macros(con)
        load_lake(con, home / "lake", CATALOG)
        build_all(con, project)
        publish(con, home / "published" / "firstdrift.duckdb")
    return home / "published" / "firstdrift.duckdb"


@pytest.fixture(scope="session")
def project() -> Project:
    return load_project(project_folder("models"), schema_files(), macro_files())


@pytest.fixture
def put(tmp_path: Path, project: Project) -> Callable[..., Path]:
    """The function that puts a migration into the warehouse of the test."""
    return partial(put_migration, tmp_path, project)


@pytest.fixture(scope="session")
def two_migrations(tmp_path_factory: pytest.TempPathFactory, project: Project) -> Path:
    home = tmp_path_factory.mktemp("two_migrations")
    put_migration(home, project, "a", 0.1)
    put_migration(home, project, ODD, 0.2)
    return home


@pytest.fixture
def published(two_migrations: Path, tmp_path: Path) -> Path:
    """A published file of two migrations, with values that are not finite, long integers, and odd names."""
    shutil.copytree(two_migrations, tmp_path, dirs_exist_ok=True)
    return tmp_path / "published" / "firstdrift.duckdb"
