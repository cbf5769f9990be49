"""What lies in landing and is no log that anybody can read is told; a folder means the same to run and inspect."""

import shutil

import pytest

from pipelines.discovery import find_manifests
from pipelines.inspection import folder_notes, inspect_path
from pipelines.landing import ingest_migration
from tests.conftest import PROJECT
from tests.integration.conftest import write_log
from warehouse.catalog import load_catalog
from warehouse.lake import read_migration

SILENT = ("README.md", "run.yaml", "start.sh", "plot.py", ".hidden.jsonl", "requirements.txt", "curve.png")


@pytest.fixture
def landing(tmp_path):
    for name in ("gpu", "npu"):
        write_log(tmp_path / "landing" / "m" / f"{name}.jsonl", [1.0, 2.0])
    return tmp_path / "landing"


def passed_over(landing):
    """Return what is said of landing, without the folder's own path."""
    found = find_manifests(landing)
    assert not found.failures
    sentences = [*found.notes, *(text for manifest in found.manifests for text in manifest.unread.values())]
    return [text.removeprefix(f"{landing}/") for text in sentences]


def test_every_file_and_folder_that_nobody_can_read_has_its_note(landing):
    folder = landing / "m"
    (folder / "nonsense.txt").write_text("nothing that anyone logged")
    (folder / "cut.jsonl").write_text("")
    (folder / "cut.log").write_text("step:")
    (folder / "run_c").mkdir()
    (folder / "run_d").mkdir()
    (folder / "run_d" / "nonsense.txt").write_text("nothing")
    write_log(folder / "run_e" / "deep" / "log.jsonl", [1.0])
    (landing / "loose.txt").write_text("nothing")
    (landing / "later").mkdir()
    assert sorted(passed_over(landing)) == [
        "later: the folder is empty; nothing was taken in.",
        "loose.txt: not taken in, no reader knows its content.",
        "m/cut.jsonl: not taken in, the file is empty.",
        "m/cut.log: not taken in, no reader knows its content.",
        "m/nonsense.txt: not taken in, no reader knows its content.",
        "m/run_c: not taken in, the folder is empty.",
        "m/run_d: not taken in, none of the 1 files in this folder is a log that a reader knows.",
        "m/run_e: not taken in, no log lies in it; if one lies deeper, name it in a migration.yaml.",
    ]


def test_what_nobody_expects_to_be_read_is_not_worth_a_word(landing):
    for folder in (landing, landing / "m", landing / "m" / "tools", landing / "tools"):
        folder.mkdir(exist_ok=True)
        for name in SILENT:
            (folder / name).write_text("no log")
    assert passed_over(landing) == []


def test_a_folder_without_any_log_is_a_failure(landing):
    (landing / "junk").mkdir()
    (landing / "junk" / "nonsense.txt").write_text("nothing")
    found = find_manifests(landing)
    assert [m.migration for m in found.manifests] == ["m"]
    (failure,) = found.failures
    assert "no reader knows anything that lies there (nonsense.txt)" in failure.message


def test_a_log_that_nobody_can_read_any_more_fails_and_what_was_stored_stays(landing, tmp_path):
    lake = tmp_path / "lake"
    ingest_migration(find_manifests(landing).manifests[0], lake)
    (landing / "m" / "npu.jsonl").write_text("")
    result = ingest_migration(find_manifests(landing).manifests[0], lake)
    assert [(f.run, "the file is empty" in f.message) for f in result.failures] == [("npu", True)]
    record = read_migration(lake, "m")
    assert record is not None
    assert sorted(run.name for run in record.runs) == ["gpu", "npu"]


def test_two_logs_of_one_name_are_refused(landing):
    (landing / "m" / "gpu.csv").write_text("step,loss\n1,2.0\n2,3.0\n")
    (failure,) = find_manifests(landing).failures
    assert "gpu.csv and gpu.jsonl would both be the run gpu" in failure.message


