"""JSON of metric to step to value: Megatron's golden values and NeMo-RL's export.

Two shapes: `{"lm loss": {"start_step": 1, "step_interval": 1, "values": {"1": 10.8, "2": "nan"}}}`, where
`values` may be a list too, and `{"train/reward": {"1": 0.1}}`. The whole file is one JSON document, so a
file that is cut off can't be read at all.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.ingest.base import LogError
from pipelines.ingest.draft import Draft, LogFile
from pipelines.ingest.redaction import outline
from pipelines.ingest.sources import head, json_document
from pipelines.ingest.text_number import STEP_FAULT, from_json, whole_step, written

NAME = "metric_map"

_STEP_ENTRY = re.compile(rb'"-?\d+"\s*:|"values"\s*:')


def sniff(path: Path) -> bool:
    """Tell whether the file is one JSON object whose values map steps to values."""
    beginning = head(path)
    if beginning.lstrip()[:1] != b"{" or not _STEP_ENTRY.search(beginning):
        return False
    try:
        document = _load(path)[0]
    except (LogError, OSError):
        return False
    return any(_series(entry) for entry in document.values())


def scan(log: LogFile) -> Iterator[Draft]:
    """Yield the points of one file, metric by metric; the file is read whole.

    Raises:
        LogError: If the file is no such JSON.
    """
    document, text = _load(log.path)
    megatron = any("values" in e for e in document.values() if isinstance(e, dict))
    draft = log.draft(log_precision="text" if megatron else "float64")
    places = _lines_of_steps(text)
    for name, entry in document.items():
        for key, value in _series(entry):
            place = (log.source, next(places.get((name, str(key)), iter(())), 1))
            step, number = whole_step(key), from_json(value)
            if step is None:
                draft.issue(place, f"the step {outline(str(key)[:40])!r} of {name} {STEP_FAULT}", written(value), 1)
            elif number is None:
                draft.issue(place, f"the value of {name} at step {step} is no number", written(value), 1)
            else:
                draft.add(name, step, number.value, number.raw, place)
    yield draft


def _load(path: Path) -> tuple[dict[str, Any], str]:
    document, text = json_document(path, "write it anew")
    if not isinstance(document, dict):
        raise LogError(f"{path}: the JSON document is no object of metrics")
    return document, text


def _series(entry: Any) -> list[tuple[Any, Any]]:
    """Return steps and values of one metric; nothing where the entry is no series."""
    if not isinstance(entry, Mapping):
        return []
    values = entry.get("values", entry)
    if isinstance(values, list):
        first, every = entry.get("start_step", 0), entry.get("step_interval", 1)
        if not (isinstance(first, int) and isinstance(every, int)):
            return []
        return [(first + every * at, value) for at, value in enumerate(values)]
    if not isinstance(values, Mapping) or not any(whole_step(key) is not None for key in values):
        return []
    return list(values.items())


def _lines_of_steps(text: str) -> dict[tuple[str, str], Iterator[int]]:
    """Return the lines on which each metric's steps stand, in order."""
    found: dict[tuple[str, str], list[int]] = {}
    metric, line, at = "", 1, 0
    for match in re.finditer(r'"((?:[^"\\]|\\.)*)"\s*:\s*(\{)?', text):
        line += text.count("\n", at, match.start())
        at = match.start()
        key = json.loads(f'"{match[1]}"', strict=False)
        if match[2] and key != "values":
            metric = key
        elif not match[2]:
            found.setdefault((metric, key), []).append(line)
    return {key: iter(numbers) for key, numbers in found.items()}
