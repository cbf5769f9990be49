import subprocess
import sys
import textwrap

import duckdb
import pytest

from tests.statistics.star import Migration, Run, open_star
from tests.warehouse.test_load import CATALOG, put_run
from warehouse import publish as publishing
from warehouse.connection import NothingPublishedError, open_reader, open_writer, repair
from warehouse.load import load_lake
from warehouse.publish import publish
from warehouse.schema import apply_macros, apply_schema


@pytest.fixture
def warehouse(tmp_path):
    with open_writer(tmp_path / "warehouse.duckdb") as con:
        apply_schema(con)
        apply_macros(con)
        yield con


def load(con, tmp_path, last, content):
    points = [("reward", 1, step, float("inf") if step == 2 else step / 10) for step in range(1, last + 1)]
    put_run(tmp_path / "lake", points, content=content)
    load_lake(con, tmp_path / "lake", CATALOG)


def test_a_published_file_holds_tables_comments_and_keys(warehouse, tmp_path):
    load(warehouse, tmp_path, 3, "1")
    target = tmp_path / "published" / "firstdrift.duckdb"
    publication = publish(warehouse, target)
    assert publication.is_new
    assert publication.row_counts["fct_metric"] == 3
    with open_reader(target) as con:
        assert con.execute("select value from fct_metric order by step").fetchall() == [(0.1,), (float("inf"),), (0.3,)]
        comments = con.execute("select comment from duckdb_tables() where table_name = 'fct_metric'").fetchall()
        assert "Grain" in comments[0][0]
        keys = con.execute(
            "select table_name from duckdb_constraints() where constraint_type = 'PRIMARY KEY'"
        ).fetchall()
        assert ("dim_run",) in keys
        assert not con.execute("select * from duckdb_tables() where table_name like 'etl_%'").fetchall()
        with pytest.raises(duckdb.Error, match="read-only"):
            con.execute("create table x as select 1")


def test_the_file_is_in_the_storage_version_of_older_clients(warehouse, tmp_path):
    load(warehouse, tmp_path, 2, "1")
    target = tmp_path / "published" / "firstdrift.duckdb"
    publish(warehouse, target)
    # Bytes 12 to 19 of a DuckDB file hold its storage version; 1.2 to 1.4 read up to 67.
    assert int.from_bytes(target.read_bytes()[12:20], "little") <= 67


def test_equal_content_is_not_published_twice(warehouse, tmp_path):
    load(warehouse, tmp_path, 2, "1")
    target = tmp_path / "published" / "firstdrift.duckdb"
    first = publish(warehouse, target)
    inode = target.stat().st_ino
    second = publish(warehouse, target)
    assert (second.is_new, second.version) == (False, first.version)
    assert target.stat().st_ino == inode


@pytest.mark.parametrize("table", ["dim_run", "dim_migration", "dim_component", "bridge_run_component"])
def test_another_value_in_any_column_is_another_content(table):
    values = {"training/loss": {1: 2.0, 2: 1.5}}
    hardware = (("hardware", "H100", "1"),)
    runs = Run("gpu", "baseline", "gpu", values, components=hardware), Run("npu", "candidate", "npu", values, "gpu")
    con = open_star([Migration("m", runs)])
    known = {publishing.content_version(con)}
    columns = con.execute(
        "select column_name, data_type from duckdb_columns() where table_name = ? and column_name <> 'loaded_at'",
        [table],
    ).fetchall()
    for count, (column, kind) in enumerate(columns, start=2):
        value = f"coalesce({column}, '') || 'x'" if kind == "VARCHAR" else f"coalesce({column}, 0) + 1"
        con.execute(f"update {table} set {column} = {value}")
        known.add(publishing.content_version(con))
        assert len(known) == count, column


def test_old_versions_are_kept_but_not_for_ever(warehouse, tmp_path):
    target = tmp_path / "published" / "firstdrift.duckdb"
    for last in range(1, 7):
        load(warehouse, tmp_path, last, str(last))
        publish(warehouse, target)
    assert len(list(target.parent.glob("firstdrift-*.duckdb"))) == 3
    assert not list(target.parent.glob("draft-*"))


READER = """
import duckdb, sys, time
con = duckdb.connect(sys.argv[1], read_only=True)
print(con.execute("select count(*) from fct_metric").fetchall()[0][0], flush=True)
sys.stdin.readline()
print(con.execute("select count(*), max(step) from fct_metric").fetchall()[0], flush=True)
con.close()
con = duckdb.connect(sys.argv[1], read_only=True)
print(con.execute("select count(*) from fct_metric").fetchall()[0][0], flush=True)
"""


def test_a_reader_in_another_process_keeps_working_across_a_swap(warehouse, tmp_path):
    target = tmp_path / "published" / "firstdrift.duckdb"
    load(warehouse, tmp_path, 3, "1")
    publish(warehouse, target)
    reader = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(READER), str(target)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert reader.stdin is not None
    assert reader.stdout is not None
    assert reader.stdout.readline().strip() == "3"
    load(warehouse, tmp_path, 5, "2")
    publish(warehouse, target)
    reader.stdin.write("\n")
    reader.stdin.flush()
    assert reader.stdout.readline().strip() == "(3, 3)"
    assert reader.stdout.readline().strip() == "5"
    assert reader.wait(timeout=30) == 0


