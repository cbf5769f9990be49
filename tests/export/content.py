"""What a table holds, in a form that can be compared between DuckDB and whatever it was exported to."""

import json
import math
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb


def published_rows(path: Path) -> dict[str, list[dict]]:
    """Return the rows of every published table."""
    con = duckdb.connect(path, read_only=True)
    try:
        names = [name for (name,) in con.execute("select table_name from duckdb_tables()").fetchall()]
        return {name: con.sql(f"select * from {name}").to_arrow_table().to_pylist() for name in names}
    finally:
        con.close()


def summary(rows: Iterable[dict]) -> dict[str, Any]:
    """Return the number of rows, and for each column its kinds of values with the exact sum of each kind."""
    columns: dict[str, dict[str, list]] = {}
    count = 0
    for row in rows:
        count += 1
        for name, value in row.items():
            kind, number = _measure(value)
            columns.setdefault(name, {}).setdefault(kind, []).append(number)
    kinds = {
        name: {kind: (len(numbers), math.fsum(numbers)) for kind, numbers in found.items()}
        for name, found in columns.items()
    }
    return {"rows": count, "columns": kinds}


def _measure(value: Any) -> tuple[str, float]:
    if value is None:
        return "null", 0
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value), 0
    if isinstance(value, int | float | Decimal):
        # Halves, since a whole 64-bit number has no exact float, but the sum of both has.
        return "number", float(value) if isinstance(value, float) else float(int(value) % 2**32)
    if isinstance(value, datetime):
        return "time", round((value.replace(tzinfo=None) - datetime(2000, 1, 1)).total_seconds())
    if isinstance(value, date):
        return "time", value.toordinal()
    if isinstance(value, list | dict):
        value = json.dumps(value, sort_keys=True)
    return "text", sum(value.encode())


def assert_equal(found: dict[str, list[dict]], expected: dict[str, list[dict]]) -> None:
    """Compare row counts, kinds of values and sums of every column of every table."""
    assert found.keys() == expected.keys()
    for table, rows in expected.items():
        assert summary(found[table]) == summary(rows), table
