"""The bundle for Apache Superset: one database, the published tables and joins of them as datasets, one dashboard.

What the charts show is decided in bi/superset: its files are written for people, and turned here into the format of
Superset's own exports, which repeats every setting. The queries run on DuckDB and on Postgres as they are.
"""

import io
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID, uuid5

import duckdb
import yaml

from warehouse.dictionary import Table, read_dictionary
from warehouse.export.postgres_tables import postgres_type
from warehouse.export.source import ExportError
from warehouse.export.superset_charts import FORMAT, chart_files, dashboard_file, named_uuid
from warehouse.project import read_model
from warehouse.settings import project_folder

_ROOT = "firstdrift_superset"
_NAMES = UUID("6f1e2b7c-52c7-4d1c-9d0b-2f2f5b8f7a11")  # of this project alone; any other would do as well
# Superset asks for the password where an address has this one.
_MASK = "XXXXXXXXXX"


def write_bundle(path: Path, database: str, published: Path) -> list[str]:
    """Write a bundle that Superset imports as a dashboard.

    Args:
        path: The ZIP file.
        database: Address of the database as Superset reaches it, postgresql://user@host/name; empty for the published
            file. A password in it is left out: Superset asks for it at the import.
        published: The published file.

    Returns:
        Names of the charts.

    Raises:
        ExportError: If the file can't be written, or if the address is of no database that the bundle is for.
    """
    uri = _address(database, published)
    files = bundle_files(uri)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in files.items():
            bundle.writestr(f"{_ROOT}/{name}", yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120))
    draft = path.with_name(f".{path.name}.draft")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(target.getvalue())
        draft.replace(path)
    except OSError as error:
        raise ExportError(f"{path}: the bundle can't be written ({error.strerror}); name another file.") from error
    return [content["slice_name"] for name, content in files.items() if name.startswith("charts/")]


def _address(database: str, published: Path) -> str:
    if not database:
        return f"duckdb:///{published}?access_mode=read_only"
    parts = urlsplit(database)
    backend = parts.scheme.partition("+")[0]
    if backend == "duckdb":
        return database
    if backend not in ("postgresql", "postgres"):
        raise ExportError(f"{backend or database}: the bundle is for duckdb:/// and postgresql:// addresses.")
    where = parts.netloc
    if parts.password is not None:
        user, _, host = where.rpartition("@")
        where = f"{user.partition(':')[0]}:{_MASK}@{host}"
    return urlunsplit(("postgresql", where, parts.path, parts.query, ""))


def bundle_files(uri: str) -> dict[str, dict]:
    """Return the files of a bundle by name.

    Args:
        uri: Address of the database, with a masked password.
    """
    folder = project_folder("bi") / "superset"
    is_duckdb = uri.startswith("duckdb")
    # By address, so that bundles of two databases can stand side by side.
    names = uuid5(_NAMES, uri)
    suffix = "" if is_duckdb else " (Postgres)"
    charts = yaml.safe_load((folder / "charts.yaml").read_text(encoding="utf-8"))
    board = yaml.safe_load((folder / "dashboard.yaml").read_text(encoding="utf-8"))
    board["title"] += suffix
    metadata = {
        "version": FORMAT,
        "type": "Dashboard",
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    database = {
        "database_name": f"firstdrift{suffix}",
        "sqlalchemy_uri": uri,
        "expose_in_sqllab": True,
        "allow_run_async": False,
        "allow_ctas": False,
        "allow_cvas": False,
        "allow_dml": False,
        "extra": {"allows_virtual_table_explore": True},
        "uuid": named_uuid(names, "database", ""),
        "version": FORMAT,
    }
    return {
        "metadata.yaml": metadata,
        "databases/firstdrift.yaml": database,
        **_datasets(folder / "datasets", names, is_duckdb),
        **chart_files(charts, names),
        "dashboards/firstdrift.yaml": dashboard_file(board, charts, names),
    }


def _datasets(queries: Path, names: UUID, is_duckdb: bool) -> dict[str, dict]:
    """Return a dataset for each published table and for each query of a folder."""
    tables = [table for table in read_dictionary() if table.is_published]
    found = {}
    for table in tables:
        columns = [(column.name, column.type, column.comment) for column in table.columns]
        found[table.name] = _dataset(table.name, table.comment, None, columns, names, is_duckdb)
    con = _empty_tables(tables)
    try:
        for path in sorted(queries.glob("*.sql")):
            model = read_model(path, "bi")
            kinds = dict(row[:2] for row in con.execute(f"describe {model.sql}").fetchall())
            columns = [(name, kinds[name], comment) for name, comment in model.columns.items()]
            found[model.name] = _dataset(model.name, model.description, model.sql, columns, names, is_duckdb)
    finally:
        con.close()
    return {f"datasets/firstdrift/{name}.yaml": dataset for name, dataset in found.items()}


def _empty_tables(tables: Iterable[Table]) -> duckdb.DuckDBPyConnection:
    """Return a connection to the published tables without rows, which is enough to know the types of a query."""
    con = duckdb.connect()
    for table in tables:
        columns = ", ".join(f'"{column.name}" {column.type}' for column in table.columns)
        con.execute(f"create table {table.name} ({columns})")
    return con


def _dataset(
    name: str, description: str, sql: str | None, columns: Iterable[tuple[str, str, str]], names: UUID, is_duckdb: bool
) -> dict:
    return {
        "table_name": name,
        "main_dttm_col": None,
        "description": description,
        "schema": None,
        "sql": sql,
        "filter_select_enabled": True,
        "uuid": named_uuid(names, "dataset", name),
        "columns": [_column(*column, is_duckdb) for column in columns],
        "metrics": [{"metric_name": "count", "expression": "count(*)", "verbose_name": "rows", "metric_type": "count"}],
        "version": FORMAT,
        "database_uuid": named_uuid(names, "database", ""),
    }


def _column(name: str, kind: str, description: str, is_duckdb: bool) -> dict:
    return {
        "column_name": name,
        "verbose_name": name.replace("_", " "),
        "type": kind if is_duckdb else postgres_type(kind).upper(),
        "is_dttm": kind.startswith("TIMESTAMP"),
        "is_active": True,
        "groupby": True,
        "filterable": True,
        "description": description,
    }
