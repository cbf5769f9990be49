"""JSON lines, one row a step: verl's file logger, XTuner's tracker file, and files like them.

Two shapes: `{"step": 1, "data": {"critic/rewards/mean": 0.5}}`, and flat rows with the step as one key
(`{"time/step": 3.5, "step": 1}`). XTuner keeps two step axes in one file. A row that has mini-batch values
(`train_metrics/worker_<i>/<name>` without `step_avg_`) and no `response/rewards/mean` counts optimizer
steps: its axis is `optimizer_step`. All other rows (rollout summaries, evaluation, times) are on the
axis `step`.

Rules of values: NaN, Infinity, -Infinity, null and the quoted spellings are kept as what they are; numbers in
quotes and booleans are numbers; objects are flattened with `/`; other text and lists are no metrics and
are left out. A row that is no JSON, or has no whole-number step, is an issue.
"""

import json
import re
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from pipelines.ingest.draft import Draft, LogFile
from pipelines.ingest.redaction import outline
from pipelines.ingest.sources import Line, first_lines, read_lines, text_of
from pipelines.ingest.text_number import STEP_FAULT, from_json, plain_values, whole_step, written
from pipelines.ingest.wall_time import EARLIEST_TIME, time_of
from warehouse.contract import DEFAULT_STEP_AXIS

NAME = "jsonl"
OPTIMIZER_AXIS = "optimizer_step"
STEP_KEYS = ("step", "_step", "global_step", "train/global_step", "iteration", "iter")
TIME_KEYS = ("_timestamp", "timestamp", "wall_time")
CONTAINERS = ("data", "metrics")

_MINI_BATCH = re.compile(r"train_metrics/worker_\d+/(?!step_avg_)")
_KEY = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:\s*(?!\s*[{\[])')
_BARE = re.compile(rb"([:,\[]\s*)(-?Infinity|NaN)(?=\s*[,}\]])")
_NO_METRIC_KEYS = frozenset((*STEP_KEYS, *TIME_KEYS))


def sniff(path: Path) -> bool:
    """Tell whether one of the first lines is a JSON object with a step."""
    for line in first_lines(path):
        if line.lstrip()[:1] != b"{":
            continue
        try:
            row = _decode(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and _step_key(row) is not None:
            return True
    return False


def scan(log: LogFile) -> Iterator[Draft]:
    """Yield the points of one file in the order of writing."""
    draft = log.draft()
    layouts: dict[tuple[str, ...], tuple[array, str]] = {}

    def take(line: Line) -> None:
        if line.body and not line.body.isspace():
            _scan_line(draft, layouts, line.body, line.whole, (log.source, line.number))

    return read_lines(log, draft, take)


def _decode(body: bytes) -> Any:
    """Decode a line; orjson is fast, and knows the tokens NaN and Infinity in quotes; json knows them as they are.

    Raises:
        ValueError: If it is no JSON.
        RecursionError: If it is nested too deeply.
    """
    try:
        return orjson.loads(body)
    except ValueError:
        pass
    try:
        # Within a text the quotes would end it, and what follows would be no JSON.
        return orjson.loads(_BARE.sub(rb'\1"\2"', body))
    except ValueError:
        return json.loads(body.decode("utf-8", "strict"))


def _scan_line(
    draft: Draft,
    layouts: dict[tuple[str, ...], tuple[array, str]],
    body: bytes,
    whole: bool,
    place: tuple[str, int],
) -> None:
    try:
        row = _decode(body)
    except (ValueError, RecursionError):
        reason = "the line is no JSON" if whole else "the last line is torn: the file ends within it"
        draft.issue(place, reason, text_of(body), _keys_of(body) if whole else None)
        return
    if not isinstance(row, dict):
        draft.issue(place, "the line is no JSON object", text_of(body))
        return
    scan_row(draft, row, place, layouts)


def _keys_of(body: bytes) -> int | None:
    """Return how many metrics a damaged but whole line names; None where it is no object at all."""
    if body.lstrip()[:1] != b"{":
        return None
    return sum(1 for key in _KEY.findall(body) if key.decode("utf-8", "replace") not in _NO_METRIC_KEYS)


def scan_row(
    draft: Draft,
    row: dict[str, Any],
    place: tuple[str, int],
    layouts: dict[tuple[str, ...], tuple[array, str]] | None = None,
) -> None:
    """Add the points of one decoded row.

    Args:
        draft: Where they go.
        row: In one of the two shapes.
        place: File and line.
        layouts: Codes and axis by the keys of a row, kept from row to row; None: every value is looked at.
    """
    key = _step_key(row)
    metrics = _metrics(row)
    step = whole_step(row[key]) if key is not None else None
    if step is None:
        reason = "the row has no step" if key is None else f"the step {outline(written(row[key])[:40])!r} {STEP_FAULT}"
        draft.issue(place, reason, written(row), sum(1 for _ in _scalars(metrics)))
        return
    wall_time = _wall_time(row)
    if layouts is not None and (values := plain_values(metrics)) is not None:
        _add_plain(draft, layouts, metrics, values, step, place, wall_time)
        return
    scalars = list(_scalars(metrics))
    axis = _axis(tuple(name for name, _, _ in scalars))
    for name, value, raw in scalars:
        draft.add(name, step, value, raw, place, axis=axis, wall_time=wall_time)


def _add_plain(
    draft: Draft,
    layouts: dict[tuple[str, ...], tuple[array, str]],
    metrics: Mapping[str, Any],
    values: array,
    step: int,
    place: tuple[str, int],
    wall_time: float | None,
) -> None:
    """Add a row of numbers at once."""
    layout = tuple(metrics)
    known = layouts.get(layout)
    if known is None:
        known = (array("i", [draft.code(name) for name in layout]), _axis(layout))
        layouts[layout] = known
    draft.add_row(known[0], values, step, place, known[1], wall_time)


def _step_key(row: Mapping[str, Any]) -> str | None:
    return next((key for key in STEP_KEYS if key in row), None)


def _metrics(row: dict[str, Any]) -> dict[str, Any]:
    for container in CONTAINERS:
        if isinstance(row.get(container), dict) and "step" in row:
            return row[container]
    index = {*TIME_KEYS}
    key = _step_key(row)
    return {name: value for name, value in row.items() if name != key and name not in index}


def _wall_time(row: Mapping[str, Any]) -> float | None:
    for key in TIME_KEYS:
        if (time := time_of(row.get(key), EARLIEST_TIME)) is not None:
            return time
    return None


def _axis(names: tuple[str, ...]) -> str:
    if "response/rewards/mean" not in names and any(map(_MINI_BATCH.match, names)):
        return OPTIMIZER_AXIS
    return DEFAULT_STEP_AXIS


def _scalars(metrics: Mapping[str, Any]) -> Iterator[tuple[str, float | None, str | None]]:
    # No recursion: how deep a log nests its objects is not for Python's stack to say.
    open_objects = [("", iter(metrics.items()))]
    while open_objects:
        prefix, entries = open_objects[-1]
        key, value = next(entries, (None, None))
        if key is None:
            open_objects.pop()
        elif isinstance(value, dict):
            open_objects.append((f"{prefix}{key}/", iter(value.items())))
        elif (number := from_json(value)) is not None:
            yield f"{prefix}{key}", number.value, number.raw