def test_a_file_that_lost_rows_is_not_published(warehouse, tmp_path, monkeypatch):
    target = tmp_path / "published" / "firstdrift.duckdb"
    load(warehouse, tmp_path, 3, "1")
    publish(warehouse, target)
    before = target.read_bytes()
    load(warehouse, tmp_path, 4, "2")
    copy = publishing._copy_tables

    def lossy(con, draft, version, report):
        counts = copy(con, draft, version, report)
        return {**counts, "fct_metric": counts["fct_metric"] + 1}

    monkeypatch.setattr(publishing, "_copy_tables", lossy)
    with pytest.raises(publishing.PublishError, match="fct_metric has 4 rows, expected 5"):
        publish(warehouse, target)
    assert target.read_bytes() == before


SPOILERS = {
    "cut off": lambda data: data[: len(data) // 2],
    "nearly whole": lambda data: data[:-20_000],
    "empty": lambda _: b"",
    "no database": lambda data: b"x" * len(data),
}


def read_all(path, tables):
    with open_reader(path) as con:
        for name in tables:
            con.execute(f"select * from {name}").fetchall()


@pytest.mark.parametrize("spoil", SPOILERS.values(), ids=SPOILERS)
def test_a_damaged_published_file_is_told_and_published_anew(warehouse, tmp_path, spoil):
    load(warehouse, tmp_path, 3, "1")
    target = tmp_path / "published" / "firstdrift.duckdb"
    first = publish(warehouse, target)
    whole = target.read_bytes()
    target.chmod(0o644)
    target.write_bytes(spoil(whole))
    if spoil is not SPOILERS["nearly whole"]:  # there nothing but room is lost in a file as small as this one
        with pytest.raises(ValueError, match="firstdrift run` publishes it anew"):
            read_all(target, first.row_counts)
    second = publish(warehouse, target)
    assert (second.is_new, second.version) == (True, first.version)
    with open_reader(target) as con:
        assert con.execute("select count(*) from fct_metric").fetchall() == [(3,)]
    assert not publish(warehouse, target).is_new


@pytest.mark.parametrize("text", ["", '{"version": "1', "[]", '{"version": "1"}', "\xff"])
def test_a_damaged_word_of_what_is_published_counts_as_none(warehouse, tmp_path, text):
    load(warehouse, tmp_path, 2, "1")
    target = tmp_path / "published" / "firstdrift.duckdb"
    publish(warehouse, target)
    (target.parent / "current.json").write_bytes(text.encode("latin-1"))
    assert publish(warehouse, target).is_new
    assert not publish(warehouse, target).is_new


def write_into(path):
    with open_writer(path) as con:
        con.execute("from t").fetchall()


@pytest.mark.parametrize("spoil", SPOILERS.values(), ids=SPOILERS)
def test_a_damaged_working_file_is_set_aside(tmp_path, spoil):
    path = tmp_path / "warehouse.duckdb"
    with open_writer(path) as con:
        con.execute("create table t as select range as a, hash(range) as b, md5(range::varchar) as c from range(20000)")
    damaged = spoil(path.read_bytes())
    path.write_bytes(damaged)
    # What shows when it is opened is set aside at once; what shows when it is read, then.
    with pytest.raises((ValueError, duckdb.CatalogException), match=r"is rebuilt from the lake. Run again|Table .* t "):
        write_into(path)
    (moved,) = tmp_path.glob("warehouse.duckdb.damaged-*")
    assert moved.read_bytes()[12:] == damaged[12:]
    with open_writer(path) as con:
        assert con.execute("show tables").fetchall() == []
    assert repair(path) == ""
    path.write_bytes(b"")
    assert "was damaged and is now warehouse.duckdb.damaged-" in repair(path)


def test_a_file_that_can_be_read_is_never_set_aside(tmp_path):
    path = tmp_path / "warehouse.duckdb"
    with pytest.raises(duckdb.IOException, match="No files found"), open_writer(path) as con:
        con.execute("from read_csv('nowhere.csv')")
    assert not list(tmp_path.glob("*.damaged-*"))


def test_nothing_published_is_said_plainly(tmp_path):
    with pytest.raises(NothingPublishedError, match="nothing has been published yet"), open_reader(tmp_path / "x"):
        pass


@pytest.mark.usefixtures("warehouse")
def test_a_second_writer_is_told_to_wait(tmp_path):
    code = (
        "import sys\nfrom pathlib import Path\nfrom warehouse.connection import *\n"
        "try:\n    open_writer(Path(sys.argv[1]), wait_seconds=0.3).__enter__()\n"
        "except WarehouseLockedError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "warehouse.duckdb")], capture_output=True, text=True, check=True
    )
    assert "in use by another process" in done.stdout
