"""Tables: CSV, text with tabs or spaces, Parquet; wide or long, with a header or without.

Wide: one column is the step (`step`, `iteration`, ...), every other numeric column a metric. Long: one row a
point, with the columns metric, step and value, and `axis`, `wall_time` and `run` where there are any.
Without a header the first column is the step; two columns without commas are `step loss`, others are named
column_2, column_3, ... or as the manifest's `columns` says. An empty cell was not logged. Lines that begin
with `#` are comments. The last value of a file that ends without a line break is quarantined: nobody can tell
whether its digits are all there.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.ingest.base import LogError
from pipelines.ingest.draft import SLICE_POINTS, Draft, LogFile
from pipelines.ingest.redaction import outline
from pipelines.ingest.sources import Line, first_lines, head, lines_before, looks_like_text, read_lines, text_of
from pipelines.ingest.text_number import STEP_FAULT, from_json, from_text, whole_step
from pipelines.ingest.wall_time import EARLIEST_TIME, time_of
from warehouse.contract import DEFAULT_STEP_AXIS

NAME = "table"

STEP_NAMES = (
    "step",
    "_step",
    "global_step",
    "train/global_step",
    "iteration",
    "iter",
    "train_step",
    "rollout_step",
)
METRIC_NAMES = ("metric", "metric_name", "name", "tag", "key")
TIME_NAMES = ("wall_time", "wall time", "timestamp", "_timestamp")
AXIS_NAMES = ("axis", "step_axis")
RUN_NAMES = ("run", "run_name", "run_id")
VALUE_NAMES = ("value",)
_PARQUET_MAGIC = b"PAR1"
_SNIFF_ROWS = 20


@dataclass(frozen=True)
class Layout:
    """Where things stand in the rows of a table.

    Attributes:
        names: All columns.
        step: Index of the step.
        metrics: Index and name of each metric column; for a long table the value column alone.
        metric: Index of the column that names the metric; None in a wide table.
        time, axis, run: Indexes of the columns of that meaning, if any.
    """

    names: tuple[str, ...]
    step: int
    metrics: tuple[tuple[int, str], ...]
    metric: int | None = None
    time: int | None = None
    axis: int | None = None
    run: int | None = None


def sniff(path: Path) -> bool:
    """Tell whether the file is Parquet, or text whose first rows are a table of numbers."""
    if not path.is_file():
        return False
    beginning = head(path, 4096)
    if beginning[:4] == _PARQUET_MAGIC:
        return True
    if not looks_like_text(beginning):
        return False
    rows = [text_of(row) for row in first_lines(path, _SNIFF_ROWS + 1)]
    rows = [row.rstrip("\r") for row in rows if row.strip() and not row.startswith("#")]
    if not rows:
        return False
    separator = _separator(rows[0])
    try:
        cells = [_split(row, separator) for row in rows[:_SNIFF_ROWS]]
    except csv.Error:
        return False
    if len(cells[0]) < 2:
        return False
    if _is_header(cells[0]):
        try:
            layout = _layout(cells[0], path)
        except LogError:
            return False
        return all(len(row) <= layout.step or whole_step(row[layout.step]) is not None for row in cells[1:2])
    same = [row for row in cells[:-1] or cells if len(row) == len(cells[0])]
    return 2 * len(same) >= len(cells) and whole_step(cells[0][0]) is not None


def scan(log: LogFile) -> Iterator[Draft]:
    """Yield the points of one table, row by row; Parquet is read whole.

    Raises:
        LogError: If no column is a step, or the table holds several runs.
    """
    return _scan_parquet(log) if head(log.path, 4) == _PARQUET_MAGIC else _scan_text(log)


def _separator(row: str) -> str | None:
    """Return the character between cells; None for runs of white space."""
    return next((mark for mark in ",\t;" if mark in row), None)


def _split(row: str, separator: str | None) -> list[str]:
    if separator is None:
        return row.split()
    return [cell.strip() for cell in next(csv.reader([row], delimiter=separator), [])]


def _is_header(cells: Sequence[str]) -> bool:
    return any(cell and from_text(cell) is None for cell in cells)


def _layout(names: Sequence[str], path: Path) -> Layout:
    lower = [name.strip().lower() for name in names]

    def place(wanted: Sequence[str]) -> int | None:
        return next((lower.index(name) for name in wanted if name in lower), None)

    step, metric, value = place(STEP_NAMES), place(METRIC_NAMES), place(VALUE_NAMES)
    time, axis, run = place(TIME_NAMES), place(AXIS_NAMES), place(RUN_NAMES)
    if step is None:
        raise LogError(f"{path}: no column is a step (one of {', '.join(STEP_NAMES)}); columns are {', '.join(names)}")
    if metric is not None and value is not None:
        return Layout(tuple(names), step, ((value, names[value]),), metric, time, axis, run)
    index = {step, time, run}
    metrics = tuple((at, name.strip()) for at, name in enumerate(names) if at not in index and name.strip())
    return Layout(tuple(names), step, metrics, None, time, None, run)


def _default_columns(count: int, separator: str | None) -> list[str]:
    if count == 2 and separator is None:
        return ["step", "loss"]
    return ["step", *(f"column_{at}" for at in range(2, count + 1))]


@dataclass
class _TextTable:
    """What the first rows of a text table tell of the others."""

    path: Path
    columns: Sequence[str] | None
    layout: Layout | None = None
    separator: str | None = None
    runs: set[str] = field(default_factory=set)

    def take(self, draft: Draft, line: Line, source: str) -> None:
        """Add the points of a line."""
        row = text_of(line.body)
        if not row.strip() or row.startswith("#"):
            return
        if self.layout is None:
            row = row.removeprefix("\ufeff")
            self.separator = _separator(row)
        cells = _cells(draft, row, self.separator, (source, line.number))
        if self.layout is None:
            header = _is_header(cells) and self.columns is None
            names = cells if header else self.columns or _default_columns(len(cells), self.separator)
            self.layout = _layout(names, self.path)
            if header:
                return
        _check_row(draft, self.layout, cells, line, source, self.runs)


def _scan_text(log: LogFile) -> Iterator[Draft]:
    draft = log.draft(log_precision="text")
    table = _TextTable(log.path, log.columns)
    beginning = Draft()
    for number, body in enumerate(lines_before(log), 1):
        table.take(beginning, Line(number, body, True), log.source)
        if len(beginning):
            break  # header and run are known
    yield from read_lines(log, draft, lambda line: table.take(draft, line, log.source))
    _one_run(log.path, table.runs)


def _cells(draft: Draft, row: str, separator: str | None, place: tuple[str, int]) -> list[str]:
    try:
        return _split(row, separator)
    except csv.Error as error:
        draft.issue(place, f"the row is no CSV ({error})", row)
        return []


def _check_row(draft: Draft, layout: Layout, cells: list[str], line: Line, source: str, runs: set[str]) -> None:
    place = (source, line.number)
    if len(cells) > len(layout.names) or (len(cells) < len(layout.names) and line.whole):
        reason = f"the row has {len(cells)} cells, the table has {len(layout.names)} columns"
        draft.issue(place, reason, text_of(line.body), len(layout.metrics))
        return
    if not line.whole:
        lost = len(layout.metrics) - sum(at < len(cells) - 1 for at, _ in layout.metrics)
        draft.issue(place, "the file ends within this row: its last value may be cut off", text_of(line.body), lost)
        cells = [*cells[:-1], *[""] * (len(layout.names) - len(cells) + 1)]
    _add_row(draft, layout, cells, place, runs)


def _add_row(draft: Draft, layout: Layout, cells: Sequence[Any], place: tuple[str, int], runs: set[str]) -> None:
    values = [(at, name) for at, name in layout.metrics if cells[at] is not None and cells[at] != ""]
    step = whole_step(cells[layout.step])
    if step is None:
        if values:
            draft.issue(place, f"the step {outline(str(cells[layout.step])[:40])!r} {STEP_FAULT}", "", len(values))
        return
    if layout.run is not None and cells[layout.run] is not None:
        runs.add(str(cells[layout.run]))
    axis = DEFAULT_STEP_AXIS if layout.axis is None else str(cells[layout.axis] or DEFAULT_STEP_AXIS)
    wall_time = None if layout.time is None else time_of(cells[layout.time], EARLIEST_TIME)
    for at, column in values:
        name = column if layout.metric is None else str(cells[layout.metric] or "")
        number = from_json(cells[at])
        if number is None or not name:
            reason = f"the value of {name} is no number" if name else "the row names no metric"
            draft.issue(place, reason, str(cells[at]), 1)
            continue
        draft.add(name, step, number.value, number.raw, place, axis=axis, wall_time=wall_time)


def _one_run(path: Path, runs: set[str]) -> None:
    if len(runs) > 1:
        some = ", ".join(sorted(runs)[:5])
        raise LogError(f"{path}: the table holds {len(runs)} runs ({some}); write one file for each run")


def _scan_parquet(log: LogFile) -> Iterator[Draft]:
    path = log.path
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise LogError(f"{path}: the Parquet file can't be read ({error}); write it anew") from None
    kept = [field for field in file.schema_arrow if _is_plain(field.type)]
    layout = _layout([column.name for column in kept], path)
    if layout.metric is None:
        numeric = tuple((at, name) for at, name in layout.metrics if not _is_text(kept[at].type))
        layout = Layout(layout.names, layout.step, numeric, None, layout.time, None, layout.run)
    single = [pa.types.is_float32(kept[at].type) or pa.types.is_float16(kept[at].type) for at, _ in layout.metrics]
    draft = log.draft(log_precision="float32" if single and all(single) else "float64")
    runs: set[str] = set()
    for number, row in enumerate(_rows(file, [column.name for column in kept]), 1):
        _add_row(draft, layout, row, (log.source, number), runs)
        if len(draft) >= SLICE_POINTS:
            yield draft
    _one_run(path, runs)
    yield draft


def _rows(file: pq.ParquetFile, names: list[str]) -> Iterator[tuple[Any, ...]]:
    for batch in file.iter_batches(columns=names):
        columns = [batch.column(name).to_pylist() for name in names]
        yield from zip(*columns, strict=True)


def _is_plain(kind: pa.DataType) -> bool:
    return (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or _is_text(kind)
        or pa.types.is_null(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
