"""Loading what the points hang on: runs, components, steps and pairs."""

import duckdb
import pyarrow as pa

from warehouse import lake as lake_files
from warehouse.contract import LOG_PRECISIONS, stable_id
from warehouse.lake import MigrationRecord
from warehouse.runner import RUN_HASHES
from warehouse.star_run import StarRun, pairs_of


def load_runs(con: duckdb.DuckDBPyConnection, runs: list[StarRun], changed: set[int]) -> None:
    """Bring dim_run to the state of the lake; what was counted of a run that did not change stays."""
    old = {row["run_id"]: row for row in con.sql("select * from dim_run").to_arrow_table().to_pylist()}
    facts = {
        row["run_id"]: row
        for row in con.sql(
            """
            select run_id, count(*) as point_count, max(attempt) as attempt_count,
                min(step) as first_step, max(step) as last_step
            from fct_metric
            where run_id in (select run_id from changed_run)
            group by run_id
            """
        )
        .to_arrow_table()
        .to_pylist()
    }
    # A remark about a log as a whole, by which no point was lost, is no piece of it.
    issues = dict(
        con.execute(
            "select run_id, count(*) from fct_parse_issue where source_position <> 0 or lost_points <> 0 "
            "or lost_points is null group by run_id"
        ).fetchall()
    )
    now = con.execute("select now()::timestamp").fetchall()[0][0]
    rows = []
    for run in runs:
        counted = facts.get(run.run_id) if run.run_id in changed else old[run.run_id]
        rows.append(_run_row(run, counted or {}, issues.get(run.run_id, 0)))
        is_new = run.run_id in changed or run.run_id not in old
        rows[-1]["loaded_at"] = now if is_new else old[run.run_id]["loaded_at"]
    schema = con.sql("select * from dim_run limit 0").to_arrow_table().schema
    table = pa.Table.from_pylist(rows, schema=schema)
    con.register("run_rows", table)
    con.execute("insert or replace into dim_run select * from run_rows")
    con.unregister("run_rows")


def _run_row(run: StarRun, counted: dict, issue_count: int) -> dict:
    record = run.record
    recipe = record.recipe
    precision = next((c.name for c in lake_files.all_components(record) if c.kind == "precision"), None)
    parts = [recipe.get(k, "") for k in ("model", "dataset", "algorithm")]
    return {
        "run_id": run.run_id,
        "run_name": record.name,
        "migration": run.migration,
        "role": record.role,
        "replicate_of": record.replicate_of or None,
        "stack": run.stack,
        "framework": record.framework or None,
        "recipe": " / ".join(p for p in parts if p) or None,
        "model": recipe.get("model"),
        "dataset": recipe.get("dataset"),
        "algorithm": recipe.get("algorithm"),
        "seed": recipe.get("seed"),
        "data_order_key": recipe.get("data_order"),
        "precision": precision,
        "config_hash": record.config_hash or None,
        "status": record.status,
        "log_format": record.log_format,
        "log_precision": record.log_precision,
        "source": record.source,
        "content_hash": record.content_hash,
        "point_count": counted.get("point_count", 0),
        "attempt_count": counted.get("attempt_count", 1),
        "first_step": counted.get("first_step"),
        "last_step": counted.get("last_step"),
        "issue_count": issue_count,
    }


def load_precisions(con: duckdb.DuckDBPyConnection, changed: list[StarRun]) -> None:
    """Put in anew how precisely the changed runs keep metrics, where that is not what dim_run says."""
    rows = [
        {"run_id": run.run_id, "metric_name": name, "log_precision": precision}
        for run in changed
        for name, precision in run.record.precisions.items()
    ]
    schema = pa.schema([("run_id", pa.int64()), ("metric_name", pa.string()), ("log_precision", pa.string())])
    con.execute("delete from bridge_run_metric where run_id in (select run_id from changed_run)")
    con.register("precision_rows", pa.Table.from_pylist(rows, schema=schema))
    # Two names of one metric in one run: the coarser log counts.
    con.execute(
        """
        insert into bridge_run_metric
        select p.run_id, r.metric_id, arg_max(p.log_precision, list_position(?, p.log_precision))
        from precision_rows as p
        inner join resolution as r on p.run_id = r.run_id and p.metric_name = r.metric_name
        group by p.run_id, r.metric_id
        """,
        [list(LOG_PRECISIONS)],
    )
    con.unregister("precision_rows")


