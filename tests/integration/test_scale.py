"""Many small logs at once, and the package as a wheel."""

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.integration.conftest import clean_environment, firstdrift, write_log

pytestmark = pytest.mark.slow

LOGS = 1000


@pytest.mark.slow
def test_a_thousand_logs_are_taken_in_by_one_dagster_run(tmp_path):
    for n in range(LOGS // 2):
        write_log(tmp_path / "landing" / f"m{n:03}" / "gpu" / "log.jsonl", [1.0, 0.5, float(n)])
        write_log(tmp_path / "landing" / f"m{n:03}" / "npu" / "log.jsonl", [1.0, 0.5, float(n)])
    done = json.loads(firstdrift(tmp_path, "run", "--json").stdout)
    assert done["is_success"], done
    assert (done["runs_read"], done["migrations"], done["points_added"]) == (LOGS, LOGS // 2, 6 * LOGS)
    sql = "select count(*) as pairs, count(distinct verdict) as verdicts from mart_pair_verdict"
    (row,) = json.loads(firstdrift(tmp_path, "query", sql, "--json").stdout)
    assert row["pairs"] == LOGS // 2
    import dagster as dg

    with dg.DagsterInstance.from_config(str(tmp_path / "dagster")) as instance:
        assert instance.get_runs_count() == 1


@pytest.mark.slow
def test_the_wheel_carries_sql_models_and_catalogue(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=PROJECT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for part in ("sql/schema/10_dimensions.sql", "models/marts/mart_pair_verdict.sql", "catalog/categories.csv",
                 "examples/migration.yaml", "dagster.yaml"):  # fmt: skip
        assert f"warehouse/_project/{part}" in names
    # The dependencies come from the environment of the tests, the package from the wheel alone.
    target = tmp_path / "venv"
    venv.create(target, with_pip=False)
    python = target / "bin" / "python"
    site = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True, check=True
    ).stdout.strip()
    zipfile.ZipFile(wheel).extractall(site)
    dependencies = next(p for p in sys.path if p.endswith("site-packages"))
    with open(f"{site}/dependencies.pth", "w") as stream:  # noqa: PTH123
        stream.write(dependencies + "\n")
    environment = clean_environment(tmp_path / "home")
    environment.pop("PYTHONPATH")
    done = subprocess.run(
        [python, "-m", "pipelines.cli", "demo"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "npu_attn_mask_at60" in done.stdout
    valid = subprocess.run(
        [python, "-m", "dagster", "definitions", "validate", "-m", "pipelines.definitions"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert valid.returncode == 0, valid.stderr
    where = subprocess.run(
        [python, "-c", "import warehouse.settings as s; print(s.project_folder('sql'))"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert str(target) in where
    link = subprocess.run(
        [
            python, "-c", "from pipelines.definitions import defs; import dagster as dg; "
            "node = defs.resolve_asset_graph().get(dg.AssetKey(['marts', 'mart_pair_verdict'])); "
            "print(node.metadata['dagster/code_references'].code_references[0].file_path)",
        ],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    assert link.startswith(str(target))
    assert Path(link).is_file()
