"""Loading the points of the runs that changed: which are new, and which write is current.

What a name stands for is decided in `warehouse.catalog`; runs, steps and pairs are loaded in
warehouse/load_dimensions.py.
"""

from pathlib import Path

import duckdb
import pyarrow as pa

from warehouse import lake as lake_files
from warehouse.catalog import Catalog, ExtraMetric, dimension_tables, resolve
from warehouse.contract import stable_id
from warehouse.star_run import StarRun

# Columns that tell one write from another: a stored row that a newer log lacks means that the log was changed.
_WRITE = (
    "run_id, metric_id, step_axis, attempt, step, write_no, value, value_kind, raw_text, metric_name, "
    "source_file, source_position"
)


def load_points(
    con: duckdb.DuckDBPyConnection,
    lake: Path,
    catalog: Catalog,
    changed: list[StarRun],
    *,
    is_new_catalog: bool,
) -> tuple[dict[int, int], set[int]]:
    """Load the points of the changed runs.

    Returns:
        The number of points added by run, and the runs that were replaced.
    """
    _stage_points(con, lake, changed)
    _load_metrics(con, catalog, is_new_catalog=is_new_catalog)
    con.execute(
        """
        create or replace temp table new_point as
        select
            s.run_id, r.metric_id, s.step_axis, s.attempt, s.step, s.write_no,
            s.value * r.factor as value, s.value_kind, s.raw_text, s.metric_name, s.source_file, s.source_position
        from staged_point as s
        inner join resolution as r on s.run_id = r.run_id and s.metric_name = r.metric_name
        """
    )
    con.execute("create or replace temp table changed_run as select distinct run_id from staged_run")
    con.execute(
        f"""
        create or replace temp table replaced_run as
        select distinct run_id from (
            select {_WRITE} from fct_metric where run_id in (select run_id from changed_run)
            except all
            select {_WRITE} from new_point)
        """
    )
    con.execute("delete from fct_metric where run_id in (select run_id from replaced_run)")
    con.execute(
        f"""
        create or replace temp table added_point as
        select {_WRITE} from new_point
        except all
        select {_WRITE} from fct_metric where run_id in (select run_id from changed_run)
        """
    )
    con.execute(
        f"""
        insert into fct_metric ({_WRITE}, is_current)
        select *, true from added_point
        order by run_id, metric_id, step_axis, step
        """
    )
    _mark_current(con)
    added = dict(con.execute("select run_id, count(*) from added_point group by run_id").fetchall())
    replaced = {i for (i,) in con.execute("select run_id from replaced_run").fetchall()}
    return added, replaced


def _stage_points(con: duckdb.DuckDBPyConnection, lake: Path, changed: list[StarRun]) -> None:
    """Bring the parts of the changed runs into `staged_point`, and their issues into `fct_parse_issue`."""
    points, issues = [], []
    for run in changed:
        folder = lake_files.run_folder(lake, run.migration, run.record.name)
        content = lake_files.read_content(lake, run.migration, run.record.name, run.record.content_hash)
        for parts, rows in ((content.points, points), (content.issues, issues)):
            rows += [{"run_id": run.run_id, "framework": run.record.framework, "part": str(folder / p)} for p in parts]
    _register_parts(con, "staged_run", [{"run_id": r.run_id, "framework": "", "part": ""} for r in changed])
    _register_parts(con, "staged_part", points)
    con.execute(
        f"""
        create or replace temp table staged_point as
        select s.run_id, s.framework, p.* exclude (filename)
        from {_PARTS if points else _NO_POINT} as p
        inner join staged_part as s on p.filename = s.part
        """,
        [[row["part"] for row in points]] if points else [],
    )
    con.execute("delete from fct_parse_issue where run_id in (select run_id from staged_run)")
    if not issues:
        return
    _register_parts(con, "staged_part", issues)
    con.execute(
        f"""
        insert into fct_parse_issue
        select s.run_id, p.source_file, p.source_position, p.reason, p.snippet, p.lost_points
        from {_PARTS} as p
        inner join staged_part as s on p.filename = s.part
        """,
        [[row["part"] for row in issues]],
    )


_PARTS = "read_parquet(?, filename = true)"
_NO_POINT = """(
    select '' as metric_name, '' as step_axis, 0::integer as attempt, 0::bigint as step, 0::integer as write_no,
        0::double as value, '' as value_kind, '' as raw_text, 0::double as wall_time, '' as source_file,
        0::bigint as source_position, '' as filename
    where false)"""
_STAGED = pa.schema([("run_id", pa.int64()), ("framework", pa.string()), ("part", pa.string())])


def _register_parts(con: duckdb.DuckDBPyConnection, table: str, rows: list[dict]) -> None:
    con.register("staged_rows", pa.Table.from_pylist(rows, schema=_STAGED))
    con.execute(f"create or replace temp table {table} as select * from staged_rows")
    con.unregister("staged_rows")


def _load_metrics(con: duckdb.DuckDBPyConnection, catalog: Catalog, *, is_new_catalog: bool) -> None:
    """Decide what each name of the staged points means, and renew the dimensions of the catalogue."""
    resolution = _resolve_names(con, catalog)
    con.register("resolution_rows", resolution)
    con.execute("create or replace temp table resolution as select * from resolution_rows")
    con.unregister("resolution_rows")
    # What is inferred from data may look different with further data.
    described = {m for (m,) in con.execute("select metric from dim_metric where is_catalogued").fetchall()}
    if not is_new_catalog and set(resolution.column("metric").to_pylist()) <= described:
        return
    for name, table in dimension_tables(catalog, _extra_metrics(con, catalog)).items():
        _replace_rows(con, name, table)


