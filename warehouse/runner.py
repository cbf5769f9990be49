"""Building models: views, tables, and tables that are rebuilt by key.

The SELECT of a model runs as it stands in its file. For an incremental model the relations that it reads
are shadowed by temporary views of the same names that hold the changed keys alone, so nothing is rewritten.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import duckdb

from warehouse.connection import scalar, transaction
from warehouse.project import Model, Project

# All that is known of a run, in one hash: a model may come to read any column. Only where the log lay and when it
# was loaded are no matter of models.
RUN_HASHES = """
    select run.run_id, run.run_name, run.migration, run.role, md5(run::varchar) as run_hash
    from (select * exclude (source, loaded_at) from dim_run) as run"""
# What the rows of one key are made of. The models by that key are rebuilt where the version changes.
_KEY_VERSIONS: Mapping[str, str] = {
    "pair_id": "select pair_id::varchar as build_key, input_version from dim_migration",
    "run_id": f"""
        select
            run_id::varchar as build_key,
            md5(concat_ws('|', run_hash, (select value from etl_state where name = 'catalog_hash'))) as input_version
        from ({RUN_HASHES})""",
    # A noise floor belongs to a pair: another pairing of the same runs makes other floors.
    "migration": f"""
        with parts as (
            select migration, run_hash as part from ({RUN_HASHES})
            union all
            select pair.migration, md5(pair::varchar) as part
            from (select * exclude (input_version) from dim_migration) as pair
        )
        select
            migration as build_key,
            md5(concat_ws('|', string_agg(part, '/' order by part),
                (select value from etl_state where name = 'catalog_hash'))) as input_version
        from parts
        group by migration""",
}
# Which component versions runs ran on: read by the models over all migrations alone.
_COMPONENT_VERSION = """
    select 'components' as build_key, md5(string_agg(concat_ws('|', b.run_id, component::varchar), '/'
        order by b.run_id, b.component_id)) as input_version
    from bridge_run_component as b
    inner join dim_component as component on b.component_id = component.component_id"""
# Rows of the star that belong to the changed keys, by key and table.
_SOURCE_FILTERS: Mapping[tuple[str, str], str] = {
    ("pair_id", "dim_migration"): "pair_id in (select key from _changed)",
    ("pair_id", "fct_metric"): """run_id in (
        select unnest([baseline_run_id, candidate_run_id]) from {catalog}.main.dim_migration
        where pair_id in (select key from _changed))""",
    ("run_id", "dim_run"): "run_id in (select key from _changed)",
    ("run_id", "dim_step"): "run_id in (select key from _changed)",
    ("run_id", "fct_metric"): "run_id in (select key from _changed)",
    ("run_id", "fct_parse_issue"): "run_id in (select key from _changed)",
    ("run_id", "fct_rule_break"): "run_id in (select key from _changed)",
    ("migration", "dim_run"): "migration in (select key from _changed)",
    ("migration", "dim_migration"): "migration in (select key from _changed)",
    ("migration", "fct_metric"): """run_id in (
        select run_id from {catalog}.main.dim_run where migration in (select key from _changed))""",
}
_WHOLE = ""


@dataclass(frozen=True)
class BuildResult:
    """What building one model did.

    Attributes:
        model: Its name.
        action: "built" (whole), "updated" (some keys) or "unchanged".
        key_count: Keys rebuilt or removed; 0 for whole builds.
        row_count: Rows it has now.
        seconds: How long it took.
    """

    model: str
    action: str
    key_count: int
    row_count: int
    seconds: float


def build_all(
    con: duckdb.DuckDBPyConnection, project: Project, report: Callable[[BuildResult], None] | None = None
) -> list[BuildResult]:
    """Build every model in order.

    Args:
        con: A connection to the working file, with schema and macros applied.
        project: The models.
        report: Called after each model.
    """
    results = []
    for model in project.models:
        result = build_model(con, project, model)
        results.append(result)
        if report:
            report(result)
    return results


def build_model(con: duckdb.DuckDBPyConnection, project: Project, model: Model) -> BuildResult:
    """Bring one model up to date with what it reads, in one transaction.

    Raises:
        duckdb.Error: If its SQL fails; the model then is as it was.
    """
    started = time.perf_counter()
    with transaction(con):
        if model.materialization == "incremental":
            action, keys = _build_incremental(con, project, model)
        else:
            action, keys = _build_whole(con, model)
        apply_comments(con, model)
        rows = 0 if model.materialization == "view" else scalar(con, f"select count(*) from {model.name}")
    return BuildResult(model.name, action, keys, rows, time.perf_counter() - started)


def _build_whole(con: duckdb.DuckDBPyConnection, model: Model) -> tuple[str, int]:
    kind = model.materialization
    version = _data_version(con)
    if _exists(con, model.name) and _state(con, model.name).get(_WHOLE) == (model.fingerprint, version):
        return "unchanged", 0
    _drop(con, model.name)
    con.execute(f"create {kind} {model.name} as\n{model.sql}")
    _remember(con, model.name, model.fingerprint, {_WHOLE: version})
    return "built", 0


def _build_incremental(con: duckdb.DuckDBPyConnection, project: Project, model: Model) -> tuple[str, int]:
    assert model.key is not None
    if model.key not in _KEY_VERSIONS:
        raise ValueError(f"{model.path}: no table tells when a {model.key} has changed")
    wanted = dict(con.execute(_KEY_VERSIONS[model.key]).fetchall())
    known = _state(con, model.name)
    is_stale = any(fingerprint != model.fingerprint for fingerprint, _ in known.values())
    if not _exists(con, model.name) or is_stale:
        _drop(con, model.name)
        con.execute(f"create table {model.name} as\n{model.sql}")
        _forget(con, model.name, known)
        _remember(con, model.name, model.fingerprint, wanted)
        return "built", len(wanted)
    changed = {k for k, version in wanted.items() if known.get(k, (None, None))[1] != version}
    removed = known.keys() - wanted.keys()
    if not changed and not removed:
        return "unchanged", 0
    key_type = "bigint" if model.key != "migration" else "varchar"
    con.execute(f"create or replace temp table _changed (key {key_type})")
    con.execute(f"insert into _changed select unnest(?::varchar[])::{key_type}", [sorted(changed | removed)])
    con.execute(f"delete from {model.name} where {model.key} in (select key from _changed)")
    if changed:
        columns = ", ".join(model.columns)
        shadows = _shadow(con, project, model)
        con.execute(f"insert into {_catalog(con)}.main.{model.name} ({columns})\n{model.sql}")
        for name in shadows:  # where the insert fails, the rollback takes them away
            con.execute(f"drop view temp.{name}")
    _forget(con, model.name, changed | removed)
    _remember(con, model.name, model.fingerprint, {key: wanted[key] for key in changed})
    return "updated", len(changed | removed)


def refresh_by_run(
    con: duckdb.DuckDBPyConnection, table: str, fingerprint: str, refresh: Callable[[list[int]], object]
) -> int:
    """Refresh a table of the star by run, for the runs that changed since it was last refreshed.

    Args:
        con: A connection to the working file.
        table: The table.
        fingerprint: Hash of what it is made with; another one refreshes every run.
        refresh: Puts the rows of the given runs in anew.

    Returns:
        The number of runs that were refreshed or are gone.
    """
    with transaction(con):
        wanted = dict(con.execute(_KEY_VERSIONS["run_id"]).fetchall())
        known = _state(con, table)
        changed = [key for key, version in wanted.items() if known.get(key) != (fingerprint, version)]
        gone = [key for key in known if key not in wanted]
        if changed:
            refresh([int(key) for key in changed])
        _forget(con, table, changed + gone)
        _remember(con, table, fingerprint, {key: wanted[key] for key in changed})
    return len(changed) + len(gone)


def _shadow(con: duckdb.DuckDBPyConnection, project: Project, model: Model) -> list[str]:
    """Put temporary views, restricted to the changed keys, before the relations that `model` reads."""
    names = []
    by_name = {m.name: m for m in project.models}
    # A bare "main" would also find the temporary views themselves.
    catalog = _catalog(con)
    for name in model.depends_on:
        upstream = by_name.get(name)
        condition = None
        if upstream is None:
            condition = _SOURCE_FILTERS.get((model.key or "", name), "").format(catalog=catalog)
        elif (upstream.key == model.key) or (upstream.materialization == "view" and model.key in upstream.columns):
            condition = f"{model.key} in (select key from _changed)"
        if condition:
            con.execute(f"create temp view {name} as select * from {catalog}.main.{name} where {condition}")
            names.append(name)
    return names


def _catalog(con: duckdb.DuckDBPyConnection) -> str:
    return f'"{scalar(con, "select current_database()")}"'


def _state(con: duckdb.DuckDBPyConnection, table: str) -> dict[str, tuple[str, str]]:
    """Return by key the fingerprint and the version that a table was last built with."""
    rows = con.execute(
        "select build_key, fingerprint, input_version from etl_model_state where model = ?", [table]
    ).fetchall()
    return {key: (fingerprint, version) for key, fingerprint, version in rows}


def _forget(con: duckdb.DuckDBPyConnection, table: str, keys: Iterable[str]) -> None:
    con.execute(
        "delete from etl_model_state where model = ? and list_contains(?::varchar[], build_key)", [table, list(keys)]
    )


def _remember(con: duckdb.DuckDBPyConnection, table: str, fingerprint: str, versions: Mapping[str, str]) -> None:
    con.execute(
        """
        insert or replace into etl_model_state
        select ?, unnest(?::varchar[]), ?, unnest(?::varchar[]), now()::timestamp
        """,
        [table, list(versions), fingerprint, list(versions.values())],
    )


def _data_version(con: duckdb.DuckDBPyConnection) -> str:
    """Return a hash of everything in the star: tables that are not keyed are rebuilt when it changes."""
    parts = " union all ".join(f"({part})" for part in (*_KEY_VERSIONS.values(), _COMPONENT_VERSION))
    return (
        scalar(
            con,
            f"""
        select md5(string_agg(build_key || input_version, '/' order by build_key, input_version))
        from ({parts})
        """,
        )
        or ""
    )


def apply_comments(con: duckdb.DuckDBPyConnection, model: Model) -> None:
    """Put the model's description and column comments on its relation, where they differ from what is there."""
    is_view = model.materialization == "view"
    current = dict(
        con.execute(
            "select column_name, comment from duckdb_columns() where table_name = ? and schema_name = 'main'",
            [model.name],
        ).fetchall()
    )
    text = f"{model.description} Grain: {', '.join(model.grain)}."
    con.execute(f"comment on {'view' if is_view else 'table'} {model.name} is {quote(text)}")
    for column, comment in model.columns.items():
        if current.get(column) != comment:
            con.execute(f'comment on column {model.name}."{column}" is {quote(comment)}')


def quote(text: str) -> str:
    """Return `text` as a SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def _exists(con: duckdb.DuckDBPyConnection, name: str) -> bool:
    found = scalar(
        con,
        f"select count(*) from information_schema.tables "
        f"where table_schema = 'main' and table_catalog = current_database() and table_name = {quote(name)}",
    )
    return bool(found)


def _drop(con: duckdb.DuckDBPyConnection, name: str) -> None:
    kind = scalar(
        con,
        "select table_type from information_schema.tables "
        "where table_schema = 'main' and table_catalog = current_database() and table_name = ?",
        [name],
    )
    if kind:
        con.execute(f"drop {'view' if kind == 'VIEW' else 'table'} {name}")
