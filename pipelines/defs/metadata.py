"""What every asset shows: of its table rows, columns, lineage and a preview, and the file that makes it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb

from warehouse.connection import scalar
from warehouse.project import Model, column_lineage
from warehouse.settings import project_folder, team_settings

POOL = "warehouse"
PREVIEW_ROWS = 8
_LONGEST_CELL = 60
_ROOTS = (project_folder("models").parent, Path(__file__).parents[2])


def asset_key(table: str, model_layers: Mapping[str, str]) -> dg.AssetKey:
    """Return the asset key of a table: its layer and its name."""
    return dg.AssetKey([model_layers.get(table, "star"), table])


def made_by(path: Path, line: int = 1) -> dict[str, Any]:
    """Return the link to the file that makes an asset: on the web where the team says so, else on this machine."""
    team = team_settings()
    root = next(root for root in _ROOTS if path.is_relative_to(root))
    name = path.relative_to(root).as_posix()
    if team.source_url:
        reference: dg.UrlCodeReference | dg.LocalFileCodeReference
        reference = dg.UrlCodeReference(url=f"{team.source_url}/{name}#L{line}", label=name)
    else:
        reference = dg.LocalFileCodeReference(file_path=str(path), line_number=line, label=name)
    return {"dagster/code_references": dg.CodeReferencesMetadataValue(code_references=[reference])}


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


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as a table in Markdown; long values are cut."""
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def cell(value: Any) -> str:
    """Return a value as a cell of a table in Markdown; a long one is cut."""
    text = f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)
    text = text.replace("\n", " ")
    text = text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"
    return text.replace("|", "\\|")


def _preview(con: duckdb.DuckDBPyConnection, table: str) -> str:
    relation = con.sql(f"select * from {table} limit {PREVIEW_ROWS}")
    return markdown_table(relation.columns, relation.fetchall())
