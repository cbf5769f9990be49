"""The commands that hand the published tables to other tools."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from pipelines.render import to_json
from pipelines.terminal import AsJson, Home, UserError, err, out
from warehouse.settings import Settings, expanded, settings_for
from warehouse.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from warehouse.export import Export

_FOLDER_FORMATS = ("parquet", "csv")
# A suffix that begins with a letter is that of a file; v1.2 is the name of a folder.
_FILE_LIKE = re.compile(r"\.[A-Za-z]\w{0,9}")
_POSTGRES = ("postgresql", "postgres")


def export(
    to: Annotated[
        str,
        typer.Option(
            help="A folder, a file that ends in .xlsx, or postgresql://user@host/name; <home>/exports without it."
        ),
    ] = "",
    form: Annotated[
        str, typer.Option("--format", "-f", help=f"What goes into a folder: one of {', '.join(_FOLDER_FORMATS)}.")
    ] = "parquet",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Write the published tables for other tools: Parquet, CSV, an Excel workbook, or Postgres."""
    if form not in _FOLDER_FORMATS:
        raise UserError(f"--format {form}: write one of {', '.join(_FOLDER_FORMATS)}.")
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("reading what is published", total=None)

        def report(table: str) -> None:
            progress.update(task, description=table)

        result = _export(settings_for(home), to, form, report)
    if as_json:
        print(to_json(asdict(result)))
        return
    _print(result)


def _export(settings: Settings, to: str, form: str, report: "Callable[[str], None]") -> "Export":
    from warehouse.export import export_folder, export_postgres, export_workbook

    scheme = urlsplit(to).scheme if "://" in to else ""
    if scheme in _POSTGRES:
        return export_postgres(settings.published, to, report)
    if scheme:
        raise UserError(f"--to {scheme}://...: firstdrift writes to a folder, a .xlsx file or postgresql:// alone.")
    path = expanded(Path(to)) if to else settings.exports
    if path.suffix.lower() == ".xlsx":
        return export_workbook(settings.published, path, report)
    if _FILE_LIKE.fullmatch(path.suffix) and not path.is_dir():
        raise UserError(
            f"--to {to}: name a folder for Parquet and CSV files, or a file that ends in .xlsx. "
            "A folder whose name looks like a file's must be there already."
        )
    return export_folder(settings.published, path, form, report)


def _print(result: "Export") -> None:
    tables = f"{counted(len(result.rows), 'table')}, {counted(sum(result.rows.values()), 'row')}"
    if not result.is_new:
        out.print(f"{tables}: all of it is in {result.destination} already.", soft_wrap=True)
        return
    parts = sum(result.written.values())
    out.print(f"{tables} are in {result.destination}; {counted(parts, 'part')} written now.", soft_wrap=True)
    for note in result.notes:
        out.print(f"Not in it: {note}", style="yellow")


def superset(
    database: Annotated[
        str, typer.Option(help="Address of the database as Superset reaches it; the published file without it.")
    ] = "",
    output: Annotated[Path, typer.Option("--output", "-o", help="The bundle.")] = Path("firstdrift_superset.zip"),
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Write a bundle for Apache Superset: a database, datasets with descriptions, and a dashboard."""
    from warehouse.export.superset import write_bundle

    settings = settings_for(home)
    charts = write_bundle(output, database, settings.published)
    if as_json:
        print(to_json({"bundle": output, "charts": charts}))
        return
    out.print(
        f"{output}: a dashboard of {counted(len(charts), 'chart')}. In Superset: Dashboards, Import.", soft_wrap=True
    )
