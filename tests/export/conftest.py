import shutil
from collections.abc import Callable
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
    put_run(home / "lake", points(shift), "npu", content, migration, (gpu,), (), role="candidate", baseline="gpu")
    with open_writer(home / "warehouse.duckdb") as con:
        apply_schema(con)
        apply_macros(con)
        load_lake(con, home / "lake", CATALOG)
        build_all(con, project)
        publish(con, home / "published" / "firstdrift.duckdb")
    return home / "published" / "firstdrift.duckdb"


@pytest.fixture(scope="session")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Published files of one warehouse: with migration a alone, with a second one, and after a log of a changed."""
    home = tmp_path_factory.mktemp("stages")
    project = load_project(project_folder("models"), schema_files(), macro_files())
    found = {}
    for stage, migration, shift in (("one", "a", 0.1), ("two", ODD, 0.2), ("changed", "a", 0.3)):
        current = put_migration(home, project, migration, shift, stage[:1])
        found[stage] = Path(shutil.copy(current, home / f"{stage}.duckdb"))
    return found


@pytest.fixture
def publish_stage(stages: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """The function that swaps a stage in as the published file of the test."""

    def swap(stage: str) -> Path:
        target = tmp_path / "published" / "firstdrift.duckdb"
        target.parent.mkdir(exist_ok=True)
        return Path(shutil.copy(stages[stage], target.with_suffix(".draft"))).replace(target)

    return swap


@pytest.fixture
def published(publish_stage: Callable[[str], Path]) -> Path:
    """A published file of two migrations, with values that are not finite, long integers, and odd names."""
    return publish_stage("two")
