import json

import pyarrow.parquet as pq
import pytest

from pipelines import landing
from pipelines.discovery import find_manifests
from pipelines.landing import ingest_migration
from pipelines.manifest import read_manifest
from pipelines.run_facts import components_of
from tests.integration.conftest import write_log
from warehouse import lake as lake_files
from warehouse.lake import read_migration

MANIFEST = """\
migration: m
runs:
  - {name: gpu, log: gpu.jsonl, role: baseline}
  - {name: npu, log: "npu_*.jsonl", role: candidate}
"""


@pytest.fixture
def folder(tmp_path):
    write_log(tmp_path / "landing" / "m" / "gpu.jsonl", [1.0, 2.0])
    write_log(tmp_path / "landing" / "m" / "npu_0.jsonl", [1.0, 2.5])
    (tmp_path / "landing" / "m" / "migration.yaml").write_text(MANIFEST)
    return tmp_path


def ingest(folder):
    found = find_manifests(folder / "landing")
    assert not found.failures
    (manifest,) = found.manifests
    return ingest_migration(manifest, folder / "lake")


def runs(folder):
    record = read_migration(folder / "lake", "m")
    assert record is not None
    return {run.name: run for run in record.runs}


def test_only_changed_logs_are_read(folder):
    first = ingest(folder)
    assert (first.read_runs, first.kept_runs, first.is_changed) == (("gpu", "npu"), (), True)
    again = ingest(folder)
    assert (again.read_runs, again.kept_runs, again.is_changed) == ((), ("gpu", "npu"), False)
    write_log(folder / "landing" / "m" / "npu_0.jsonl", [1.0, 2.5, 3.0])
    grown = ingest(folder)
    assert (grown.read_runs, grown.kept_runs, grown.is_changed) == (("npu",), ("gpu",), True)


def test_nothing_in_landing_is_changed(folder):
    def state():
        return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in (folder / "landing").rglob("*") if p.is_file()}

    before = state()
    ingest(folder)
    assert state() == before


def test_an_unreadable_log_fails_alone_and_what_was_stored_stays(folder):
    ingest(folder)
    stored = runs(folder)["npu"].content_hash
    (folder / "landing" / "m" / "npu_0.jsonl").write_bytes(b"\x00\x01 nothing that anyone logged \xff")
    result = ingest(folder)
    assert [f.run for f in result.failures] == ["npu"]
    assert "npu_0.jsonl" in result.failures[0].message
    assert runs(folder)["npu"].content_hash == stored
    assert list((folder / "lake" / "m" / "npu").glob("*.parquet"))


def test_a_missing_log_is_named(folder):
    (folder / "landing" / "m" / "gpu.jsonl").unlink()
    result = ingest(folder)
    assert "names the log gpu.jsonl, but there is no such file" in result.failures[0].message
    assert "npu" in runs(folder)


def test_a_changed_manifest_is_a_change_without_reading(folder):
    ingest(folder)
    path = folder / "landing" / "m" / "migration.yaml"
    path.write_text(MANIFEST.replace("role: baseline}", "role: baseline, components: {hardware: H100}}"))
    result = ingest(folder)
    assert (result.read_runs, result.is_changed) == ((), True)
    assert runs(folder)["gpu"].components[0].name == "H100"


def test_readers_of_another_version_read_again(folder, monkeypatch):
    ingest(folder)
    monkeypatch.setattr(landing, "READER_VERSION", "other")
    assert ingest(folder).read_runs == ("gpu", "npu")


def test_old_contents_are_pruned(folder):
    for last in range(2, 7):
        write_log(folder / "landing" / "m" / "gpu.jsonl", [float(n) for n in range(last)])
        ingest(folder)
    stored = folder / "lake" / "m" / "gpu"
    contents = [json.loads(path.read_text()) for path in stored.glob("*.json")]
    assert len(contents) == 2
    needed = {p for c in contents for p in (*c["points"], *c["issues"], *c["reading"]["logs"]["jsonl"]["points"])}
    assert {path.name for path in stored.glob("*.parquet")} == needed


def test_many_logs_are_read_in_parallel_with_the_same_result(tmp_path):
    for n in range(landing._PARALLEL_FROM + 6):
        write_log(tmp_path / "landing" / "m" / f"run_{n}" / "log.jsonl", [float(n), 2.0])
    result = ingest(tmp_path)
    assert len(result.read_runs) == landing._PARALLEL_FROM + 6
    assert result.point_count == 4 * len(result.read_runs)
    (path,) = (tmp_path / "lake" / "m" / "run_7").glob("*.parquet")
    assert 7.0 in pq.read_table(path).column("value").to_pylist()


