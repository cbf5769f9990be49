"""What `add` and `pair` write, and that they write nothing where something is wrong."""

import pytest

from pipelines.declaring import add_folder, add_run, declare_pair
from pipelines.discovery import find_manifests
from pipelines.manifest import ManifestError, RunEntry, read_manifest
from tests.integration.conftest import write_log

MANIFEST = """\
migration: j
runs:
  - {name: a, log: a.jsonl, role: baseline}
  - {name: b, log: b.jsonl, role: candidate}
"""


@pytest.fixture
def landing(tmp_path):
    (tmp_path / "landing").mkdir()
    return tmp_path / "landing"


@pytest.fixture
def runs(tmp_path):
    for name in "abcd":
        write_log(tmp_path / "runs" / f"{name}.jsonl", [1.0, 2.0])
    (tmp_path / "runs" / "migration.yaml").write_text(MANIFEST)
    return tmp_path / "runs"


def state(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(landing, call):
    """Return the sentence of a refusal, which leaves landing and what lies around it as it was."""
    before = state(landing.parent)
    with pytest.raises(ManifestError) as raised:
        call()
    assert state(landing.parent) == before
    return str(raised.value)


def entry(runs, name, role="candidate", **more):
    return RunEntry(name, str(runs / f"{name}.jsonl"), role, **more)


def test_a_run_is_not_added_to_a_manifest_that_includes_another(landing, runs):
    add_folder(landing, runs)
    for call in (
        lambda: add_run(landing, "j", entry(runs, "c", "replicate", of="a"), {}),
        lambda: declare_pair(landing, "j", "a", "b"),
    ):
        assert f"includes the manifest in {runs / 'migration.yaml'}; change it there" in refused(landing, call)
    assert [run.name for run in find_manifests(landing).manifests[0].runs] == ["a", "b"]


@pytest.mark.parametrize("text", ["", "- a\n", "migration: [\n", "runs: 7\nmigration: j\n", "migration: other\n",
                                  "migration: j\nruns: [{name: x}]\n", "migration: j\nrecipe: 1\n"])  # fmt: skip
def test_a_manifest_that_is_not_valid_stays_as_it_is(landing, runs, text):
    (landing / "j").mkdir()
    (landing / "j" / "migration.yaml").write_text(text)
    assert "migration.yaml" in refused(landing, lambda: add_run(landing, "j", entry(runs, "c"), {"seed": "1"}))


def test_a_run_that_would_spoil_the_manifest_is_refused(landing, runs):
    add_run(landing, "m", entry(runs, "a", "baseline"), {})
    add_run(landing, "m", entry(runs, "b"), {})
    assert "several baselines" in refused(landing, lambda: add_run(landing, "m", entry(runs, "c", "baseline"), {}))
    assert "names itself" in refused(landing, lambda: add_run(landing, "m", entry(runs, "c", baseline="c"), {}))
    assert "can't be called none" in refused(landing, lambda: add_run(landing, "m", entry(runs, "none"), {}))
    assert "unknown key" in refused(landing, lambda: add_run(landing, "m", entry(runs, "c"), {"sed": "1"}))


@pytest.mark.parametrize("name", ["../evil", "a b/c", "/abs", "..", "", ".hidden", "a\n", "a\x00b", "a/b", "x" * 300])
def test_names_that_lead_elsewhere_are_refused(landing, runs, name):
    assert "The migration" in refused(landing, lambda: add_run(landing, name, entry(runs, "a"), {}))
    assert "The migration" in refused(landing, lambda: declare_pair(landing, name, "a", "b"))
    assert "The run" in refused(landing, lambda: add_run(landing, "m", RunEntry(name, "x", "candidate"), {}))


def test_what_is_still_to_be_added_is_told(landing, runs):
    first = add_run(landing, "m", entry(runs, "b", baseline="a"), {})
    assert first.missing == ("baseline", "a")
    assert add_run(landing, "m", entry(runs, "a", "baseline"), {}).missing == ()


def test_a_folder_whose_logs_are_missing_or_that_has_no_baseline_is_refused_at_once(landing, runs):
    (runs / "b.jsonl").unlink()
    said = refused(landing, lambda: add_folder(landing, runs))
    assert "there is no log of b (b.jsonl)" in said
    (runs / "migration.yaml").write_text(MANIFEST.replace("baseline", "candidate"))
    assert "no run has the role baseline" in refused(landing, lambda: add_folder(landing, runs))
    (runs / "migration.yaml").unlink()
    assert "no migration.yaml lies there" in refused(landing, lambda: add_folder(landing, runs))


def test_a_folder_takes_no_migration_away(landing, runs):
    add_run(landing, "j", entry(runs, "c", "baseline"), {})
    assert "declares runs of its own" in refused(landing, lambda: add_folder(landing, runs))
    (landing / "j" / "migration.yaml").unlink()
    write_log(landing / "j" / "x.jsonl", [1.0])
    assert "holds logs of its own" in refused(landing, lambda: add_folder(landing, runs))


def test_a_folder_of_landing_is_there_already(landing, runs):
    runs.rename(landing / "j")
    assert "lies in landing already" in refused(landing, lambda: add_folder(landing, landing / "j"))


def test_a_folder_may_be_added_again_and_have_any_name(landing, runs):
    moved = runs.rename(runs.with_name("runs: #1"))
    add_folder(landing, moved)
    add_folder(landing, moved)
    assert read_manifest(landing / "j" / "migration.yaml").folder == moved


def test_manifests_that_include_each_other_are_refused(landing):
    for name, other in (("x", "y"), ("y", "x")):
        (landing / name).mkdir()
        (landing / name / "migration.yaml").write_text(f"include: ../{other}\n")
    assert all("leads back to it" in failure.message for failure in find_manifests(landing).failures)


def test_a_run_goes_into_the_file_that_declares_its_migration(landing, runs):
    target = landing / "folder"
    target.mkdir()
    (target / "migration.yaml").write_text("migration: m\nruns:\n  - {name: a, log: a.jsonl, role: baseline}\n")
    assert add_run(landing, "m", entry(runs, "b"), {}).path == target / "migration.yaml"
    assert not (landing / "m").exists()


def test_adding_to_a_folder_of_logs_keeps_its_runs(landing, runs):
    for name in ("x", "y"):
        write_log(landing / "m" / f"{name}.jsonl", [1.0])
    add_run(landing, "m", entry(runs, "a", "baseline"), {})
    add_run(landing, "m", RunEntry("why", str(landing / "m" / "y.jsonl"), "candidate"), {})
    add_run(landing, "m", RunEntry("x", str(landing / "m" / "x.jsonl"), "candidate"), {})
    found = read_manifest(landing / "m" / "migration.yaml")
    assert {run.name: (run.log, run.baseline) for run in found.runs} == {
        "a": (str(runs / "a.jsonl"), ""),
        "x": ("x.jsonl", "a"),
        "y": ("y.jsonl", ""),
        "why": ("y.jsonl", "a"),
    }


def test_a_pair_of_many_runs_leaves_the_others_alone(landing):
    for name in ("gpu_n0", "gpu_n1", "npu_a", "npu_b"):
        write_log(landing / "lab" / f"{name}.jsonl", [1.0])
    done = declare_pair(landing, "lab", "gpu_n0", "npu_a")
    assert done.unpaired == ("gpu_n1", "npu_b")
    (manifest,) = find_manifests(landing).manifests
    assert {run.name: (run.log, run.role, run.baseline) for run in manifest.runs} == {
        "gpu_n0": ("gpu_n0.jsonl", "baseline", ""),
        "gpu_n1": ("gpu_n1.jsonl", "candidate", ""),
        "npu_a": ("npu_a.jsonl", "candidate", "gpu_n0"),
        "npu_b": ("npu_b.jsonl", "candidate", ""),
    }
    declare_pair(landing, "lab", "gpu_n1", "npu_b")  # a second baseline spoils nothing
    (manifest,) = find_manifests(landing).manifests
    assert {run.name: run.baseline for run in manifest.runs if run.baseline} == {"npu_a": "gpu_n0", "npu_b": "gpu_n1"}


def test_runs_that_were_paired_stay_so(landing):
    for name in ("gpu", "npu_a", "npu_b"):
        write_log(landing / "m" / f"{name}.jsonl", [1.0])
    declare_pair(landing, "m", "npu_a", "npu_b")
    (manifest,) = find_manifests(landing).manifests
    assert {run.name: (run.role, run.baseline) for run in manifest.runs} == {
        "gpu": ("baseline", ""),
        "npu_a": ("candidate", "gpu"),
        "npu_b": ("candidate", "npu_a"),
    }


def test_a_pair_may_be_turned_round(landing):
    for name in ("gpu", "npu_a", "npu_b"):
        write_log(landing / "m" / f"{name}.jsonl", [1.0])
    for pair in (("npu_a", "npu_b"), ("npu_b", "gpu")):  # a circle has no baseline but the one that is named last
        declare_pair(landing, "m", *pair)
    (manifest,) = find_manifests(landing).manifests
    assert {run.name: (run.role, run.baseline) for run in manifest.runs} == {
        "gpu": ("candidate", "npu_b"),
        "npu_a": ("candidate", "gpu"),
        "npu_b": ("baseline", ""),
    }


def test_a_replicate_that_becomes_a_baseline_stays_a_replicate(landing, runs):
    add_run(landing, "m", entry(runs, "a", "baseline"), {})
    add_run(landing, "m", entry(runs, "b", "replicate", of="a"), {})
    add_run(landing, "m", entry(runs, "c"), {})
    declare_pair(landing, "m", "b", "c")
    found = {run.name: run for run in read_manifest(landing / "m" / "migration.yaml").runs}
    assert (found["b"].role, found["b"].of, found["c"].baseline) == ("replicate", "a", "b")


def test_a_pair_of_loose_logs_is_declared_beside_them(landing):
    for name in ("gpu", "npu"):
        write_log(landing / f"{name}.jsonl", [1.0])
    assert declare_pair(landing, "landing", "gpu", "npu").path == landing / "migration.yaml"
    found = find_manifests(landing)
    assert not found.failures
    assert [run.log for run in found.manifests[0].runs] == ["gpu.jsonl", "npu.jsonl"]
