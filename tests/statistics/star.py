"""A small star in memory, filled from arrays, and the models built on it.

Here belongs what the tests and benchmarks of the statistics need to put runs with known answers before the
shipped SQL. Reading logs does not belong here.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from warehouse.catalog import ExtraMetric, dimension_tables, load_catalog
from warehouse.contract import stable_id
from warehouse.load_dimensions import put_pairs
from warehouse.project import Project, load_project
from warehouse.schema import apply_macros, apply_schema, macro_files, schema_files
from warehouse.settings import project_folder

_FACT_SCHEMA = pa.schema(
    [
        ("run_id", pa.int64()),
        ("metric_id", pa.int64()),
        ("step", pa.int64()),
        ("value", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Run:
    """A run with known values: metric to step to value."""

    name: str
    role: str
    stack: str
    values: Mapping[str, Mapping[int, float]]
    baseline: str = ""
    status: str = "finished"
    recipe: str = "recipe"
    log_precision: str = "float64"
    components: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Migration:
    """Runs that belong together."""

    name: str
    runs: tuple[Run, ...] = field(default_factory=tuple)


def project() -> Project:
    """Return the shipped models."""
    return load_project(project_folder("models"), schema_files(), macro_files())


def open_star(migrations: Iterable[Migration]) -> duckdb.DuckDBPyConnection:
    """Return a star in memory that holds the migrations, without models."""
    con = duckdb.connect()
    con.execute("set preserve_insertion_order = false")
    apply_schema(con)
    apply_macros(con)
    add_migrations(con, list(migrations))
    return con


def add_migrations(con: duckdb.DuckDBPyConnection, migrations: list[Migration]) -> None:
    """Put runs, pairs and points into the star."""
    runs = [(m, r) for m in migrations for r in m.runs]
    extra = sorted({name for _, run in runs for name in run.values})
    tables = dimension_tables(load_catalog(project_folder("catalog")), [ExtraMetric(n) for n in extra])
    for name in ("dim_category", "dim_metric"):
        _insert(con, name, tables[name])
    con.execute("insert into etl_state values ('catalog_hash', 'x') on conflict do nothing")
    _insert(con, "fct_metric", _facts(con, runs))
    _insert_runs(con, runs)
    _insert_pairs(con, migrations)


def _facts(con: duckdb.DuckDBPyConnection, runs: list[tuple[Migration, Run]]) -> pa.Table:
    pieces = []
    for migration, run in runs:
        run_id = stable_id(migration.name, run.name)
        for metric, points in run.values.items():
            steps = np.fromiter(points.keys(), dtype=np.int64, count=len(points))
            values = np.fromiter(points.values(), dtype=np.float64, count=len(points))
            pieces.append((run_id, stable_id(metric), steps, values, metric))
    lengths = [len(p[2]) for p in pieces]
    raw = pa.table(
        {
            "run_id": np.repeat([p[0] for p in pieces], lengths),
            "metric_id": np.repeat([p[1] for p in pieces], lengths),
            "step": np.concatenate([p[2] for p in pieces]),
            "value": np.concatenate([p[3] for p in pieces]),
        },
        schema=_FACT_SCHEMA,
    )
    con.register("raw_points", raw)
    table = con.sql(
        """
        select run_id, raw.metric_id, 'step' as step_axis, 1::integer as attempt, step, 1::integer as write_no,
            value,
            case when isnan(value) then 'nan' when isinf(value) and value > 0 then 'pos_inf'
                when isinf(value) then 'neg_inf' else 'finite' end as value_kind,
            true as is_current, null::varchar as raw_text, dim_metric.metric as metric_name,
            'memory' as source_file, step as source_position
        from raw_points as raw inner join dim_metric on raw.metric_id = dim_metric.metric_id
        """
    ).to_arrow_table()
    con.unregister("raw_points")
    return table


def _insert(con: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    con.register("new_rows", rows)
    keyed = name in ("dim_category", "dim_metric", "dim_component", "dim_run")
    con.execute(f"insert {'or replace ' if keyed else ''}into {name} by name select * from new_rows")
    con.unregister("new_rows")


def _insert_runs(con: duckdb.DuckDBPyConnection, runs: list[tuple[Migration, Run]]) -> None:
    rows, components, bridges = [], {}, []
    for migration, run in runs:
        run_id = stable_id(migration.name, run.name)
        steps = [s for points in run.values.values() for s in points]
        rows.append(
            {
                "run_id": run_id,
                "run_name": run.name,
                "migration": migration.name,
                "role": run.role,
                "stack": run.stack,
                "recipe": run.recipe,
                "status": run.status,
                "log_format": "memory",
                "log_precision": run.log_precision,
                "source": "memory",
                "content_hash": str(run_id),
                "point_count": len(steps),
                "attempt_count": 1,
                "first_step": min(steps),
                "last_step": max(steps),
                "issue_count": 0,
            }
        )
        for kind, name, version in run.components:
            component_id = stable_id(kind, name, version)
            components[component_id] = {
                "component_id": component_id,
                "component_kind": kind,
                "component_name": name,
                "component_version": version,
            }
            bridges.append({"run_id": run_id, "component_id": component_id})
    con.register("run_rows", pa.Table.from_pylist(rows))
    con.execute("insert into dim_run by name select *, now()::timestamp as loaded_at from run_rows")
    con.unregister("run_rows")
    if bridges:
        _insert(con, "dim_component", pa.Table.from_pylist(list(components.values())))
        _insert(con, "bridge_run_component", pa.Table.from_pylist(bridges))


def _insert_pairs(con: duckdb.DuckDBPyConnection, migrations: list[Migration]) -> None:
    rows = []
    for migration in migrations:
        runs = {r.name: r for r in migration.runs}
        pairs = [(runs[r.baseline], r, "migration") for r in migration.runs if r.role == "candidate"]
        members = [r for r in migration.runs if r.role in ("baseline", "replicate")]
        pairs += [(a, b, "replicate") for a, b in combinations(members, 2) if a.stack == b.stack]
        rows += [
            {
                "pair_id": stable_id(migration.name, a.name, b.name),
                "migration": migration.name,
                "pair_kind": kind,
                "how_paired": "declared",
                "baseline_run_id": stable_id(migration.name, a.name),
                "baseline_run_name": a.name,
                "candidate_run_id": stable_id(migration.name, b.name),
                "candidate_run_name": b.name,
                "baseline_stack": a.stack,
                "candidate_stack": b.stack,
            }
            for a, b, kind in pairs
        ]
    put_pairs(con, pa.Table.from_pylist(rows))


def build(con: duckdb.DuckDBPyConnection, names: Iterable[str] | None = None) -> dict[str, float]:
    """Build models as plain tables, in order; return the seconds of each.

    Args:
        con: The star.
        names: Models to build; all that the statistics consist of by default.
    """
    import time

    wanted = set(names) if names is not None else None
    seconds = {}
    for model in project().models:
        if wanted is not None and model.name not in wanted:
            continue
        started = time.perf_counter()
        con.execute(f"create or replace table {model.name} as\n{model.sql}")
        seconds[model.name] = time.perf_counter() - started
    return seconds


def statistics_models() -> list[str]:
    """Return the models that the verdicts are made of, in order."""
    loaded = project()
    needed: set[str] = set()
    stack = ["mart_pair_verdict", "mart_first_drift", "mart_divergence_onset"]
    by_name = {m.name: m for m in loaded.models}
    while stack:
        name = stack.pop()
        if name in by_name and name not in needed:
            needed.add(name)
            stack.extend(by_name[name].depends_on)
    return [m.name for m in loaded.models if m.name in needed]


def read_lab_run(path: Path) -> dict[str, dict[int, float]]:
    """Read one JSON-lines log: metric to step to value."""
    values: dict[str, dict[int, float]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            for name, value in row["data"].items():
                values.setdefault(name, {})[row["step"]] = float("nan") if value is None else float(value)
    return values
