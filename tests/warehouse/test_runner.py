import duckdb
import pytest

from warehouse.project import load_project
from warehouse.runner import build_all
from warehouse.schema import apply_schema, schema_files

KEYED = """-- Pairs with a doubled name.
-- grain: pair_id
-- materialized: incremental(pair_id)
select
    pair_id,  -- the pair
    candidate_run_name || '{suffix}' as name,  -- its candidate
    nextval('build_counter') as built_as  -- rises with every row that is built
from dim_migration
"""
WHOLE = """-- Number of pairs.
-- grain: n
-- materialized: table
select count(*) as n  -- pairs
from mart_keyed
"""


@pytest.fixture
def con():
    con = duckdb.connect()
    apply_schema(con)
    con.execute("create sequence build_counter")
    con.execute("insert into etl_state values ('catalog_hash', 'c')")
    yield con
    con.close()


def project(tmp_path, suffix=""):
    (tmp_path / "marts").mkdir(exist_ok=True)
    (tmp_path / "marts" / "mart_keyed.sql").write_text(KEYED.format(suffix=suffix))
    (tmp_path / "marts" / "mart_whole.sql").write_text(WHOLE)
    return load_project(tmp_path, schema_files())


def put_pair(con, pair_id, version):
    con.execute(
        "insert or replace into dim_migration values (?, 'm', 'migration', 'declared', 1, 'b', 2, 'c', 's', 't', ?)",
        [pair_id, version],
    )


def rows(con):
    return con.execute("select pair_id, name, built_as from mart_keyed order by pair_id").fetchall()


def actions(results):
    return {r.model: (r.action, r.key_count) for r in results}


def test_only_changed_pairs_are_rebuilt(con, tmp_path):
    models = project(tmp_path)
    put_pair(con, 1, "v1")
    put_pair(con, 2, "v1")
    build_all(con, models)
    first = rows(con)
    put_pair(con, 3, "v1")
    assert actions(build_all(con, models)) == {"mart_keyed": ("updated", 1), "mart_whole": ("built", 0)}
    assert rows(con)[:2] == first
    put_pair(con, 2, "v2")
    build_all(con, models)
    assert rows(con)[0] == first[0]
    assert rows(con)[1][2] > first[1][2]


def test_nothing_is_rebuilt_when_nothing_changed(con, tmp_path):
    models = project(tmp_path)
    put_pair(con, 1, "v1")
    build_all(con, models)
    assert {a for a, _ in actions(build_all(con, models)).values()} == {"unchanged"}


def test_a_pair_that_left_is_removed(con, tmp_path):
    models = project(tmp_path)
    put_pair(con, 1, "v1")
    put_pair(con, 2, "v1")
    build_all(con, models)
    con.execute("delete from dim_migration where pair_id = 1")
    build_all(con, models)
    assert [r[0] for r in rows(con)] == [2]
    assert con.execute("select n from mart_whole").fetchall() == [(1,)]


def test_a_changed_model_is_built_whole(con, tmp_path):
    put_pair(con, 1, "v1")
    build_all(con, project(tmp_path))
    build_all(con, project(tmp_path, suffix="!"))
    assert rows(con)[0][1] == "c!"


def test_comments_survive_a_rebuild(con, tmp_path):
    models = project(tmp_path)
    for pair_id in (1, 2):
        put_pair(con, pair_id, "v1")
        build_all(con, models)
        comments = con.execute("select comment from duckdb_columns() where table_name = 'mart_whole'").fetchall()
        assert comments == [("pairs",)]
        tables = con.execute("select comment from duckdb_tables() where table_name = 'mart_keyed'").fetchall()
        assert tables == [("Pairs with a doubled name. Grain: pair_id.",)]


def test_a_failing_model_leaves_its_table_as_it_was(con, tmp_path):
    models = project(tmp_path)
    put_pair(con, 1, "v1")
    build_all(con, models)
    before = rows(con)
    put_pair(con, 1, "v2")
    broken = project(tmp_path, suffix="' || cast('no' as integer) || '")
    with pytest.raises(duckdb.Error):
        build_all(con, broken)
    assert rows(con) == before
