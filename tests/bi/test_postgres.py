"""The export to Postgres: typed, described, keyed, whole at every moment."""

import pytest

from tests.bi.conftest import Postgres
from tests.export.content import assert_equal, published_rows
from tests.export.test_folder import export_and_be_killed
from tests.integration.conftest import firstdrift
from warehouse.export import ExportError, export_postgres

pytestmark = pytest.mark.bi


def stored_rows(url: str, tables) -> dict[str, list[dict]]:
    import psycopg
    from psycopg.rows import dict_row

    with psycopg.connect(url) as db, db.cursor(row_factory=dict_row) as cursor:
        return {table: cursor.execute(f"select * from {table}".encode()).fetchall() for table in tables}


def ask(url: str, sql: str) -> list[tuple]:
    import psycopg

    with psycopg.connect(url) as db:
        cursor = db.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


def test_every_value_of_the_examples_arrives(lab, demo_home):
    expected = published_rows(demo_home / "published" / "firstdrift.duckdb")
    assert_equal(stored_rows(lab, expected), expected)


def test_values_that_are_not_finite_arrive(database, published):
    export_postgres(published, database)
    expected = published_rows(published)
    assert_equal(stored_rows(database, expected), expected)
    kinds = ask(database, "select value_kind, value::text, count(*) from fct_metric where value_kind <> 'finite' "
                "group by 1, 2 order by 1")  # fmt: skip
    assert {kind: value for kind, value, _ in kinds} == {
        "nan": "NaN",
        "neg_inf": "-Infinity",
        "nonfinite_unknown": None,
        "pos_inf": "Infinity",
    }


def test_tables_have_types_comments_and_keys(lab, demo_home):
    tables = set(published_rows(demo_home / "published" / "firstdrift.duckdb"))
    undescribed = ask(
        lab,
        """
        select c.relname, a.attname from pg_class as c
        join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0
        where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
            and (col_description(c.oid, a.attnum) is null or obj_description(c.oid) is null)
        """,
    )
    assert undescribed == []
    keyed = {name for (name,) in ask(lab, "select conrelid::regclass::text from pg_constraint where contype = 'p'")}
    assert tables - keyed == {"fct_parse_issue", "publication"}
    references = set(ask(lab, "select conrelid::regclass::text, confrelid::regclass::text from pg_constraint "
                         "where contype = 'f' and convalidated"))  # fmt: skip
    assert {
        ("fct_metric", "dim_run"),
        ("fct_metric", "dim_metric"),
        ("mart_pair_verdict", "dim_migration"),
    } < references
    types = dict(ask(lab, "select distinct data_type, 1 from information_schema.columns where table_schema = 'public'"))
    assert types.keys() == {
        "bigint", "boolean", "double precision", "integer", "jsonb", "numeric", "text",
        "timestamp without time zone",
    }  # fmt: skip


def test_psql_finds_the_known_answer(postgres: Postgres, lab):
    found = postgres.psql(
        lab.rpartition("/")[2],
        """
        select verdict, first_stage, onset_step_low, onset_step_high from mart_pair_verdict
        join dim_migration using (pair_id) join mart_first_drift using (pair_id)
        where candidate_run_name = 'npu_attn_mask_at60' and rank = 1
        """,
    )
    verdict, stage, low, high = found.split("|")
    assert (verdict, stage) == ("drift", "rollout_or_weight_sync")
    assert 56 <= int(low) <= 60 <= int(high) <= 64


def test_only_changed_migrations_are_written(database, published, publish_stage):
    def writers(condition: str) -> set:
        """Return the transactions that wrote the points of some migrations."""
        sql = f"select f.xmin::text from fct_metric as f join dim_run using (run_id) where {condition}"
        return set(ask(database, sql))

    assert export_postgres(published, database).is_new
    assert not export_postgres(published, database).is_new
    before = {condition: writers(condition) for condition in ("migration = 'a'", "migration <> 'a'")}
    second = export_postgres(publish_stage("changed"), database)
    assert second.written["fct_metric"] == 1
    assert "dim_rule" not in second.written
    assert writers("migration <> 'a'") == before["migration <> 'a'"]
    assert not writers("migration = 'a'") & before["migration = 'a'"]
    expected = published_rows(published)
    assert_equal(stored_rows(database, expected), expected)
    export_postgres(publish_stage("one"), database)
    expected = published_rows(published)
    assert_equal(stored_rows(database, expected), expected)


def test_a_killed_export_changes_nothing(database, published, publish_stage):
    export_postgres(published, database)
    expected = published_rows(published)
    publish_stage("changed")
    export_and_be_killed(published, database, "postgres")
    assert_equal(stored_rows(database, expected), expected)
    export_postgres(published, database)
    expected = published_rows(published)
    assert_equal(stored_rows(database, expected), expected)


def test_a_reader_sees_the_version_before_until_the_export_is_complete(database, published, publish_stage):
    export_postgres(published, database)
    versions = []

    def look(_table: str) -> None:
        versions.append(ask(database, "select version from publication")[0][0])

    before = ask(database, "select version from publication")[0][0]
    result = export_postgres(publish_stage("changed"), database, look)
    assert set(versions) == {before}
    assert ask(database, "select version from publication") == [(result.version,)]


def test_another_shape_is_made_anew_unless_something_hangs_on_it(database, published):
    export_postgres(published, database)
    ask(database, "create view mine as select verdict from mart_pair_verdict")
    ask(database, "update firstdrift_export set shape = 'old' where table_name = 'mart_pair_verdict'")
    with pytest.raises(ExportError, match=r"view mine depends on table mart_pair_verdict.*nothing was changed"):
        export_postgres(published, database)
    ask(database, "drop view mine")
    assert export_postgres(published, database).written == {"mart_pair_verdict": 2}
    expected = published_rows(published)
    assert_equal(stored_rows(database, expected), expected)
    assert ask(database, "select count(*) from pg_constraint where conrelid = 'mart_pair_verdict'::regclass "
               "and contype = 'f'") == [(1,)]  # fmt: skip


def test_tables_of_others_are_left_alone(database, published):
    ask(database, "create table dim_run (mine text)")
    with pytest.raises(ExportError, match="The schema holds dim_run already, and firstdrift did not make them"):
        export_postgres(published, database)
    ask(database, "create schema firstdrift")
    own = f"{database}?options=-csearch_path%3Dfirstdrift"
    assert export_postgres(published, own).is_new
    expected = published_rows(published)
    assert_equal(stored_rows(own, expected), expected)


def test_what_is_wrong_with_an_address_is_one_sentence(postgres: Postgres, published):
    home = published.parent.parent
    for url, sentence in (
        (postgres.url("postgres", "wrong-secret"), "the password was refused"),
        (postgres.url("nowhere"), 'there is no such database or user (database "nowhere" does not exist)'),
        (postgres.url("postgres") + "?options=-csearch_path%3Dnone", "search_path names does not exist"),
    ):
        done = firstdrift(home, "export", "--to", url, check=False)
        said = " ".join(done.stderr.split())
        assert done.returncode == 1
        assert sentence in said
        assert "Traceback" not in said
        assert postgres.password not in said
        assert "wrong-secret" not in said
