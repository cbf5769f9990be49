"""What every asset shows of its table: rows, columns, lineage and a preview."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import duckdb

from warehouse.connection import scalar
from warehouse.project import Model, column_lineage

POOL = "warehouse"
PREVIEW_ROWS = 8


def asset_key(table: str, model_layers: Mapping[str, str]) -> dg.AssetKey:
    """Return the asset key of a table: its layer and its name."""
    return dg.AssetKey([model_layers.get(table, "star"), table])


def table_metadata(con: duckdb.DuckDBPyConnection, table: str) -> dict[str, Any]:
    """Return row count, column schema and a preview of a table or view."""
    columns = con.execute(
        """
        select column_name, data_type, coalesce(comment, '') from duckdb_columns()
        where table_name = ? and schema_name = 'main' and database_name = current_database()
        order by column_index
        """,
        [table],
    ).fetchall()
    return {
        "dagster/row_count": scalar(con, f"select count(*) from {table}"),
        "dagster/table_name": f"main.{table}",
        "dagster/column_schema": dg.TableSchema(
            columns=[dg.TableColumn(name=n, type=t, description=c) for n, t, c in columns]
        ),
        "preview": dg.MetadataValue.md(_preview(con, table)),
    }


def lineage_metadata(con: duckdb.DuckDBPyConnection, model: Model, layers: Mapping[str, str]) -> dg.TableColumnLineage:
    """Return the columns that each column of a model is made of."""
    columns_of = {
        name: [c for (c,) in con.execute(f"select column_name from (describe {name})").fetchall()]
        for name in model.depends_on
    }
    return dg.TableColumnLineage(
        deps_by_column={
            column: [dg.TableColumnDep(asset_key=asset_key(t, layers), column_name=c) for t, c in sources]
            for column, sources in column_lineage(model, columns_of).items()
        }
    )


def _preview(con: duckdb.DuckDBPyConnection, table: str) -> str:
    relation = con.sql(f"select * from {table} limit {PREVIEW_ROWS}")
    header = relation.columns
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(_cell(v) for v in row) + " |" for row in relation.fetchall()]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)
    return text.replace("|", "\\|").replace("\n", " ")[:60]
