"""From the lake to the star, in one transaction and idempotent by content hash.

Here belongs the order of a load and what it did. Points are loaded in warehouse/load_points.py, what they
hang on in warehouse/load_dimensions.py; what the tables look like is in sql/schema.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from warehouse import lake as lake_files
from warehouse.catalog import Catalog, catalog_hash
from warehouse.connection import scalar, transaction
from warehouse.load_dimensions import load_components, load_pairs, load_precisions, load_runs, load_steps
from warehouse.load_points import load_points
from warehouse.star_run import StarRun, runs_of


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


def load_lake(con: duckdb.DuckDBPyConnection, lake: Path, catalog: Catalog) -> LoadResult:
    """Bring the star to the state of the lake.

    A run whose content hash is known is left alone, a grown log adds its new points, a changed log
    replaces the run, a run that left the lake is removed. Nothing is changed if anything fails.

    Args:
        con: A connection to the working file, with the schema applied.
        lake: The lake's folder.
        catalog: The metric catalogue; where it or the version of the readers changed, every run is loaded anew.
    """
    records = list(lake_files.read_migrations(lake))
    runs = [run for record in records for run in runs_of(record)]
    names = {run.run_id: f"{run.migration}/{run.record.name}" for run in runs}
    with transaction(con):
        result = _load(con, lake, catalog, runs, names)
        load_pairs(con, records)
    return result


def _load(
    con: duckdb.DuckDBPyConnection, lake: Path, catalog: Catalog, runs: list[StarRun], names: dict[int, str]
) -> LoadResult:
    stored = dict(con.execute("select run_id, content_hash from dim_run").fetchall())
    stored_names = dict(con.execute("select run_id, migration || '/' || run_name from dim_run").fetchall())
    # Other readers may find more in a log that did not change.
    version = " ".join([catalog_hash(catalog), *sorted({run.record.reader_version for run in runs})])
    is_new_catalog = scalar(con, "select value from etl_state where name = 'catalog_hash'") != version
    removed = stored.keys() - names.keys()
    changed = [r for r in runs if stored.get(r.run_id) != r.record.content_hash or is_new_catalog]
    _delete_runs(con, removed)
    con.execute("insert or replace into etl_state values ('catalog_hash', ?)", [version])
    added, replaced = load_points(con, lake, catalog, changed, is_new_catalog=is_new_catalog)
    load_runs(con, runs, {r.run_id for r in changed})
    load_precisions(con, changed)
    load_components(con, runs)
    load_steps(con, [r.run_id for r in changed])
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


def _delete_runs(con: duckdb.DuckDBPyConnection, run_ids: Iterable[int]) -> None:
    ids = list(run_ids)
    if not ids:
        return
    for table in (
        "fct_metric",
        "fct_parse_issue",
        "fct_rule_break",
        "dim_step",
        "bridge_run_component",
        "bridge_run_metric",
        "dim_run",
    ):
        con.execute(f"delete from {table} where list_contains(?::bigint[], run_id)", [ids])