_RESOLUTION = pa.schema(
    [
        ("run_id", pa.int64()),
        ("metric_name", pa.string()),
        ("metric", pa.string()),
        ("metric_id", pa.int64()),
        ("factor", pa.float64()),
    ]
)


def _resolve_names(con: duckdb.DuckDBPyConnection, catalog: Catalog) -> pa.Table:
    """Return for each staged run and name the metric that it stands for.

    A name may stand for different metrics in two runs: what else the run logs decides. Runs that log the
    same names are resolved together.
    """
    groups = con.execute(
        """
        select names, framework, list(run_id) from (
            select run_id, framework, list(distinct metric_name order by metric_name) as names
            from staged_point
            group by run_id, framework)
        group by names, framework
        """
    ).fetchall()
    columns: dict[str, list] = {field.name: [] for field in _RESOLUTION}
    for names, framework, run_ids in groups:
        table = resolve(catalog, names, framework)
        metrics = table.column("metric").to_pylist()
        for run_id in run_ids:
            columns["run_id"] += [run_id] * len(metrics)
            columns["metric_name"] += table.column("metric_name").to_pylist()
            columns["metric"] += metrics
            columns["metric_id"] += [stable_id(m) for m in metrics]
            columns["factor"] += table.column("factor").to_pylist()
    return pa.table(columns, schema=_RESOLUTION)


def _extra_metrics(con: duckdb.DuckDBPyConnection, catalog: Catalog) -> list[ExtraMetric]:
    """Return the metrics under which points are stored, with what their data show.

    Those that the catalogue names itself are left out where they are stored; members of its families are not.
    Stored and staged points count; whether a metric only rises is judged within a run and attempt.
    """
    rows = con.execute(
        """
        with points as (
            select r.metric, s.run_id, s.step_axis, s.attempt, s.step, s.write_no, s.value, s.value_kind
            from staged_point as s
            inner join resolution as r on s.run_id = r.run_id and s.metric_name = r.metric_name
            union all
            select m.metric, f.run_id, f.step_axis, f.attempt, f.step, f.write_no, f.value, f.value_kind
            from fct_metric as f
            inner join dim_metric as m on f.metric_id = m.metric_id
            where not list_contains(?::varchar[], m.metric) and f.run_id not in (select run_id from staged_run)
        ),
        moves as (
            select metric, value, value - lag(value) over (
                partition by metric, run_id, step_axis, attempt order by step, write_no) as move
            from points
            where value_kind = 'finite'
        ),
        shown as (
            select metric, min(value) as low, max(value) as high, bool_and(value = round(value)) as is_integer,
                coalesce(bool_and(move >= 0), false) as is_monotone
            from moves
            group by metric
        )
        select distinct p.metric, s.low, s.high, coalesce(s.is_integer, false), coalesce(s.is_monotone, false)
        from points as p
        left join shown as s on p.metric = s.metric
        order by p.metric
        """,
        [[m.metric for m in catalog.metrics if not m.is_family]],
    ).fetchall()
    return [ExtraMetric(*row) for row in rows]


def _replace_rows(con: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    """Make `rows` the content of a dimension; rows that stay are updated, since keys can't be put in twice."""
    found = con.execute(
        "select constraint_column_names from duckdb_constraints() "
        "where table_name = ? and constraint_type = 'PRIMARY KEY'",
        [table],
    ).fetchall()
    same = " and ".join(f't."{c}" = d."{c}"' for (key,) in found for c in key)
    columns = ", ".join(f'"{c}"' for c in rows.column_names)
    con.register("dimension_rows", rows)
    con.execute(f"delete from {table} as t where not exists (select 1 from dimension_rows as d where {same})")
    con.execute(f"insert or replace into {table} ({columns}) select {columns} from dimension_rows")
    con.unregister("dimension_rows")


def _mark_current(con: duckdb.DuckDBPyConnection) -> None:
    """Mark the last write of the last attempt.

    A write is no longer current once a later attempt has logged the metric at the same step or an
    earlier one: steps behind the point of the restart belong to a trajectory that was given up.
    """
    con.execute(
        """
        create or replace temp table superseded as
        with first_steps as (
            select run_id, metric_id, step_axis, attempt, min(step) as first_step
            from fct_metric
            where run_id in (select run_id from changed_run)
            group by all
        ),
        later as (
            select *, min(first_step) over (
                partition by run_id, metric_id, step_axis order by attempt
                rows between 1 following and unbounded following) as restart_step
            from first_steps
        )
        select run_id, metric_id, step_axis, attempt, restart_step from later where restart_step is not null
        """
    )
    con.execute(
        """
        create or replace temp table stale_write as
        select f.rowid as row_number
        from fct_metric as f
        inner join superseded as s
            on f.run_id = s.run_id and f.metric_id = s.metric_id and f.step_axis = s.step_axis
            and f.attempt = s.attempt and f.step >= s.restart_step
        where f.is_current
        union
        select rowid from (
            select rowid, write_no, is_current, max(write_no) over (
                partition by run_id, metric_id, step_axis, attempt, step) as last_write
            from fct_metric
            where run_id in (select run_id from changed_run)
                and (run_id, metric_id, step_axis, attempt, step) in (
                    select (run_id, metric_id, step_axis, attempt, step) from fct_metric
                    where write_no > 1 and run_id in (select run_id from changed_run)))
        where write_no < last_write and is_current
        """
    )
    con.execute("update fct_metric set is_current = false where rowid in (select row_number from stale_write)")