def test_a_log_beside_a_manifest_that_names_it_nowhere_is_told(landing):
    (landing / "m" / "migration.yaml").write_text(
        "migration: m\nruns:\n  - {name: gpu, log: gpu.jsonl, role: baseline}\n"
    )
    (landing / "m" / "notes.txt").write_text("nothing")
    assert passed_over(landing) == [
        "m/npu.jsonl: not taken in, since migration.yaml beside it names no run with this log."
    ]


@pytest.mark.parametrize("name", ["a\n", "a/b", "..", ".a", "a b", "a\x07", "x" * 201, "", "-a"])
def test_names_that_are_no_folder_of_their_own_are_refused_in_manifests(landing, name):
    import json

    for text in (
        f"migration: {json.dumps(name)}\nruns:\n  - {{name: gpu, log: gpu.jsonl, role: baseline}}\n",
        f"migration: m\nruns:\n  - {{name: {json.dumps(name)}, log: gpu.jsonl, role: baseline}}\n",
    ):
        (landing / "m" / "migration.yaml").write_text(text)
        (failure,) = find_manifests(landing).failures
        assert "name" in failure.message
        assert failure.message.isprintable()


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(PROJECT / "catalog")


def seen_by_run(folder, landing):
    shutil.copytree(folder, landing / folder.name)
    (manifest,) = find_manifests(landing).manifests
    return [run.name for run in manifest.runs]


@pytest.mark.parametrize("names", [("gpu.jsonl", "npu_0.jsonl", "npu_1.jsonl"), ("gpu/log.jsonl", "npu/log.jsonl")])
def test_inspect_sees_the_runs_of_a_folder_that_run_would_take(tmp_path, catalog, names):
    for name in names:
        write_log(tmp_path / "lab" / name, [1.0, 2.0])
    views = inspect_path(tmp_path / "lab", catalog)
    assert [view.name for view in views] == seen_by_run(tmp_path / "lab", tmp_path / "landing")
    assert len(views) == len(names)
    assert all(max(axis.attempt for axis in view.summary.axes) == 1 for view in views if view.summary)
    assert folder_notes(tmp_path / "lab", views)


def test_inspect_sees_the_lab_as_run_does(cases_dir, tmp_path, catalog):
    folder = tmp_path / "lab"
    folder.mkdir()
    for path in sorted((cases_dir / "lab").glob("npu_n*")):
        shutil.copyfile(path, folder / path.name)
    assert [view.name for view in inspect_path(folder, catalog)] == ["npu_n0", "npu_n1", "npu_n2"]


def test_event_files_of_one_folder_are_one_run_to_both(cases_dir, tmp_path, catalog):
    folder = cases_dir / "real" / "tensorboard_restart"
    (view,) = inspect_path(folder, catalog)
    assert view.summary is not None
    assert max(axis.attempt for axis in view.summary.axes) == 2
    assert seen_by_run(folder, tmp_path / "landing") == ["tensorboard_restart"]
    twins = cases_dir / "real" / "tensorboard_twins"
    assert [view.name for view in inspect_path(twins, catalog)] == ["async", "base"]


def test_inspect_of_a_folder_with_one_log_is_that_run_with_what_lies_beside(tmp_path, catalog):
    write_log(tmp_path / "gpu" / "log.jsonl", [1.0])
    (tmp_path / "gpu" / "requirements.txt").write_text("torch==2.9.0\n")
    (view,) = inspect_path(tmp_path / "gpu", catalog)
    assert view.name == "gpu"
    assert view.summary is not None
    assert view.summary.metadata["torch"] == "2.9.0"


def test_inspect_says_what_nobody_can_read(tmp_path, catalog):
    write_log(tmp_path / "lab" / "gpu.jsonl", [1.0])
    write_log(tmp_path / "lab" / "npu.jsonl", [1.0])
    (tmp_path / "lab" / "cut.jsonl").write_text("")
    (tmp_path / "lab" / "README.md").write_text("no log")
    errors = {view.name: view.error for view in inspect_path(tmp_path / "lab", catalog)}
    assert errors.pop("cut").endswith("the file is empty.")
    assert errors == {"gpu": "", "npu": ""}
