"""Building step by step gives the same tables as building everything at once."""

import json
import math

import duckdb
import pytest

from pipelines.landing import ingest_migration
from pipelines.manifest import read_manifest
from pipelines.resources import current_catalog, current_project
from warehouse.load import load_lake
from warehouse.rules import refresh_rule_breaks
from warehouse.runner import build_all, refresh_by_run
from warehouse.schema import ensure_current

CATALOG = current_catalog()
PROJECT = current_project()
STEPS = 60


def write_run(path, seed, fault_from=None):
    """Write a made-up run with loss, reward, mismatch and time; a fault doubles the mismatch."""
    rows = []
    for step in range(1, STEPS + 1):
        noise = math.sin(seed * 7.3 + step * (1.7 + seed * 0.1))
        fault = 2.0 if fault_from and step >= fault_from else 1.0
        data = {
            "reward/avg_raw_reward": 0.01 * step + 0.02 * noise,
            "train_metrics/worker_0/step_avg_reduced_llm_loss": math.exp(-step / 30) + 0.01 * noise,
            "train_metrics/worker_0/step_avg_grad_norm": 0.2 + 0.02 * noise,
            "mismatch/mismatch_k3_kl": fault * (0.001 + 0.0001 * noise),
            "response/prompt_len/mean": 200.0 + step % 7,
            "time/step": 100 + 3 * noise,
        }
        rows.append(json.dumps({"step": step, "data": data}))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def write_manifest(folder, runs):
    lines = ["migration: m", "runs:"]
    lines += [f"  - {{name: {name}, log: {name}.jsonl, {facts}}}" for name, facts in runs.items()]
    path = folder / "migration.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def build(con, lake):
    ensure_current(con)
    load_lake(con, lake, CATALOG)
    refresh_by_run(con, "fct_rule_break", "x", lambda runs: refresh_rule_breaks(con, CATALOG.rules, runs))
    return {r.model: r for r in build_all(con, PROJECT)}


def plain(value):
    """Round the numbers of a value: sums come in another order when other rows are built beside them."""
    if isinstance(value, float):
        return float(f"{value:.7g}") + 0.0
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def rows_of(con, model):
    grain = ", ".join(PROJECT.model(model).grain)
    return repr(plain(con.execute(f"select * from {model} order by {grain}").fetchall()))


GPU, NPU = "components: {hardware: gpu}", "components: {hardware: npu}"
STAGES = [
    {"gpu": f"role: baseline, {GPU}", "npu_a": f"role: candidate, {NPU}"},
    {"npu_b": f"role: candidate, {NPU}"},
    {"gpu_2": f"role: replicate, of: gpu, {GPU}", "gpu_3": f"role: replicate, of: gpu, {GPU}"},
    {"npu_r": f"role: replicate, of: npu_a, {NPU}"},
]
FAULTS = {"npu_b": 30}


@pytest.mark.slow
def test_adding_runs_one_by_one_equals_building_at_once(tmp_path):
    grown = duckdb.connect()
    runs: dict[str, str] = {}
    number = 0
    for stage in STAGES:
        for name in stage:
            number += 1
            write_run(tmp_path / f"{name}.jsonl", number, FAULTS.get(name))
        runs |= stage
        ingest_migration(read_manifest(write_manifest(tmp_path, runs)), tmp_path / "lake")
        build(grown, tmp_path / "lake")
    write_run(tmp_path / "npu_a.jsonl", 2, 40)  # a log that changed
    ingest_migration(read_manifest(write_manifest(tmp_path, runs)), tmp_path / "lake")
    results = build(grown, tmp_path / "lake")
    assert results["int_pair_point"].key_count == 1
    fresh = duckdb.connect()
    build(fresh, tmp_path / "lake")
    for model in PROJECT.models:
        assert rows_of(grown, model.name) == rows_of(fresh, model.name), model.name


@pytest.mark.slow
def test_another_migration_recomputes_no_pair_of_the_first(tmp_path):
    con = duckdb.connect()
    for migration in ("one", "two"):
        folder = tmp_path / migration
        folder.mkdir()
        for number, name in enumerate(("gpu", "npu"), start=1):
            write_run(folder / f"{name}.jsonl", number)
        path = write_manifest(folder, {"gpu": f"role: baseline, {GPU}", "npu": f"role: candidate, {NPU}"})
        path.write_text(path.read_text().replace("migration: m", f"migration: {migration}"))
        ingest_migration(read_manifest(path), tmp_path / "lake")
        results = build(con, tmp_path / "lake")
    keyed = [m.name for m in PROJECT.models if m.key in ("pair_id", "migration")]
    assert "mart_divergence_onset" in keyed
    assert {name: results[name].key_count for name in keyed} == dict.fromkeys(keyed, 1)