def load_components(con: duckdb.DuckDBPyConnection, runs: list[StarRun]) -> None:
    """Bring the components and the runs that ran on them to the state of the lake."""
    rows = [
        {
            "run_id": run.run_id,
            "component_id": stable_id(c.kind, c.name, c.version),
            "component_kind": c.kind,
            "component_name": c.name,
            "component_version": c.version or None,
        }
        for run in runs
        for c in lake_files.all_components(run.record)
    ]
    schema = pa.schema(
        [
            ("run_id", pa.int64()),
            ("component_id", pa.int64()),
            ("component_kind", pa.string()),
            ("component_name", pa.string()),
            ("component_version", pa.string()),
        ]
    )
    con.register("component_rows", pa.Table.from_pylist(rows, schema=schema))
    con.execute("delete from dim_component where component_id not in (select component_id from component_rows)")
    con.execute(
        """
        insert or replace into dim_component
        select distinct component_id, component_kind, component_name, component_version from component_rows
        """
    )
    con.execute(
        """
        delete from bridge_run_component as b
        where not exists (
            select 1 from component_rows as c where c.run_id = b.run_id and c.component_id = b.component_id)
        """
    )
    con.execute("insert or replace into bridge_run_component select run_id, component_id from component_rows")
    con.unregister("component_rows")


def load_steps(con: duckdb.DuckDBPyConnection, run_ids: list[int]) -> None:
    """Put in anew the steps of the runs that changed."""
    if not run_ids:
        return
    con.execute("delete from dim_step where list_contains(?::bigint[], run_id)", [run_ids])
    con.execute(
        """
        insert into dim_step
        with step_writes as (
            select f.run_id, f.step_axis, f.attempt, f.step,
                bool_or(f.is_current) as is_current,
                bool_or(m.category = 'evaluation') as is_evaluated
            from fct_metric as f
            inner join dim_metric as m on f.metric_id = m.metric_id
            where list_contains(?::bigint[], f.run_id)
            group by all
        ),
        times as (
            -- Readers give no other times; a lake may hold what an earlier version of them let through.
            select run_id, step_axis, attempt, step,
                min(wall_time) filter (where wall_time >= 0 and wall_time < 1e11) as wall_time
            from staged_point
            group by all
        )
        select
            w.run_id, w.step_axis, w.attempt, w.step,
            to_timestamp(t.wall_time)::timestamp,
            t.wall_time - first_value(t.wall_time) over (
                partition by w.run_id, w.step_axis, w.attempt order by w.step),
            w.is_current, w.is_evaluated
        from step_writes as w
        left join times as t
            on w.run_id = t.run_id and w.step_axis = t.step_axis and w.attempt = t.attempt and w.step = t.step
        """,
        [run_ids],
    )


def load_pairs(con: duckdb.DuckDBPyConnection, records: list[MigrationRecord]) -> None:
    """Bring the pairs to the state of the lake, each with a hash of all that it is judged from."""
    rows = [row for record in records for row in pairs_of(record)]
    schema = con.sql("select * exclude (input_version) from dim_migration limit 0").to_arrow_table().schema
    put_pairs(con, pa.Table.from_pylist(rows, schema=schema))


def put_pairs(con: duckdb.DuckDBPyConnection, pairs: pa.Table) -> None:
    """Make dim_migration hold the given pairs, each with the hash of what it is judged from.

    A pair is judged from its two runs, from the replicates of its migration and from the catalogue.

    Args:
        con: A connection to the working file, with dim_run up to date.
        pairs: The columns of dim_migration without input_version.
    """
    con.register("pair_rows", pairs)
    con.execute(
        f"""
        create or replace temp table pair_version as
        with hashes as ({RUN_HASHES}),
        floors as (
            select migration, string_agg(run_hash, '/' order by run_hash) as run_hash
            from hashes
            where role in ('baseline', 'replicate')
            group by migration
        )
        select p.*, md5(concat_ws('#', p::varchar, b.run_hash, c.run_hash, f.run_hash,
            (select value from etl_state where name = 'catalog_hash'))) as input_version
        from pair_rows as p
        inner join hashes as b on p.baseline_run_id = b.run_id
        inner join hashes as c on p.candidate_run_id = c.run_id
        left join floors as f on p.migration = f.migration
        """
    )
    con.unregister("pair_rows")
    con.execute("delete from dim_migration where pair_id not in (select pair_id from pair_version)")
    con.execute("insert or replace into dim_migration select * from pair_version")
