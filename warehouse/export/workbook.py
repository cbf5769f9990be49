"""An Excel workbook of the marts, with the dimensions that name their keys.

Excel holds less than a table does. A first sheet says of this very workbook what it lacks, so that nobody takes a
shortened sheet for a whole one.
"""

import os
import re
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.connection import scalar
from warehouse.export.source import Export, ExportError, Source, Table, open_source
from warehouse.wording import counted

if TYPE_CHECKING:
    from xlsxwriter import Workbook
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

# Limits of the file format: rows of a sheet, characters of a cell, digits of a number.
MAX_ROWS = 1_048_576
MAX_TEXT = 32_767
MAX_INTEGER = 10**15 - 1
_DIMENSIONS = ("dim_migration", "dim_run", "dim_metric")
_BATCH = 20_000
_VERSION = "firstdrift version"
_ABOUT = (
    "Excel has no NaN and no infinity: such a cell is empty, and a column <name>_kind after it says nan, pos_inf or "
    "neg_inf. The column is there where a sheet has such a value.",
    "Excel keeps 15 digits of a number: a column with longer integers is text.",
    "Times are UTC, to the millisecond; Excel cells have no time zone.",
    f"A sheet has at most {MAX_ROWS:,} rows, the header among them, and a cell {MAX_TEXT:,} characters.",
    "Lists are JSON text. Parquet, CSV and Postgres exports and the published file hold everything.",
)


def export_workbook(published: Path, path: Path, report: Callable[[str], None] | None = None) -> Export:
    """Write the marts and the dimensions that name their keys as one workbook.

    Args:
        published: The published file.
        path: The workbook; an earlier one is replaced when the new one is complete.
        report: Called with the name of each table when its sheet is complete.

    Raises:
        NothingPublishedError: If nothing is published.
        ExportError: If the workbook can't be written.
    """
    with open_source(published) as source:
        tables = [table for table in source.tables if table.name in _DIMENSIONS or table.name.startswith("mart_")]
        rows = {table.name: table.rows for table in tables}
        if _written_version(path) == source.version:
            return Export(str(path), source.version, rows, {}, False)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            for old in path.parent.glob(f".{path.name}.*"):
                old.unlink()
            notes = _write(source, tables, draft, report)
            draft.replace(path)
        except OSError as error:
            raise ExportError(
                f"{path}: the workbook can't be written ({error.strerror or error}); an earlier one is as it was. "
                "Name a file in a folder that you may write to."
            ) from error
        finally:
            if draft.exists():
                draft.unlink()
        return Export(str(path), source.version, rows, dict.fromkeys(rows, 1), True, tuple(notes))


