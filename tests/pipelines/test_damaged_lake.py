"""A lake that lost or damaged a file heals from the log; two passes at once leave it whole."""

import json
import multiprocessing
import threading
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from pipelines import intake
from pipelines.landing import ingest_migration
from pipelines.manifest import Manifest, RunEntry
from pipelines.resources import current_catalog
from warehouse import lake as lake_files
from warehouse.lake import LakeError
from warehouse.load import load_lake
from warehouse.schema import ensure_current


def manifest(folder: Path) -> Manifest:
    return Manifest("m", folder, {}, (RunEntry("r", "r.jsonl", "baseline"),))


def grow(folder: Path, steps: int) -> None:
    lines = [json.dumps({"step": step, "data": {"loss": 1 / step}}) for step in range(1, steps + 1)]
    (folder / "r.jsonl").write_text("\n".join([*lines, ""]))


def loaded(lake: Path) -> int:
    con = duckdb.connect()
    try:
        ensure_current(con)
        return load_lake(con, lake, current_catalog()).added_points
    finally:
        con.close()


def content_file(lake: Path) -> Path:
    return next((lake / "m/r").glob("*.json"))


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def break_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4:-8] = bytes(len(data) - 12)
    path.write_bytes(data)


def state_of_another_version(lake: Path) -> None:
    file = content_file(lake)
    content = json.loads(file.read_text())
    content["reading"]["logs"]["jsonl"]["progress"] = {"unknown": 1}
    file.write_text(json.dumps(content))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "list cut": lambda lake: cut(content_file(lake), 40),
    "list empty": lambda lake: cut(content_file(lake), 0),
    "list of another shape": lambda lake: content_file(lake).write_text("[1]"),
    "list gone": lambda lake: content_file(lake).unlink(),
    "part cut": lambda lake: cut(next((lake / "m/r").glob("*.parquet")), 100),
    "part gone": lambda lake: next((lake / "m/r").glob("*.parquet")).unlink(),
    "record cut": lambda lake: cut(lake / "m/migration.json", 9),
    "record of another shape": lambda lake: (lake / "m/migration.json").write_text('{"name": "m", "runs": [7]}'),
}


@pytest.mark.parametrize("has_grown", [False, True])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_lake_heals_from_the_log(damage: str, has_grown: bool, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    grow(tmp_path, 9)
    ingest_migration(manifest(tmp_path), lake)
    DAMAGES[damage](lake)
    with pytest.raises(LakeError, match=r"this file of the lake is .*; run again"):
        loaded(lake)
    if has_grown:
        grow(tmp_path, 13)
    result = ingest_migration(manifest(tmp_path), lake)
    assert (result.failures, result.read_runs) == ((), ("r",))
    assert loaded(lake) == (13 if has_grown else 9)


@pytest.mark.parametrize(
    "damage", [state_of_another_version, lambda lake: break_middle(next(lake.glob("m/r/*.parquet")))]
)
def test_what_can_not_be_gone_on_from_is_read_whole(damage: Callable[[Path], object], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    grow(tmp_path, 9)
    ingest_migration(manifest(tmp_path), lake)
    damage(lake)
    grow(tmp_path, 13)
    assert not ingest_migration(manifest(tmp_path), lake).failures
    assert loaded(lake) == 13


def test_what_a_later_version_added_to_a_record_is_left_out(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    grow(tmp_path, 9)
    ingest_migration(manifest(tmp_path), lake)
    file = lake / "m/migration.json"
    file.write_text(file.read_text().replace('"config_hash"', '"later": 1, "config_hash"'))
    assert ingest_migration(manifest(tmp_path), lake).kept_runs == ("r",)
    assert loaded(lake) == 9


def test_a_damaged_part_of_a_run_whose_log_is_gone_is_kept_and_named(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    grow(tmp_path, 9)
    ingest_migration(manifest(tmp_path), lake)
    (tmp_path / "r.jsonl").unlink()
    cut(content_file(lake), 0)
    assert len(ingest_migration(manifest(tmp_path), lake).failures) == 1
    assert list((lake / "m/r").glob("*.parquet"))
    with pytest.raises(LakeError, match=content_file(lake).name):
        loaded(lake)


def ingest_in_a_process(folder: Path) -> None:
    assert not ingest_migration(manifest(folder), folder / "lake").failures


def test_two_passes_at_once_leave_the_lake_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one begins while the first is about to say what it wrote, and sees a log that has grown."""
    lake = tmp_path / "lake"
    grow(tmp_path, 9)
    ingest_migration(manifest(tmp_path), lake)
    grow(tmp_path, 10)
    say, other = lake_files.write_content, []

    def say_late(*what) -> None:
        monkeypatch.undo()
        grow(tmp_path, 12)
        other.append(multiprocessing.get_context("spawn").Process(target=ingest_in_a_process, args=(tmp_path,)))
        other[0].start()
        other[0].join(4)
        assert other[0].is_alive(), "it waits"
        say(*what)

    monkeypatch.setattr(intake.lake_files, "write_content", say_late)
    first = threading.Thread(target=ingest_in_a_process, args=(tmp_path,))
    first.start()
    first.join()
    other[0].join()
    assert other[0].exitcode == 0
    assert loaded(lake) == 12
