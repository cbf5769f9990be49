"""wandb's transaction log (`run-<id>.wandb`), decoded here, of online and offline runs alike.

A run is the log itself, or a folder that holds the logs of one run id: each session of a resumed run wrote a
folder of its own, read in the order of their names, which begin with the time. Values are exact doubles.
Histograms and other media are left out, and so are `_step`, `_runtime` and `_timestamp`, which are no metrics.

The step axis is `_step`, wandb's own, unless metrics were declared to go by another (`define_metric` with
`step_metric`): those are on the axis of that metric's value. Axes of known frameworks get the names that the other
readers use (`rollout/step` and `train/global_step` are `step`, `train/step` is `optimizer_step`, `eval/step` is
`eval_step`); what still goes by `_step` beside such a `step` is on the axis `_step`. A log without an exit record
was killed or is still being written: its status is unknown.
"""

import fnmatch
from array import array
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from pipelines.ingest import metadata
from pipelines.ingest.base import LogError
from pipelines.ingest.draft import Draft, LogFile
from pipelines.ingest.leveldb_log import record_at
from pipelines.ingest.protowire import as_bytes, as_int, fields, signed
from pipelines.ingest.record_log import read_records
from pipelines.ingest.sources import head
from pipelines.ingest.text_number import STEP_FAULT, from_json, from_text, plain_values, whole_step
from pipelines.ingest.wall_time import time_of
from warehouse.contract import DEFAULT_STEP_AXIS

NAME = "wandb"

LOG_AXIS = "_step"
AXES = {
    "global_step": DEFAULT_STEP_AXIS,
    "train/global_step": DEFAULT_STEP_AXIS,
    "trainer/global_step": DEFAULT_STEP_AXIS,
    "rollout/step": DEFAULT_STEP_AXIS,
    "train/step": "optimizer_step",
    "eval/step": "eval_step",
}
"""Axes of known frameworks under the names that the other readers give them, so that runs can be paired."""

_SIGNATURE = b":W&B\xe1\xbe\x00"
_HISTORY, _CONFIG, _METRIC, _RUN, _EXIT, _ENVIRONMENT = 2, 5, 12, 17, 18, 26
_NO_METRICS = ("_step", "_runtime", "_timestamp")


def sniff(path: Path) -> bool:
    """Tell whether this is a transaction log, or a folder with some."""
    return bool(_logs(path))


def files(path: Path) -> list[Path]:
    """Return the logs of the run, oldest first.

    Raises:
        LogError: If the folder holds logs of several runs.
    """
    found = _logs(path)
    names = {file.name for file in found}
    if len(names) > 1:
        some = ", ".join(sorted(names)[:5])
        raise LogError(f"{path}: the folder holds the wandb logs of several runs ({some}); name one")
    return found


@dataclass
class _Known:
    """What the records before tell of those that follow.

    Attributes:
        steps_by: The step metric by name or pattern, as `define_metric` says.
        config: The configuration so far.
        config_at: Where its records begin. They may hold anything, so this is stored in their stead.
        environment: Facts of the environment record, by allow-list.
    """

    steps_by: dict[str, str] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    config_at: list[int] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    def state(self) -> dict[str, Any]:
        """Return what must be stored to go on."""
        return {
            "steps_by": dict(self.steps_by),
            "config_at": list(self.config_at),
            "environment": dict(self.environment),
        }


def scan(log: LogFile) -> Iterator[Draft]:
    """Yield the points of one log in the order of writing."""
    draft, known = log.draft(), _Known(**deepcopy(dict(log.since.state)))
    for offset in known.config_at:
        for payload in _configurations(record_at(log.path, offset)):
            _scan_config(payload, known.config)

    def take(payload: bytes, place: tuple[str, int]) -> None:
        _scan_record(draft, payload, place, known)

    yield from read_records(log, draft, take, known.state)
    draft.metadata.update(metadata.from_folder(log.path.parent / "files"))