def _written_version(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as book:
            text = book.read("docProps/custom.xml").decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None
    found = re.search(rf'name="{_VERSION}"><vt:lpwstr>([^<]*)<', text)
    return found[1] if found else None


def _write(source: Source, tables: list[Table], draft: Path, report: Callable[[str], None] | None) -> list[str]:
    from xlsxwriter import Workbook
    from xlsxwriter.exceptions import FileCreateError

    book = Workbook(str(draft), {"constant_memory": True, "strings_to_urls": False})
    book.set_custom_property(_VERSION, source.version)
    header = book.add_format({"bold": True, "bottom": 1})
    about = book.add_worksheet("about")
    notes = []
    for table in tables:
        sheet = book.add_worksheet(table.name[:31])
        notes += _write_table(source, table, sheet, header, book)
        if report:
            report(table.name)
    _write_about(source, tables, notes, about, header)
    try:
        book.close()
    except FileCreateError as error:
        # The library wraps what the system said.
        raise error.args[0] if isinstance(error.args[0], OSError) else OSError(str(error)) from error
    return notes


def _write_about(source: Source, tables: list[Table], notes: list[str], sheet: "Worksheet", header: "Format") -> None:
    sheet.set_column(0, 0, 28)
    sheet.set_column(1, 1, 12)
    sheet.set_column(2, 2, 110)
    published_at = scalar(source.con, "select published_at from publication")
    lines: list[tuple] = [
        ("firstdrift", "", f"Version {source.version}, published {published_at:%Y-%m-%d %H:%M} UTC"),
        *[("", "", line) for line in _ABOUT],
        *[("not in this workbook", "", note) for note in notes],
        ("sheet", "rows", "what a row is"),
        *[(table.name, table.rows, table.comment) for table in tables],
    ]
    for index, line in enumerate(lines):
        form = header if line[0] in ("firstdrift", "sheet") else None
        for column, value in enumerate(line):
            if value != "":
                sheet.write(index, column, value, form)


def _write_table(source: Source, table: Table, sheet: "Worksheet", header: "Format", book: "Workbook") -> Iterator[str]:
    """Write a sheet and yield what it had to leave out."""
    relation = f"select {table.flat()} from {table.name}"
    kinds, texts = _odd_columns(source, table)
    time = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
    names: list[tuple[str, str]] = []
    for column in table.columns:
        names.append((column.name, "text" if column.name in texts else "value"))
        if column.name in kinds:
            names.append((column.name, "kind"))
    sheet.freeze_panes(1, 0)
    sheet.set_column(0, len(names) - 1, 18)
    for index, (name, what) in enumerate(names):
        sheet.write_string(0, index, f"{name}_kind" if what == "kind" else name, header)
    kept = min(table.rows, MAX_ROWS - 1)
    cut = 0
    row = 1
    for batch in source.con.sql(f"{relation} limit {kept}").to_arrow_reader(_BATCH):
        columns = [_cells(batch.column(name), what) for name, what in names]
        cut += sum(isinstance(value, str) and len(value) > MAX_TEXT for column in columns for value in column)
        for offset, cells in enumerate(zip(*columns, strict=True)):
            _write_row(sheet, row + offset, cells, time)
        row += batch.num_rows
    if kept < table.rows:
        yield f"{table.name}: {table.rows - kept:,} of {counted(table.rows, 'row')}, for which a sheet has no room."
    if cut:
        yield f"{table.name}: the end of {cut:,} texts that are longer than {MAX_TEXT:,} characters."


def _odd_columns(source: Source, table: Table) -> tuple[set[str], set[str]]:
    """Return the columns with values that are not finite, and those with integers that Excel would round."""
    tests = {}
    for column in table.columns:
        if column.type == "DOUBLE":
            tests[column.name] = f'count(*) filter (not isfinite("{column.name}")) > 0'
        elif column.type.endswith(("BIGINT", "HUGEINT")):
            tests[column.name] = f'coalesce(max(abs("{column.name}"::hugeint)) > {MAX_INTEGER}, false)'
    if not tests:
        return set(), set()
    found = source.con.execute(f"select {', '.join(tests.values())} from {table.name}").fetchall()[0]
    odd = {name for name, is_odd in zip(tests, found, strict=True) if is_odd}
    doubles = {column.name for column in table.columns if column.type == "DOUBLE"}
    return odd & doubles, odd - doubles


def _cells(column: pa.Array, what: str) -> list[Any]:
    if what == "text":
        return pc.cast(column, pa.string()).to_pylist()
    if what == "kind":
        return [_kind(value) for value in column.to_pylist()]
    if pa.types.is_floating(column.type):
        return [None if _kind(value) else value for value in column.to_pylist()]
    return column.to_pylist()


def _kind(value: float | None) -> str | None:
    if value is None or value - value == 0:
        return None
    return "nan" if value != value else "pos_inf" if value > 0 else "neg_inf"


def _write_row(sheet: "Worksheet", row: int, cells: tuple, time: "Format") -> None:
    for index, value in enumerate(cells):
        if value is None:
            continue
        if isinstance(value, str):
            # As text whatever it looks like: a name that begins with = is no formula.
            sheet.write_string(row, index, value[:MAX_TEXT])
        elif isinstance(value, bool):
            sheet.write_boolean(row, index, value)
        elif isinstance(value, datetime):
            sheet.write_datetime(row, index, value, time)
        else:
            sheet.write_number(row, index, value)
