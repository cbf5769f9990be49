"""Tables of a query for people and for programs: text, CSV, JSON, Parquet."""

import json
import math
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from warehouse.wording import counted

FORMATS = ("table", "csv", "json", "parquet")


def number_text(value: Any) -> str:
    """Return a cell as a person wants to read it: six significant digits, nothing for null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(number_text(item) for item in value)
    return str(value)


def json_ready(value: Any) -> Any:
    """Return a cell as JSON can hold it: non-finite numbers become the strings NaN, Infinity, -Infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    if isinstance(value, dict):
        return {key: json_ready(item) for key, item in value.items()}
    return value


def to_json(data: Any) -> str:
    """Return data as JSON text that every strict parser takes."""
    return json.dumps(json_ready(data), ensure_ascii=False, indent=1, default=str)


def rich_table(table: pa.Table, title: str | None = None) -> Table:
    """Return an Arrow table as a table for the terminal."""
    shown = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for field in table.schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        shown.add_column(field.name, justify="right" if is_number else "left", overflow="fold")
    for row in table.to_pylist():
        shown.add_row(*[number_text(value) for value in row.values()])
    return shown


def write_result(table: pa.Table, form: str, output: Path | None, console: Console) -> None:
    """Write the result of a query.

    Args:
        table: The result.
        form: One of `FORMATS`; parquet needs an output file.
        output: The file; None for standard output.
        console: Where a table is printed.

    Raises:
        ValueError: If the form can't be written to standard output.
    """
    if form == "parquet":
        if output is None:
            raise ValueError("Parquet is no text: name a file with --output.")
        pq.write_table(table, output)
        return
    if form == "table" and output is None:
        console.print(rich_table(table))
        console.print(f"{counted(table.num_rows, 'row')}", style="dim")
        return
    text = _text(table, form, console)
    if output is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        output.write_text(text, encoding="utf-8")


def _text(table: pa.Table, form: str, console: Console) -> str:
    if form == "json":
        return to_json(table.to_pylist()) + "\n"
    if form == "csv":
        sink = pa.BufferOutputStream()
        pa_csv.write_csv(_flat(table), sink)
        return sink.getvalue().to_pybytes().decode()
    with console.capture() as captured:
        console.print(rich_table(table))
    return captured.get()


def _flat(table: pa.Table) -> pa.Table:
    """Turn the nested columns of a table into text, since CSV has none."""
    for index, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            texts = [number_text(value) for value in table.column(index).to_pylist()]
            table = table.set_column(index, field.name, pa.array(texts, pa.string()))
    return table
