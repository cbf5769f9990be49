"""One asset for each file of models/."""

import dagster as dg

from pipelines.defs.findings import SHOWN
from pipelines.defs.metadata import POOL, asset_key, lineage_metadata, made_by, table_metadata
from pipelines.resources import WarehouseResource, current_project
from warehouse.project import Model, Project
from warehouse.runner import build_model

PROJECT: Project = current_project()
LAYERS = {model.name: model.layer for model in PROJECT.models}


def model_asset(model: Model) -> dg.AssetsDefinition:
    """Return the asset that builds a model."""

    @dg.asset(
        key=asset_key(model.name, LAYERS),
        deps=[asset_key(name, LAYERS) for name in model.depends_on if not name.startswith("etl_")],
        group_name=model.layer,
        kinds={"duckdb", "sql"},
        description=f"{model.description} Grain: {', '.join(model.grain)}.",
        code_version=model.fingerprint,
        metadata={
            "materialization": model.materialization,
            "sql": dg.MetadataValue.md(f"```sql\n{model.sql}\n```"),
            **made_by(model.path),
        },
        pool=POOL,
    )
    def build(warehouse: WarehouseResource) -> dg.MaterializeResult:
        with warehouse.writer() as con:
            result = build_model(con, PROJECT, model)
            shown = SHOWN[model.name](con) if model.name in SHOWN else {}
            return dg.MaterializeResult(
                metadata={
                    **shown,
                    **table_metadata(con, model.name),
                    "dagster/column_lineage": lineage_metadata(con, model, LAYERS),
                    "action": result.action,
                    "keys_rebuilt": result.key_count,
                    "seconds": round(result.seconds, 3),
                }
            )

    return build


model_assets = [model_asset(model) for model in PROJECT.models]
