"""The assets from landing to the star: run logs in the lake, dimensions and facts in DuckDB."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb

from pipelines.defs.metadata import POOL, made_by, markdown_table, table_metadata
from pipelines.discovery import find_manifests
from pipelines.landing import IngestResult, ingest_migration
from pipelines.manifest import Manifest
from pipelines.resources import WarehouseResource, current_catalog
from warehouse.catalog import catalog_hash
from warehouse.load import load_lake
from warehouse.project import source_tables
from warehouse.rules import refresh_rule_breaks
from warehouse.runner import refresh_by_run
from warehouse.schema import apply_schema, schema_files
from warehouse.wording import counted

migrations = dg.DynamicPartitionsDefinition(name="migration")
RUN_LOGS = dg.AssetKey(["lake", "run_logs"])
RULE_BREAKS = "fct_rule_break"
LOADED = sorted(t for t in source_tables(schema_files()) if not t.startswith("etl_") and t != RULE_BREAKS)


def _table_comments() -> dict[str, str]:
    con = duckdb.connect()
    try:
        apply_schema(con)
        return dict(con.execute("select table_name, comment from duckdb_tables()").fetchall())
    finally:
        con.close()


_COMMENTS = _table_comments()


def _created_by(table: str) -> dict[str, Any]:
    """Return the link to the statement that creates a table of the star."""
    for path in schema_files():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if re.match(rf"create (?:or replace )?table (?:if not exists )?{table}\b", line):
                return made_by(path, number)
    raise KeyError(table)


@dg.asset(
    key=RUN_LOGS,
    group_name="lake",
    kinds={"polars", "parquet"},
    description="The run logs of a migration as Parquet, one file for each run and content. Grain: write of a metric.",
    metadata=made_by(Path(__file__)),
    partitions_def=migrations,
    backfill_policy=dg.BackfillPolicy.single_run(),
    check_specs=[
        dg.AssetCheckSpec(
            "logs_are_readable", asset=RUN_LOGS, description="Every log that a manifest names can be read."
        ),
        dg.AssetCheckSpec("no_line_in_quarantine", asset=RUN_LOGS, description="Every line of the logs could be read."),
    ],
)
def run_logs(
    context: dg.AssetExecutionContext, warehouse: WarehouseResource
) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
    """Take the logs of the partitions' migrations into the lake."""
    wanted = set(context.partition_keys)
    settings = warehouse.settings
    landed = find_manifests(settings.landing)
    messages = [failure.message for failure in landed.failures]
    for note in landed.notes:
        context.log.warning(note)
    results: list[IngestResult] = []
    for manifest in landed.manifests:
        if manifest.migration in wanted:
            results.append(ingest_migration(manifest, settings.lake))
            for note in results[-1].notes:
                context.log.info(note)
            context.add_asset_metadata(_partition_metadata(manifest, results[-1]), partition_key=manifest.migration)
    messages += [failure.message for result in results for failure in result.failures]
    for message in messages:
        context.log.error(message)
    issues = sum(result.issue_count for result in results)
    yield dg.MaterializeResult(
        asset_key=RUN_LOGS,
        metadata={
            "migrations": len(results),
            "runs_read": sum(len(result.read_runs) for result in results),
            "runs_unchanged": sum(len(result.kept_runs) for result in results),
            "points_read": sum(result.point_count for result in results),
            "lines_in_quarantine": issues,
            "unreadable": messages,
            "notes": [*landed.notes, *(note for result in results for note in result.notes)],
        },
    )
    yield dg.AssetCheckResult(
        asset_key=RUN_LOGS,
        check_name="logs_are_readable",
        passed=not messages,
        severity=dg.AssetCheckSeverity.ERROR,
        description=messages[0] if messages else None,
        metadata={"failures": len(messages), "messages": messages},
    )
    spoiled = [(result.migration, result.issue_count) for result in results if result.issue_count]
    yield dg.AssetCheckResult(
        asset_key=RUN_LOGS,
        check_name="no_line_in_quarantine",
        passed=issues == 0,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "lines": issues,
            "sample": dg.MetadataValue.md(markdown_table(("migration", "lines"), spoiled) if spoiled else "none"),
            "query": "select * from fct_parse_issue",
        },
    )


def _partition_metadata(manifest: Manifest, result: IngestResult) -> dict[str, Any]:
    """Return what the page shows of one migration beside the numbers of the whole run."""
    runs = [(run.name, run.role, run.baseline or run.of, run.log) for run in manifest.runs]
    return {
        "migration": manifest.migration,
        "runs": dg.MetadataValue.md(markdown_table(("run", "role", "judged against", "log"), runs)),
        "run_count": len(manifest.runs),
        "unreadable_here": [failure.message for failure in result.failures],
    }


@dg.multi_asset(
    name="star",
    specs=[
        dg.AssetSpec(
            dg.AssetKey(["star", table]),
            deps=[RUN_LOGS],
            group_name="star",
            kinds={"duckdb", "sql"},
            description=_COMMENTS[table],
            metadata=_created_by(table),
        )
        for table in LOADED
    ],
    pool=POOL,
)
def star(context: dg.AssetExecutionContext, warehouse: WarehouseResource) -> Iterator[dg.MaterializeResult]:
    """Bring dimensions and facts to the state of the lake, in one transaction."""
    with warehouse.writer() as con:
        result = load_lake(con, warehouse.settings.lake, current_catalog())
        context.log.info(f"{counted(result.added_points, 'point')} added")
        for table in LOADED:
            metadata = table_metadata(con, table)
            if table == "fct_metric":
                metadata |= {
                    "points_added": result.added_points,
                    "new_runs": list(result.new_runs),
                    "grown_runs": list(result.grown_runs),
                    "replaced_runs": list(result.replaced_runs),
                    "removed_runs": list(result.removed_runs),
                    "unchanged_runs": len(result.unchanged_runs),
                }
            yield dg.MaterializeResult(asset_key=["star", table], metadata=metadata)


@dg.asset(
    key=["star", RULE_BREAKS],
    group_name="star",
    kinds={"duckdb", "sql"},
    description=_COMMENTS[RULE_BREAKS],
    metadata=_created_by(RULE_BREAKS),
    deps=[dg.AssetKey(["star", "fct_metric"]), dg.AssetKey(["star", "dim_metric"])],
    pool=POOL,
)
def rule_breaks(warehouse: WarehouseResource) -> dg.MaterializeResult:
    """Hold the rules of the catalogue against every step of the runs that changed."""
    with warehouse.writer() as con:
        catalog = current_catalog()
        count = refresh_by_run(
            con, RULE_BREAKS, catalog_hash(catalog), lambda runs: refresh_rule_breaks(con, catalog.rules, runs)
        )
        return dg.MaterializeResult(metadata={**table_metadata(con, RULE_BREAKS), "runs_refreshed": count})
