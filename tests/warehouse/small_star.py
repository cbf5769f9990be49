"""A star filled by hand: runs given as points, without a lake."""

from collections.abc import Iterable, Mapping

import duckdb
import polars as pl
import pyarrow as pa

from pipelines.ingest.base import point_table
from warehouse.catalog import Catalog, dimension_tables, resolve
from warehouse.contract import stable_id


def points_of(values: Mapping[str, Mapping[int, float | None]], step_axis: str = "step") -> pa.Table:
    """Return a point table from {name: {step: value}}; None is a null of the log."""
    rows = [
        {"metric_name": name, "step": step, "value": value, "step_axis": step_axis}
        for name, series in values.items()
        for step, value in series.items()
    ]
    schema = {"metric_name": pl.String, "step": pl.Int64, "value": pl.Float64, "step_axis": pl.String}
    frame = pl.DataFrame(rows, schema=schema).with_columns(source_file=pl.lit("log"), source_position=pl.lit(1))
    return point_table(frame)


def add_run(
    con: duckdb.DuckDBPyConnection,
    catalog: Catalog,
    points: pa.Table,
    name: str = "run",
    framework: str = "xtuner",
    log_precision: str = "float64",
) -> int:
    """Store one run with its points and renew the dimensions; return its identifier."""
    run_id = stable_id("migration", name)
    resolution = resolve(catalog, points.column("metric_name").unique().to_pylist(), framework)
    known = {m for (m,) in con.execute("select metric from dim_metric").fetchall()}
    metrics = set(resolution.column("metric").to_pylist())
    if not metrics <= known:
        put_dimensions(con, catalog, known | metrics)
    con.register("_points", points)
    con.register("_names", resolution)
    con.execute(
        """
        insert into fct_metric
        select ?, m.metric_id, p.step_axis, p.attempt, p.step, p.write_no, p.value * n.factor, p.value_kind,
            row_number() over (
                partition by p.metric_name, p.step_axis, p.step order by p.attempt desc, p.write_no desc) = 1,
            p.raw_text, p.metric_name, p.source_file, p.source_position
        from _points as p join _names as n using (metric_name) join dim_metric as m on m.metric = n.metric
        """,
        [run_id],
    )
    con.unregister("_points")
    con.unregister("_names")
    con.execute(
        """
        insert into dim_run select ?, ?, 'migration', 'baseline', null, 'stack', ?, null, null, null, null, null,
            null, null, null, 'finished', 'test', ?, 'log', '', ?, 1, 1, 1, 0, now()::timestamp
        """,
        [run_id, name, framework, log_precision, points.num_rows],
    )
    return run_id


def put_dimensions(con: duckdb.DuckDBPyConnection, catalog: Catalog, metrics: Iterable[str] = ()) -> None:
    """Fill the dimensions of the catalogue anew."""
    for table, rows in dimension_tables(catalog, sorted(metrics)).items():
        con.register("_rows", rows)
        con.execute(f"delete from {table}")
        con.execute(f"insert into {table} select * from _rows")
        con.unregister("_rows")
