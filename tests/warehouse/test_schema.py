import duckdb
import pytest

from warehouse import schema
from warehouse.schema import ensure_current, with_transaction


def test_a_current_file_is_left_alone(tmp_path):
    with duckdb.connect(tmp_path / "w.duckdb") as con:
        ensure_current(con)
        con.execute("insert into etl_state values ('mark', 'kept')")
        ensure_current(con)
        assert con.execute("select value from etl_state where name = 'mark'").fetchall() == [("kept",)]


def test_a_file_of_another_release_is_emptied(monkeypatch, tmp_path):
    with duckdb.connect(tmp_path / "w.duckdb") as con:
        ensure_current(con)
        con.execute("create table mart_old as select 1 as x")
        con.execute("create view stg_old as select * from mart_old")
        newer = tmp_path / "90_newer.sql"
        newer.write_text("create table if not exists dim_new (x integer);")
        files = schema.schema_files()
        monkeypatch.setattr(schema, "schema_files", lambda: [*files, newer])
        ensure_current(con)
        names = {n for (n,) in con.execute("select table_name from information_schema.tables").fetchall()}
        assert "dim_new" in names
        assert not names & {"mart_old", "stg_old"}


def test_a_failing_script_changes_nothing(star):
    with pytest.raises(duckdb.Error):
        with_transaction(star, ["create table x (a integer)", "create table x (a integer)"])
    assert not star.execute("select * from duckdb_tables() where table_name = 'x'").fetchall()


def test_another_macro_empties_nothing(monkeypatch, tmp_path):
    with duckdb.connect(tmp_path / "w.duckdb") as con:
        ensure_current(con)
        con.execute("create table mart_kept as select 1 as x")
        newer = tmp_path / "90_newer.sql"
        newer.write_text("create or replace macro twice(x) as 2 * x;")
        files = schema.macro_files()
        monkeypatch.setattr(schema, "macro_files", lambda: [*files, newer])
        ensure_current(con)
        assert con.execute("select twice(x) from mart_kept").fetchall() == [(2,)]
