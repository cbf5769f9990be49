from pathlib import Path

import dagster as dg
import pytest

from pipelines.defs import expectations as module
from pipelines.defs.expectations import FOLDER, meets_the_catalogue
from pipelines.ingest.registry import read_log
from pipelines.resources import WarehouseResource
from tests.warehouse.small_star import add_run
from warehouse.catalog import load_catalog
from warehouse.settings import project_folder

ESS = "rollout_is/mismatch/rollout_is_eff_sample_size"


def fill(warehouse: WarehouseResource, *runs: str) -> None:
    """Load example runs and profile them."""
    catalog = load_catalog(project_folder("catalog"))
    model = project_folder("models") / "marts" / "mart_metric_profile.sql"
    with warehouse.writer() as con:
        for run in runs:
            path = next(project_folder("examples").rglob(f"{run}.jsonl.gz"))
            log = read_log(path)
            add_run(con, catalog, log.points, run, log.framework)
        con.execute("create or replace table mart_metric_profile as " + model.read_text(encoding="utf-8"))


def check(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    result = meets_the_catalogue(warehouse=warehouse)
    assert isinstance(result, dg.AssetCheckResult)
    return result


def test_the_check_turns_red_and_names_run_metric_and_first_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    warehouse = WarehouseResource(home=str(tmp_path))
    fill(warehouse, "npu_n0", "npu_ess_overflow_at60")
    result = check(warehouse)
    assert not result.passed
    assert result.severity == dg.AssetCheckSeverity.WARN
    assert result.metadata["failures"].value == 1
    assert f"| migration | npu_ess_overflow_at60 | {ESS} | 60 |" in str(result.metadata["sample"].value)
    assert "select * from mart_metric_profile where metric = '" + ESS in str(result.metadata["query"].value)
    page = (tmp_path / FOLDER / "index.html").read_text(encoding="utf-8")
    assert "1 failed" in page

    # The same profiles are not validated again; others are.
    def refuse(*_args, **_kwargs):
        raise AssertionError("validated again")

    monkeypatch.setattr(module, "validate_profiles", refuse)
    assert check(warehouse).metadata == result.metadata
    with warehouse.writer() as con:
        con.execute("delete from mart_metric_profile where run_name = 'npu_n0'")
    with pytest.raises(AssertionError, match="validated again"):
        check(warehouse)


def test_a_sound_run_is_green(tmp_path: Path):
    warehouse = WarehouseResource(home=str(tmp_path))
    fill(warehouse, "npu_n0")
    result = check(warehouse)
    assert result.passed
    assert result.metadata["sample"].value == "none"
