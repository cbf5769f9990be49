"""Exports of the published file for other tools: Parquet, CSV, an Excel workbook, Postgres, a Superset bundle.

Every export reads the published file and nothing else, rewrites only what changed since its own last time, and
leaves the previous export whole when it is interrupted. What the tables hold is decided in the models.
"""

from warehouse.export.files import FORMATS, export_folder, export_parquet
from warehouse.export.postgres import export_postgres
from warehouse.export.source import Export, ExportError
from warehouse.export.workbook import export_workbook

__all__ = [
    "FORMATS",
    "Export",
    "ExportError",
    "export_folder",
    "export_parquet",
    "export_postgres",
    "export_workbook",
]
