"""What one change of the star does to the models: the same as building them from nothing."""

from collections.abc import Iterable

import duckdb
import numpy as np
import polars as pl
import pytest

from tests.statistics.star import Migration, Run, open_star, project
from warehouse.load_dimensions import put_pairs
from warehouse.runner import build_all
from warehouse.schema import apply_schema

MODELS = project()
METRICS = ("training/loss", "response/rewards/mean")
# What another value of a column is, where any text won't do.
OTHER = {
    "role": "'baseline'",
    "stack": "'npu'",
    "status": "'crashed'",
    "log_precision": "'decimal3'",
    "pair_kind": "'replicate'",
    "baseline_stack": "candidate_stack",
    "candidate_stack": "baseline_stack",
    "candidate_run_id": "(select run_id from dim_run where run_name = 'gpu_2' and migration = p.migration)",
    "baseline_run_id": "(select run_id from dim_run where run_name = 'gpu_1' and migration = p.migration)",
}
KEYS = ("run_id", "migration", "pair_id", "input_version")


def runs(seed: int) -> tuple[Run, ...]:
    rng = np.random.default_rng(seed)
    batches = 2.0 + 0.3 * rng.standard_normal((len(METRICS), 24))

    def run(name, role, baseline=""):
        noise = 0.001 * rng.standard_normal(batches.shape)
        values = {metric: dict(enumerate((batches + noise)[i].tolist(), start=1)) for i, metric in enumerate(METRICS)}
        stack = name.split("_")[0]
        return Run(name, role, stack, values, baseline, components=(("hardware", stack, "1"),))

    return (
        run("gpu_0", "baseline"),
        *(run(f"gpu_{i}", "replicate") for i in (1, 2, 3)),
        run("npu_0", "candidate", "gpu_0"),
        run("npu_1", "replicate"),
    )


def built_star(migrations: Iterable[str]) -> duckdb.DuckDBPyConnection:
    con = open_star([Migration(name, runs(i)) for i, name in enumerate(migrations)])
    con.execute("set threads = 1")
    build_all(con, MODELS)
    return con


def columns_of(con: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    rows = con.execute("select column_name, data_type from duckdb_columns() where table_name = ?", [table]).fetchall()
    return {name: kind for name, kind in rows if name not in KEYS}


def change(con: duckdb.DuckDBPyConnection, table: str, column: str, kind: str, where: str) -> None:
    """Give one column another value in the rows of a migration, and nothing else."""
    plain = {"VARCHAR": f"coalesce({column}, '') || '_other'", "TIMESTAMP": f"{column} + interval 1 day"}
    value = OTHER.get(column, plain.get(kind, f"coalesce({column}, 0) + 1"))
    con.execute(f"update {table} as p set {column} = {value} where migration = '{column}' and {where}")


def renew_pairs(con: duckdb.DuckDBPyConnection) -> None:
    put_pairs(con, con.sql("select * exclude (input_version) from dim_migration").to_arrow_table())


def contents(con: duckdb.DuckDBPyConnection) -> dict[str, list[tuple]]:
    """Return the rows of every model, figures to six digits: the order of a sum is no matter."""
    tables = {}
    for model in MODELS.models:
        rows = con.sql(f"select {', '.join(model.columns)} from {model.name}").fetchall()
        tables[model.name] = sorted(tuple(f"{v:.6g}" if isinstance(v, float) else str(v) for v in row) for row in rows)
    return tables


def built_at_once(con: duckdb.DuckDBPyConnection) -> dict[str, list[tuple]]:
    con.execute("delete from etl_model_state")
    build_all(con, MODELS)
    return contents(con)


@pytest.mark.parametrize(
    ("table", "where"),
    [
        ("dim_run", "run_name = 'npu_0'"),
        ("dim_run", "run_name = 'gpu_2'"),
        ("dim_migration", "candidate_run_name = 'npu_0'"),
    ],
)
def test_a_change_of_any_column_gives_the_tables_of_a_build_at_once(table, where):
    with duckdb.connect() as empty:
        apply_schema(empty)
        columns = columns_of(empty, table)
    con = built_star(columns)
    before = contents(con)
    for column, kind in columns.items():
        change(con, table, column, kind, where)
    renew_pairs(con)
    build_all(con, MODELS)
    after = contents(con)
    expected = built_at_once(con)
    assert before != after
    for model, rows in expected.items():
        assert after[model] == rows, model


def test_another_version_of_a_component_is_told_to_the_models_over_all_migrations():
    con = built_star("ab")
    con.execute("update dim_component set component_version = '2' where component_name = 'npu'")
    build_all(con, MODELS)
    after = contents(con)
    assert "npu 2" in str(after["int_survival_arm"])
    assert after == built_at_once(con)


def test_equal_stacks_of_two_migrations_have_a_noise_floor_each():
    con = built_star("ab")
    rows = con.execute("select migration, stack, count(*), max(replicate_pairs) from mart_noise_floor group by all")
    assert sorted(rows.fetchall()) == [("a", "gpu", 2, 6), ("b", "gpu", 2, 6)]


def test_another_baseline_gives_the_tables_of_a_build_at_once():
    con = built_star("ab")
    pairs = con.sql("select * exclude (input_version) from dim_migration").pl()
    baseline = con.sql("select run_id from dim_run where run_name = 'gpu_1' and migration = 'a'").fetchall()[0][0]
    is_moved = (pl.col("migration") == "a") & (pl.col("pair_kind") == "migration")
    moved = pairs.with_columns(
        pair_id=pl.when(is_moved).then(pl.lit(7, pl.Int64)).otherwise("pair_id"),
        baseline_run_id=pl.when(is_moved).then(pl.lit(baseline, pl.Int64)).otherwise("baseline_run_id"),
        baseline_run_name=pl.when(is_moved).then(pl.lit("gpu_1")).otherwise("baseline_run_name"),
    )
    put_pairs(con, moved.to_arrow())
    build_all(con, MODELS)
    after = contents(con)
    floors = con.execute("select grade, baseline_replicates from mart_pair_verdict where pair_id = 7").fetchall()
    assert floors == [("A", 3)]
    assert after == built_at_once(con)
