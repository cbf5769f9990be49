"""What a kill during the first start leaves of Dagster's storage does not stop the next one."""

import sqlite3
from contextlib import closing

import dagster as dg

from pipelines.dagster_storage import INSTANCE_FILE, prepare_storage

INDEX = "history/runs/index.db"


def partitions_of(folder):
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        instance.add_dynamic_partitions("migration", ["m"])
        assert not instance.get_runs()
        return list(instance.get_dynamic_partitions("migration"))


def half_made(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as con:
        con.execute("create table event_logs (id integer)")
        con.commit()


def test_a_half_made_storage_is_set_aside_and_made_anew(tmp_path):
    half_made(tmp_path / INDEX)
    (tmp_path / "schedules").mkdir()
    (tmp_path / "schedules" / "schedules.db").write_bytes(b"no database at all" * 100)
    (tmp_path / INSTANCE_FILE).touch()
    (tmp_path / ".draft-left" / "history").mkdir(parents=True)
    prepare_storage(tmp_path)
    assert partitions_of(tmp_path) == ["m"]
    assert "max_concurrent_runs" in (tmp_path / INSTANCE_FILE).read_text()
    assert not list(tmp_path.glob(".draft-*"))
    assert len(list((tmp_path / INDEX).parent.glob("index.db.damaged-*"))) == 1
    assert len(list((tmp_path / "schedules").glob("schedules.db.damaged-*"))) == 1


def test_a_whole_storage_is_left_alone_and_what_is_absent_is_made(tmp_path):
    prepare_storage(tmp_path)
    (tmp_path / "history" / "runs.db").unlink()
    prepare_storage(tmp_path)
    partitions_of(tmp_path)
    (tmp_path / INSTANCE_FILE).write_text("telemetry: {enabled: false}\n")
    prepare_storage(tmp_path)
    assert (tmp_path / INSTANCE_FILE).read_text() == "telemetry: {enabled: false}\n"
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert list(instance.get_dynamic_partitions("migration")) == ["m"]
    assert not list(tmp_path.rglob("*.damaged-*"))
    with closing(sqlite3.connect(tmp_path / "history" / "runs.db")) as con:
        assert con.execute("select count(*) from alembic_version").fetchall() == [(1,)]


def test_a_storage_of_its_own_needs_no_files(tmp_path):
    (tmp_path / INSTANCE_FILE).write_text("storage:\n  postgres:\n    postgres_url: nowhere\n")
    prepare_storage(tmp_path)
    assert not (tmp_path / "history").exists()