def _logs(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if head(path, 7) == _SIGNATURE else []
    if not path.is_dir():
        return []
    found = (p for p in path.rglob("*.wandb") if p.is_file() and not _through_link(p, path))
    return sorted(p for p in found if head(p, 7) == _SIGNATURE)


def _through_link(file: Path, folder: Path) -> bool:
    return any(p.is_symlink() for p in (file, *file.parents) if p != folder and folder in p.parents)


def _scan_record(draft: Draft, payload: bytes, place: tuple[str, int], known: _Known) -> None:
    for number, _, content in fields(payload):
        if number == _HISTORY:
            _scan_history(draft, as_bytes(content), place, known.steps_by)
        elif number == _METRIC:
            _scan_definition(as_bytes(content), known.steps_by)
        elif number == _EXIT:
            codes = [signed(as_int(c)) for n, _, c in fields(as_bytes(content)) if n == 1]
            draft.status = "crashed" if any(codes) else "finished"
        elif number == _ENVIRONMENT:
            known.environment.update(metadata.from_wandb_environment(as_bytes(content)))
            draft.metadata = {**known.environment, **draft.metadata}
        elif number in (_RUN, _CONFIG):
            known.config_at.append(place[1])
            for part in _configurations(payload):
                _scan_config(part, known.config)
            draft.metadata.update(metadata.from_config(known.config))


def _configurations(payload: bytes) -> Iterator[bytes]:
    """Yield the configurations that a record holds."""
    for number, _, content in fields(payload):
        if number == _CONFIG:
            yield as_bytes(content)
        elif number == _RUN:
            yield from (as_bytes(value) for inner, _, value in fields(as_bytes(content)) if inner == 4)


def _items(data: bytes, wanted: int = 1) -> dict[str, bytes]:
    """Return the JSON text by key of a record of items; nested keys are joined with a dot."""
    out: dict[str, bytes] = {}
    for number, _, content in fields(data):
        if number != wanted:
            continue
        keys, text = [], b""
        for inner, _, value in fields(as_bytes(content)):
            if inner in (1, 2):
                keys.append(as_bytes(value).decode())
            elif inner == 16:
                text = as_bytes(value)
        out[".".join(keys)] = text
    return out


def _plain_items(data: bytes) -> tuple[list[str], list[bytes]] | None:
    """Return keys and JSON texts of a history record whose items all have one short key, else None; the fast way.

    An item is then: 0a, its length, 12, the key's length, the key, 82 01, the text's length, the text.
    """
    keys, texts = [], []
    at, end = 0, len(data)
    while at + 1 < end and data[at] == 0x0A:
        stop = at + 2 + data[at + 1]
        if data[at + 1] > 0x7F or stop > end or stop < at + 8 or data[at + 2] != 0x12:
            return None
        middle = at + 4 + data[at + 3]
        if data[middle : middle + 2] != b"\x82\x01" or middle + 3 + data[middle + 2] != stop:
            return None
        keys.append(data[at + 4 : middle].decode())
        texts.append(data[middle + 3 : stop])
        at = stop
    return (keys, texts) if at == end or data[at] == 0x12 else None


def _row(data: bytes) -> dict[str, Any]:
    """Return the values by key of a history record."""
    plain = _plain_items(data)
    if plain is not None:
        try:
            values = orjson.loads(b"[" + b",".join(plain[1]) + b"]")
            if len(values) == len(plain[0]):
                return dict(zip(plain[0], values, strict=True))
        except ValueError:
            pass  # a NaN or an infinity: value by value
    return {name: _value(text) for name, text in _items(data).items()}


def _value(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        number = from_text(text.decode("utf-8", "replace"))
        return number.value if number is not None else text.decode("utf-8", "replace")


def _scan_definition(data: bytes, steps_by: dict[str, str]) -> None:
    found = {number: content for number, _, content in fields(data)}
    pattern, step_metric = found.get(1) or found.get(2), found.get(4)
    if pattern and step_metric:
        steps_by[as_bytes(pattern).decode()] = as_bytes(step_metric).decode()


def _scan_config(data: bytes, config: dict[str, Any]) -> None:
    for key, text in _items(data).items():
        config[key] = _value(text)


def _step_metric(name: str, steps_by: Mapping[str, str]) -> str | None:
    if not steps_by:
        return None
    exact = steps_by.get(name)
    if exact is not None:
        return exact
    return next((step for pattern, step in steps_by.items() if fnmatch.fnmatchcase(name, pattern)), None)


def _scan_history(draft: Draft, data: bytes, place: tuple[str, int], steps_by: Mapping[str, str]) -> None:
    row = _row(data)
    step = whole_step(row.get("_step"))
    if step is None:
        found = (signed(as_int(c)) for n, _, v in fields(data) if n == 2 for _, _, c in fields(as_bytes(v)))
        step = whole_step(next(found, None))
    if step is None:
        draft.issue(place, f"a history record has no step, or it {STEP_FAULT}", "", len(row))
        return
    wall_time = time_of(row.get("_timestamp"))
    if not steps_by and (values := plain_values(row, _NO_METRICS)) is not None:
        codes = array("i", [draft.code(name) for name in row if name not in _NO_METRICS])
        draft.add_row(codes, values, step, place, DEFAULT_STEP_AXIS, wall_time)
        return
    for name, value in row.items():
        if name in _NO_METRICS:
            continue
        number = from_json(value)
        if number is None or isinstance(value, dict | list):
            continue
        axis, at = _place_on_axis(name, step, row, steps_by)
        draft.add(name, at, number.value, number.raw, place, axis=axis, wall_time=wall_time)


def _place_on_axis(name: str, step: int, row: Mapping[str, Any], steps_by: Mapping[str, str]) -> tuple[str, int]:
    """Return the axis of a metric and its place there."""
    own = _step_metric(name, steps_by)
    at = whole_step(row.get(own)) if own and own != "_step" and own != name else None
    if own is not None and at is not None:
        return AXES.get(own, own), at
    taken = any(AXES.get(axis) == DEFAULT_STEP_AXIS for axis in steps_by.values())
    return (LOG_AXIS if taken else DEFAULT_STEP_AXIS), step
