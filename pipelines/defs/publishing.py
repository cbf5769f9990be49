"""The assets that readers get: the published file and the exported tables."""

from pathlib import Path

import dagster as dg

from pipelines.defs.ingestion import LOADED, RULE_BREAKS
from pipelines.defs.metadata import POOL, asset_key, made_by
from pipelines.defs.models import LAYERS, PROJECT
from pipelines.resources import WarehouseResource
from warehouse.export import export_parquet
from warehouse.publish import publish
from warehouse.report import write_reports

PUBLISHED = dg.AssetKey(["published", "firstdrift_duckdb"])
EXPORTS = dg.AssetKey(["published", "parquet_exports"])
REPORTS = dg.AssetKey(["published", "reports"])
_MADE_BY = made_by(Path(__file__))
_MARTS = [model.name for model in PROJECT.models if model.layer == "marts"]


@dg.asset(
    key=PUBLISHED,
    deps=[asset_key(name, LAYERS) for name in [*LOADED, RULE_BREAKS, *_MARTS]],
    group_name="published",
    kinds={"duckdb"},
    description="The read-only file of dimensions, facts and marts, swapped in whole. Grain: file.",
    metadata=_MADE_BY,
    pool=POOL,
)
def published_file(warehouse: WarehouseResource) -> dg.MaterializeResult:
    """Copy the tables that readers get and swap the copy in."""
    with warehouse.writer() as con:
        publication = publish(con, warehouse.settings.published)
    return dg.MaterializeResult(
        metadata={
            "path": dg.MetadataValue.path(publication.path),
            "version": publication.version,
            "is_new": publication.is_new,
            "row_counts": publication.row_counts,
            "tables": len(publication.row_counts),
            "rows": sum(publication.row_counts.values()),
            "megabytes": round(publication.path.stat().st_size / 1e6, 3),
        }
    )


@dg.asset(
    key=EXPORTS,
    deps=[PUBLISHED],
    group_name="published",
    kinds={"parquet"},
    description="Every published table as a Parquet file, with a manifest that is replaced last. Grain: file.",
    metadata=_MADE_BY,
    pool=POOL,
)
def parquet_exports(warehouse: WarehouseResource) -> dg.MaterializeResult:
    """Write the published tables as Parquet files."""
    settings = warehouse.settings
    export = export_parquet(settings.published, settings.exports)
    return dg.MaterializeResult(
        metadata={
            "folder": dg.MetadataValue.path(export.destination),
            "version": export.version,
            "is_new": export.is_new,
            "row_counts": export.rows,
            "tables": len(export.rows),
            "files_written": export.written,
        }
    )


@dg.asset(
    key=REPORTS,
    deps=[PUBLISHED],
    group_name="published",
    kinds={"html"},
    description="One page for each migration, and an index over them. Grain: migration.",
    metadata=_MADE_BY,
    pool=POOL,
)
def reports(warehouse: WarehouseResource) -> dg.MaterializeResult:
    """Draw the pages of the migrations that changed."""
    settings = warehouse.settings
    pages = write_reports(settings.published, settings.reports)
    return dg.MaterializeResult(metadata={"index": dg.MetadataValue.path(pages[0]), "pages": len(pages)})