def test_folders_without_a_manifest_are_runs(tmp_path):
    write_log(tmp_path / "landing" / "m" / "gpu_run" / "log.jsonl", [1.0])
    write_log(tmp_path / "landing" / "m" / "npu_run" / "log.jsonl", [1.0])
    (tmp_path / "landing" / "m" / "notes.md").write_text("no log")
    result = ingest(tmp_path)
    assert result.read_runs == ("gpu_run", "npu_run")
    assert "inferred" in result.notes[0]
    assert runs(tmp_path)["npu_run"].how_paired == "inferred"


def test_loose_logs_are_a_migration_of_their_own(tmp_path):
    write_log(tmp_path / "landing" / "a.jsonl", [1.0])
    write_log(tmp_path / "landing" / "b.jsonl", [1.0])
    found = find_manifests(tmp_path / "landing")
    assert not found.failures
    assert [(m.migration, [r.name for r in m.runs]) for m in found.manifests] == [("landing", ["a", "b"])]


def test_a_faulty_manifest_does_not_hide_the_others(folder):
    (folder / "landing" / "broken").mkdir()
    (folder / "landing" / "broken" / "migration.yaml").write_text("migration: x\n")
    found = find_manifests(folder / "landing")
    assert [m.migration for m in found.manifests] == ["m"]
    assert "broken" in found.failures[0].message


def test_a_migration_declared_twice_is_refused(folder):
    (folder / "landing" / "z").mkdir()
    (folder / "landing" / "z" / "migration.yaml").write_text(f"include: {folder / 'landing' / 'm'}\n")
    found = find_manifests(folder / "landing")
    assert len(found.manifests) == 1
    assert "already declared" in found.failures[0].message


def test_the_examples_are_a_valid_manifest():
    from warehouse.settings import project_folder

    read = read_manifest(project_folder("examples") / "migration.yaml")
    assert [r.name for r in read.runs][:2] == ["gpu_n0", "gpu_n1"]


def test_facts_of_a_log_become_components():
    found = components_of(
        {"accelerator": "NVIDIA H100", "cuda": "12.4", "rollout_engine": "vllm", "vllm": "0.11", "seed": "1"}
    )
    assert {(c.kind, c.name, c.version) for c in found} == {
        ("hardware", "NVIDIA H100", ""),
        ("compute_stack", "CUDA", "12.4"),
        ("rollout_engine", "vllm", "0.11"),
    }


def test_the_manifest_wins_over_the_log_and_the_conflict_is_told(folder):
    for name in ("gpu", "npu_0"):
        log = folder / "landing" / "m" / f"{name}.jsonl"
        (folder / "landing" / "m" / name).mkdir()
        log.rename(folder / "landing" / "m" / name / "log.jsonl")
        (folder / "landing" / "m" / name / "requirements.txt").write_text("torch==2.9.0\nvllm==0.11.0\n")
    (folder / "landing" / "m" / "migration.yaml").write_text(
        "migration: m\nruns:\n"
        "  - {name: gpu, log: gpu, role: baseline, components: {rollout_engine: sglang@0.5}}\n"
        "  - {name: npu, log: npu_0, role: candidate}\n"
    )
    result = ingest(folder)
    assert "gpu: the manifest says rollout_engine sglang 0.5, the log vllm 0.11.0; the manifest wins." in result.notes
    kept = runs(folder)["gpu"]
    names = {(c.kind, c.name, c.version) for c in lake_files.all_components(kept)}
    assert names == {("rollout_engine", "sglang", "0.5"), ("library", "torch", "2.9.0")}
    assert ingest(folder).is_changed is False


def test_a_log_that_starts_in_the_middle_says_so(folder):
    rows = [json.dumps({"step": step, "data": {"train/loss": 0.5}}) for step in range(40, 50)]
    (folder / "landing" / "m" / "npu_0.jsonl").write_text("\n".join(rows) + "\n")
    rows = [json.dumps({"step": step, "data": {"train/loss": 0.5}}) for step in range(10, 60, 10)]
    (folder / "landing" / "m" / "gpu.jsonl").write_text("\n".join(rows) + "\n")  # logs every tenth step
    notes = ingest(folder).notes
    assert notes == ("npu: the log begins at step 40 of the axis step: what came before is not in it.",)
