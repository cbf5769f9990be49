"""From the lake to the star, in one transaction and idempotent by content hash.

Here belong the statements that fill dimensions and facts. What a name means is decided in
`warehouse.catalog`, what the tables look like in sql/schema.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import duckdb
import pyarrow as pa

from warehouse import lake as lake_files
from warehouse.catalog import Catalog, ExtraMetric, catalog_hash, dimension_tables, resolve
from warehouse.connection import scalar
from warehouse.contract import stable_id
from warehouse.lake import MigrationRecord, RunRecord

# Columns that tell one write from another: a stored row that a newer log lacks means that the log was changed.
_WRITE = (
    "run_id, metric_id, step_axis, attempt, step, write_no, value, value_kind, raw_text, metric_name, "
    "source_file, source_position"
)


@dataclass(frozen=True)
class LoadResult:
    """What a load did.

    Attributes:
        new_runs: Runs that the star did not have.
        grown_runs: Runs that got further points.
        replaced_runs: Runs whose log had changed: their points were put in anew.
        removed_runs: Runs that the lake no longer holds.
        unchanged_runs: Runs with nothing new.
        added_points: Rows added to fct_metric.
    """

    new_runs: tuple[str, ...]
    grown_runs: tuple[str, ...]
    replaced_runs: tuple[str, ...]
    removed_runs: tuple[str, ...]
    unchanged_runs: tuple[str, ...]
    added_points: int


@dataclass(frozen=True)
class _Run:
    run_id: int
    migration: str
    record: RunRecord
    stack: str


def load_lake(con: duckdb.DuckDBPyConnection, lake: Path, catalog: Catalog) -> LoadResult:
    """Bring the star to the state of the lake.

    A run whose content hash is known is left alone, a grown log adds its new points, a changed log
    replaces the run, a run that left the lake is removed. Nothing is changed if anything fails.

    Args:
        con: A connection to the working file, with the schema applied.
        lake: The lake's folder.
        catalog: The metric catalogue; where it changed, every run is loaded anew.
    """
    records = list(lake_files.read_migrations(lake))
    runs = [run for record in records for run in _runs_of(record)]
    names = {run.run_id: f"{run.migration}/{run.record.name}" for run in runs}
    con.begin()
    try:
        result = _load(con, lake, catalog, runs, names)
        _load_pairs(con, records)
    except BaseException:
        con.rollback()
        raise
    con.commit()
    return result


def _load(
    con: duckdb.DuckDBPyConnection, lake: Path, catalog: Catalog, runs: list[_Run], names: dict[int, str]
) -> LoadResult:
    stored = dict(con.execute("select run_id, content_hash from dim_run").fetchall())
    stored_names = dict(con.execute("select run_id, migration || '/' || run_name from dim_run").fetchall())
    version = catalog_hash(catalog)
    is_new_catalog = scalar(con, "select value from etl_state where name = 'catalog_hash'") != version
    removed = stored.keys() - names.keys()
    changed = [r for r in runs if stored.get(r.run_id) != r.record.content_hash or is_new_catalog]
    _delete_runs(con, removed)
    con.execute("insert or replace into etl_state values ('catalog_hash', ?)", [version])
    added, replaced = _load_points(con, lake, catalog, changed, is_new_catalog=is_new_catalog)
    _load_runs(con, runs, {r.run_id for r in changed})
    _load_components(con, runs)
    _load_steps(con, [r.run_id for r in changed])
    known = {r.run_id for r in changed} & stored.keys()
    grown = {i for i in known - replaced if added.get(i)}
    return LoadResult(
        new_runs=_named(names, [r.run_id for r in changed if r.run_id not in stored]),
        grown_runs=_named(names, grown),
        replaced_runs=_named(names, replaced & stored.keys()),
        removed_runs=_named(stored_names, removed),
        unchanged_runs=_named(names, names.keys() - {r.run_id for r in changed} | (known - grown - replaced)),
        added_points=sum(added.values()),
    )


def _named(names: dict[int, str], ids: Iterable[int]) -> tuple[str, ...]:
    return tuple(sorted(names[i] for i in set(ids)))


def _runs_of(record: MigrationRecord) -> list[_Run]:
    stacks = _stacks(record)
    return [_Run(stable_id(record.name, run.name), record.name, run, stacks[run.name]) for run in record.runs]


def _stacks(record: MigrationRecord) -> dict[str, str]:
    """Return the replicate group of each run.

    Runs of a migration with the same components ran on one stack: those of the manifest or, where it states
    none, those that the log tells. A replicate that states none ran on the stack of the run that it repeats.
    A run of which nothing is known, and that repeats none, stands alone.
    """
    by_name = {run.name: run for run in record.runs}

    def stack_of(run: RunRecord, seen: frozenset[str]) -> str:
        target = by_name.get(run.replicate_of)
        components = run.components or (() if target else run.found)
        if components:
            text = "|".join(f"{c.kind}={c.name}@{c.version}" for c in components)
            return hashlib.sha256(text.encode()).hexdigest()[:12]
        if target is None or target.name in seen:
            return f"run:{run.name}"
        return stack_of(target, seen | {run.name})

    return {run.name: stack_of(run, frozenset()) for run in record.runs}


def _delete_runs(con: duckdb.DuckDBPyConnection, run_ids: Iterable[int]) -> None:
    ids = list(run_ids)
    if not ids:
        return
    for table in ("fct_metric", "fct_parse_issue", "fct_rule_break", "dim_step", "bridge_run_component", "dim_run"):
        con.execute(f"delete from {table} where list_contains(?::bigint[], run_id)", [ids])


def _load_points(
    con: duckdb.DuckDBPyConnection,
    lake: Path,
    catalog: Catalog,
    changed: list[_Run],
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


def _stage_points(con: duckdb.DuckDBPyConnection, lake: Path, changed: list[_Run]) -> None:
    rows = [
        {
            "run_id": r.run_id,
            "framework": r.record.framework,
            "points": str(lake_files.points_path(lake, r.migration, r.record.name, r.record.content_hash)),
            "issues": str(lake_files.issues_path(lake, r.migration, r.record.name, r.record.content_hash)),
        }
        for r in changed
    ]
    schema = pa.schema([(c, pa.int64() if c == "run_id" else pa.string()) for c in _STAGED])
    con.register("staged_rows", pa.Table.from_pylist(rows, schema=schema))
    con.execute("create or replace temp table staged_run as select * from staged_rows")
    con.unregister("staged_rows")
    if not rows:
        con.execute(
            """
            create or replace temp table staged_point as
            select 0::bigint as run_id, '' as framework, '' as metric_name, '' as step_axis, 0::integer as attempt,
                0::bigint as step, 0::integer as write_no, 0::double as value, '' as value_kind, '' as raw_text,
                0::double as wall_time, '' as source_file, 0::bigint as source_position
            where false
            """
        )
        return
    con.execute(
        """
        create or replace temp table staged_point as
        select s.run_id, s.framework, p.* exclude (filename)
        from read_parquet(?, filename = true) as p
        inner join staged_run as s on p.filename = s.points
        """,
        [[row["points"] for row in rows]],
    )
    con.execute("delete from fct_parse_issue where run_id in (select run_id from staged_run)")
    con.execute(
        """
        insert into fct_parse_issue
        select s.run_id, p.source_file, p.source_position, p.reason, p.snippet, p.lost_points
        from read_parquet(?, filename = true) as p
        inner join staged_run as s on p.filename = s.issues
        """,
        [[row["issues"] for row in rows]],
    )


_STAGED = ("run_id", "framework", "points", "issues")


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
    for name, table in dimension_tables(catalog, _extra_metrics(con)).items():
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


def _extra_metrics(con: duckdb.DuckDBPyConnection) -> list[ExtraMetric]:
    """Return the metrics under which points are stored, with what their data show.

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
            where not m.is_catalogued and f.run_id not in (select run_id from staged_run)
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
        """
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


def _load_runs(con: duckdb.DuckDBPyConnection, runs: list[_Run], changed: set[int]) -> None:
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
    issues = dict(con.execute("select run_id, count(*) from fct_parse_issue group by run_id").fetchall())
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


def _run_row(run: _Run, counted: dict, issue_count: int) -> dict:
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


def _load_components(con: duckdb.DuckDBPyConnection, runs: list[_Run]) -> None:
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


def _load_steps(con: duckdb.DuckDBPyConnection, run_ids: list[int]) -> None:
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
            select run_id, step_axis, attempt, step, min(wall_time) as wall_time
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


def _load_pairs(con: duckdb.DuckDBPyConnection, records: list[MigrationRecord]) -> None:
    rows = [row for record in records for row in _pairs_of(record)]
    schema = con.sql("select * exclude (input_version) from dim_migration limit 0").to_arrow_table().schema
    con.register("pair_rows", pa.Table.from_pylist(rows, schema=schema))
    # A pair is judged from its two runs, from the replicates of its migration and from the catalogue.
    con.execute(
        """
        create or replace temp table pair_version as
        with hashes as (
            select run_id, migration, role,
                concat_ws('|', run_name, content_hash, role, stack, recipe, seed, log_precision) as facts
            from dim_run
        ),
        floors as (
            select migration, string_agg(facts, '/' order by facts) as facts
            from hashes
            where role in ('baseline', 'replicate')
            group by migration
        )
        select p.*, md5(concat_ws('#', b.facts, c.facts, f.facts, p.pair_kind,
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


def _pairs_of(record: MigrationRecord) -> list[dict]:
    """Return the pairs of a migration: each candidate with its baseline, and all replicates of a stack."""
    runs = {run.name: run for run in record.runs}
    stacks = _stacks(record)
    pairs = [
        (runs[run.baseline], run, "migration")
        for run in record.runs
        if run.role == "candidate" and run.baseline in runs
    ]
    members = [run for run in record.runs if run.role in ("baseline", "replicate")]
    pairs += [(a, b, "replicate") for a, b in combinations(members, 2) if stacks[a.name] == stacks[b.name]]
    return [
        {
            "pair_id": stable_id(record.name, baseline.name, candidate.name),
            "migration": record.name,
            "pair_kind": kind,
            "how_paired": candidate.how_paired,
            "baseline_run_id": stable_id(record.name, baseline.name),
            "baseline_run_name": baseline.name,
            "candidate_run_id": stable_id(record.name, candidate.name),
            "candidate_run_name": candidate.name,
            "baseline_stack": stacks[baseline.name],
            "candidate_stack": stacks[candidate.name],
        }
        for baseline, candidate, kind in pairs
    ]
