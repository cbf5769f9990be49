"""Whatever is wrong with one log, one run or one folder, it is told in a sentence, and the others go on."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from pipelines.discovery import find_manifests
from pipelines.ingest import verl_jsonl
from pipelines.ingest.base import ClosedLogError
from pipelines.ingest.registry import read_log
from pipelines.landing import IngestResult, ingest_migration
from pipelines.manifest import Manifest, RunEntry
from tests.ingest import encode
from warehouse import lake as lake_files

GOOD = '{"step": 1, "data": {"a": 0.5}}\n{"step": 2, "data": {"a": 0.5}}\n'


def ingest(folder: Path, bad: str) -> IngestResult:
    """Take in a run whose log is `bad`, and a good one behind it."""
    (folder / "good.jsonl").write_text(GOOD)
    runs = (RunEntry("bad", bad, "baseline"), RunEntry("good", "good.jsonl", "candidate", baseline="bad"))
    return ingest_migration(Manifest("m", folder, {}, runs), folder / "lake")


def only_failure(result: IngestResult) -> str:
    assert result.read_runs == ("good",)
    (failure,) = result.failures
    assert failure.run == "bad"
    return failure.message


@pytest.mark.parametrize("log", ["~nobody-has-this-name/x", "**b/[*", "a\0b"])
def test_a_log_that_is_no_path(log: str, tmp_path: Path) -> None:
    message = only_failure(ingest(tmp_path, log))
    assert "run bad names the log" in message
    assert "give a path or glob" in message


def test_a_fault_of_a_reader_is_told_with_run_and_file(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text(GOOD)
    read = verl_jsonl.scan

    def scan(log):
        if log.path.name == "bad.jsonl":
            raise TypeError("no such thing")
        return read(log)

    with mock.patch.object(verl_jsonl, "scan", scan):
        message = only_failure(ingest(tmp_path, "bad.jsonl"))
    assert message.startswith(f"{tmp_path / 'bad.jsonl'}: run bad: this can't be read (TypeError: no such thing)")


def test_file_names_of_any_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in (b"a\xff.jsonl", b"a\xfe.jsonl"):
        (folder / os.fsdecode(name)).write_text(GOOD)
    result = ingest(tmp_path, "runs/*.jsonl")
    assert not result.failures
    record = lake_files.read_migration(tmp_path / "lake", "m")
    assert record is not None
    content = lake_files.read_content(tmp_path / "lake", "m", "bad", record.runs[0].content_hash)
    points = lake_files.read_part(tmp_path / "lake/m/bad", content.points[0])
    assert set(points["source_file"].to_pylist()) == {"a\\xff.jsonl", "a\\xfe.jsonl"}


def test_one_migration_that_can_not_be_stored(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text(GOOD)
    name = "m" * 300
    result = ingest_migration(
        Manifest(name, tmp_path, {}, (RunEntry("r", "good.jsonl", "baseline"),)), tmp_path / "lake"
    )
    assert "File name too long" in result.failures[0].message


@pytest.fixture
def someone() -> Iterator[Path]:
    """A folder, and from then on a user to whom files can be closed."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    encode.mlflow(folder / "warm.db", {"r": [("a", 1.0, 1, False)]})
    read_log(folder / "warm.db")  # imports all that a later user might not be allowed to
    user = os.geteuid()
    yield folder
    os.seteuid(user)
    for path in (folder, *(Path(root) / name for root, names, _ in os.walk(folder) for name in names)):
        path.chmod(0o777)
    shutil.rmtree(folder)


def become_someone() -> None:
    if os.geteuid() == 0:
        os.seteuid(65534)


def test_closed_logs_and_folders_are_told(someone: Path) -> None:
    landing = someone / "landing"
    for name in ("closed", "listed", "open"):
        (landing / name).mkdir(parents=True)
        (landing / name / "run.jsonl").write_text(GOOD)
    (landing / "listed/run.jsonl").chmod(0)
    (landing / "closed").chmod(0)
    become_someone()
    with pytest.raises(ClosedLogError, match=r"run\.jsonl: this can't be opened"):
        read_log(landing / "listed/run.jsonl")
    with pytest.raises(ClosedLogError, match="this can't be opened"):
        read_log(landing / "closed")
    found = find_manifests(landing)
    assert [m.migration for m in found.manifests] == ["listed", "open"]
    assert ["can't be opened" in f.message or "Permission denied" in f.message for f in found.failures] == [True]
    results = [ingest_migration(m, someone / "lake") for m in found.manifests]
    assert [len(r.failures) for r in results] == [1, 0]
    assert "run.jsonl: this can't be opened" in results[0].failures[0].message


def test_stores_in_a_folder_that_can_not_be_written(someone: Path) -> None:
    """In WAL mode SQLite wants to make files beside the store."""
    alone, with_wal = someone / "alone", someone / "with_wal"
    alone.mkdir()
    with_wal.mkdir()
    store = someone / "warm.db"
    con = sqlite3.connect(store)
    con.execute("pragma journal_mode = wal")
    con.execute("update runs set status = 'RUNNING'")
    con.commit()
    for name in ("warm.db", "warm.db-wal"):
        shutil.copy(someone / name, with_wal / name)
    con.close()
    shutil.copy(store, alone / "warm.db")
    for folder in (alone, with_wal):
        folder.chmod(0o555)
    become_someone()
    assert read_log(alone / "warm.db").points.num_rows == 1
    assert [p.name for p in alone.iterdir()] == ["warm.db"]
    with pytest.raises(ClosedLogError, match="copy the store and its -wal file to a folder that you may write to"):
        read_log(with_wal / "warm.db")
