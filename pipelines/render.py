"""Tables of a query for people and for programs: text, CSV, JSON, Parquet."""

import io
import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from rich.console import Console

from pipelines.tables import UNBOUNDED, number_text, print_shortened, print_table
from pipelines.terminal import Terminal
from warehouse.wording import counted

_READ_AS_RECORDS = 20
# Control characters that JSON lets stand, and halves of characters, which no file can hold.
_UNSEEN_IN_JSON = re.compile("[\x7f-\x9f\ud800-\udfff]")
FORMATS = ("table", "csv", "json", "parquet")


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
    """Return data as JSON text that every strict parser takes, and no terminal as commands."""
    text = json.dumps(json_ready(data), ensure_ascii=False, indent=1, default=str)
    return _UNSEEN_IN_JSON.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def distinct_names(names: list[str]) -> list[str]:
    """Return the names of columns, with a number after each that was there before, as DuckDB does it: a, a_1."""
    found: list[str] = []
    seen: set[str] = set()
    for name in names:
        new = name
        number = 0
        while new.lower() in seen:
            number += 1
            new = f"{name}_{number}"
        seen.add(new.lower())
        found.append(new)
    return found


def _readable(table: pa.Table) -> pa.Table:
    """Turn the columns with times that Python has none for, infinity or the year 10000, into text."""
    for index, field in enumerate(table.schema):
        if not re.search(r"date|timestamp", str(field.type)):
            continue
        try:
            table.column(index).to_pylist()
        except (OverflowError, ValueError):
            con = duckdb.connect()
            con.execute("set timezone = 'UTC'")
            texts = con.from_arrow(pa.table({"v": table.column(index)})).project("v::varchar as v").to_arrow_table()
            con.close()
            table = table.set_column(index, field.name, texts.column(0))
    return table


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
    table = table.rename_columns(distinct_names(table.column_names))
    if form == "parquet":
        if output is None:
            raise ValueError("Parquet is no text: name a file with --output.")
        sink = pa.BufferOutputStream()
        with _whole_types(form):
            pq.write_table(table, sink)
        output.write_bytes(sink.getvalue().to_pybytes())
        return
    table = _readable(table)
    if form == "table" and output is None:
        _print_arrow(table, console)
        console.print(f"{counted(table.num_rows, 'row')}", style="dim")
        return
    text = _text(table, form)
    if output is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        output.write_text(text, encoding="utf-8")


def _text(table: pa.Table, form: str) -> str:
    if form == "json":
        return to_json(table.to_pylist()) + "\n"
    if form == "csv":
        sink = pa.BufferOutputStream()
        with _whole_types(form):
            pa_csv.write_csv(_flat(table), sink)
        return sink.getvalue().to_pybytes().decode()
    written = io.StringIO()
    _print_arrow(table, Terminal(file=written, width=UNBOUNDED))
    return written.getvalue()


def _print_arrow(table: pa.Table, console: Console) -> None:
    values = [table.column(index).to_pylist() for index in range(table.num_columns)]
    rows = list(zip(*values, strict=True))
    # A record a row is for reading: a long answer keeps its rows below each other instead.
    show = print_shortened if len(rows) > _READ_AS_RECORDS else print_table
    show(table.column_names, rows, console)


@contextmanager
def _whole_types(form: str) -> Iterator[None]:
    try:
        yield
    except pa.ArrowNotImplementedError as error:
        raise ValueError(
            f"{form} has no such column ({error}); turn it into text in the query: name::varchar."
        ) from error


def _flat(table: pa.Table) -> pa.Table:
    """Turn the nested columns of a table into text, since CSV has none."""
    for index, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            texts = [number_text(value) for value in table.column(index).to_pylist()]
            table = table.set_column(index, field.name, pa.array(texts, pa.string()))
    return table
