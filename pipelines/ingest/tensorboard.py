"""TensorBoard event files, decoded here: no TensorBoard package is needed.

A run is a folder: its event files are read in the order of their names, each process wrote one. Folders
below it are other runs. Scalars are `simple_value`, or the rank-0 tensors of the scalars plugin; histograms,
images, texts and the like are left out. Both checksums of every record are checked; a record that fails
is an issue, and reading goes on behind it. Values are kept in single precision by this format, so names
and steps are exact and values are not: 16,836,497 comes back as 16,836,496.
"""

import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from pipelines.ingest.base import LogError
from pipelines.ingest.draft import Draft, LogFile
from pipelines.ingest.event_columns import Scalars, decode
from pipelines.ingest.protowire import (
    BYTES,
    WireError,
    as_bytes,
    as_int,
    double,
    fields,
    float32,
    signed,
    varint,
)
from pipelines.ingest.sources import Window, head, settled, text_of, windows
from pipelines.ingest.text_number import STEP_FAULT, from_json, json_token, whole_step
from pipelines.ingest.tfrecord import HEADER_SIZE, Damage, Frames, frames, has_header

NAME = "tensorboard"

_HOST = re.compile(r"(tfevents\.\d+\.).+?(?=(?:\.\d+\.\d+(?:\.[A-Za-z]\w*)?)?$)")
_EVENT_WALL_TIME, _EVENT_STEP, _EVENT_VERSION, _EVENT_SUMMARY, _EVENT_SESSION = 1, 2, 3, 5, 7
_VALUE_TAG, _VALUE_SIMPLE, _VALUE_TENSOR, _VALUE_METADATA = 1, 2, 8, 9
_TENSOR_TYPE, _TENSOR_SHAPE, _TENSOR_CONTENT = 1, 2, 4
_FLOAT, _DOUBLE, _HALF, _BFLOAT16 = 1, 2, 19, 14
_TYPED_VALUES = {_FLOAT: 5, _DOUBLE: 6, _HALF: 13, _BFLOAT16: 13}


def sniff(path: Path) -> bool:
    """Tell whether this is an event file, or a folder with event files or one run below it."""
    return bool(files(path))


def files(path: Path) -> list[Path]:
    """Return the event files of the run, in the order of their names.

    Raises:
        LogError: If several runs lie below a folder that holds no event file itself.
    """
    if path.is_file():
        return [path] if _is_event_file(path) else []
    if not path.is_dir():
        return []
    here = sorted(p for p in path.iterdir() if p.is_file() and "tfevents" in p.name and _is_event_file(p))
    if here:
        return here
    below = sorted({p.parent for p in path.rglob("*tfevents*") if p.is_file() and _is_event_file(p)})
    if len(below) > 1:
        names = ", ".join(str(p.relative_to(path)) for p in below[:5])
        raise LogError(f"{path}: event files of several runs lie below this folder ({names}); name one of them")
    return files(below[0]) if below else []


def label(path: Path) -> str:
    """Return how an event file is named in points and issues: without the host in its name, and without its folder.

    The star in the place of the host makes a pattern that finds the file.
    """
    return _HOST.sub(r"\1*", path.name)


def scan(log: LogFile) -> Iterator[Draft]:
    """Yield the points of one file in the order of writing."""
    draft = log.draft(log_precision="float32")
    scalar_tags = {tag.encode("latin-1"): known for tag, known in log.since.state.get("tags", {}).items()}
    for window in windows(log):
        found = frames(window.data, is_last=window.is_last)
        window.used = found.settled
        for piece in found.damage:
            if piece.offset < found.settled:
                _quarantine(draft, piece, window.base, log.source)
        _scan_window(draft, window, found, log.source, scalar_tags)
        tags = {tag.decode("latin-1"): known for tag, known in scalar_tags.items()}
        yield settled(draft, window, 0, {"tags": tags})
        for piece in found.damage:
            if piece.offset >= found.settled:
                _quarantine(draft, piece, window.base, log.source)


def _quarantine(draft: Draft, piece: Damage, base: int, source: str) -> None:
    draft.issue((source, base + piece.offset), f"{piece.reason} ({piece.size} bytes left out)")


def _scan_window(draft: Draft, window: Window, found: Frames, source: str, scalar_tags: dict[bytes, bool]) -> None:
    """Add the records of a window in order: runs of plain scalars at once, others one by one."""
    data, offset, size = window.data, found.offset, found.size
    begin = offset + HEADER_SIZE
    scalars = decode(data, begin, size)
    codes = np.array([draft.code(text_of(tag)) for tag in scalars.tags], dtype=np.int32)
    done = 0
    for other in (*np.flatnonzero(~scalars.plain).tolist(), len(offset)):
        if other > done:
            _add_plain(draft, window.base + offset, scalars, slice(done, other), codes, source)
        done = other + 1
        if other == len(offset):
            return
        payload, place = data[begin[other] : begin[other] + size[other]], (source, window.base + int(offset[other]))
        try:
            _scan_event(draft, payload, place, scalar_tags)
        except (WireError, struct.error) as error:
            draft.issue(place, f"a sound record holds no readable event ({error})")


def _add_plain(
    draft: Draft, position: np.ndarray, scalars: Scalars, run: slice, codes: np.ndarray, source: str
) -> None:
    first, value = len(draft), scalars.value[run]
    name, wall_time = codes[scalars.tag[run]], scalars.wall_time[run]
    draft.add_columns(name, scalars.step[run], value, position[run], wall_time, source)
    for at in np.flatnonzero(~np.isfinite(value)).tolist():
        draft.raw[first + at] = json_token(float(value[at]))


def _is_event_file(path: Path) -> bool:
    data = head(path, 256)
    if not has_header(data):
        return False
    size = int.from_bytes(data[:8], "little")
    if size > len(data):
        return b"tfevents" in path.name.encode()
    try:
        return any(number == _EVENT_WALL_TIME for number, _, _ in fields(data[12 : 12 + size]))
    except WireError:
        return False


def _scan_event(draft: Draft, payload: bytes, place: tuple[str, int], scalar_tags: dict[bytes, bool]) -> None:
    step, wall_time, summaries = 0, None, []
    for number, _, content in fields(payload):
        if number == _EVENT_STEP:
            step = signed(as_int(content))
        elif number == _EVENT_WALL_TIME:
            wall_time = double(content)
        elif number == _EVENT_SUMMARY:
            summaries.append(as_bytes(content))
    for summary in summaries:
        for number, kind, content in fields(summary):
            if number == 1 and kind == BYTES:
                _scan_value(draft, as_bytes(content), step, wall_time, place, scalar_tags)


def _scan_value(
    draft: Draft,
    data: bytes,
    step: int,
    wall_time: float | None,
    place: tuple[str, int],
    scalar_tags: dict[bytes, bool],
) -> None:
    tag, value, tensor = b"", None, None
    for number, _, content in fields(data):
        if number == _VALUE_TAG:
            tag = as_bytes(content)
        elif number == _VALUE_SIMPLE:
            value = float32(content)
        elif number == _VALUE_TENSOR:
            tensor = as_bytes(content)
        elif number == _VALUE_METADATA and tag not in scalar_tags:
            scalar_tags[tag] = _plugin(as_bytes(content)) in (b"scalars", b"")
    if value is None and tensor is not None and scalar_tags.get(tag, False):
        value = _rank0(tensor)
    if value is not None and whole_step(step) is None:
        draft.issue(place, f"the step {step} {STEP_FAULT}", text_of(tag), 1)
    elif value is not None:
        draft.add(text_of(tag), step, value, from_json(value).raw, place, wall_time=wall_time)  # type: ignore[union-attr]


def _plugin(metadata: bytes) -> bytes:
    for number, _, content in fields(metadata):
        if number == 1:
            return next((as_bytes(c) for n, _, c in fields(as_bytes(content)) if n == 1), b"")
    return b""


def _rank0(tensor: bytes) -> float | None:
    """Return the value of a tensor of one floating number, or None for any other tensor."""
    dtype, content, typed = 0, b"", {}
    for number, _, field in fields(tensor):
        if number == _TENSOR_TYPE:
            dtype = as_int(field)
        elif number == _TENSOR_CONTENT:
            content = as_bytes(field)
        elif number == _TENSOR_SHAPE and any(n == 2 for n, _, _ in fields(as_bytes(field))):
            return None
        elif number in _TYPED_VALUES.values():
            typed[number] = field
    if dtype not in _TYPED_VALUES:
        return None
    if content:
        return _decoders[dtype](content)
    field = typed.get(_TYPED_VALUES[dtype])
    if field is None:
        return 0.0  # proto3 leaves out what is zero
    if dtype in (_HALF, _BFLOAT16):
        bits = field if isinstance(field, int) else varint(field, 0)[0]
        return _decoders[dtype](struct.pack("<H", bits))
    return _decoders[dtype](as_bytes(field))


_decoders: dict[int, Callable[[bytes], float]] = {
    _FLOAT: lambda data: struct.unpack("<f", data)[0],
    _DOUBLE: lambda data: struct.unpack("<d", data)[0],
    _HALF: lambda data: struct.unpack("<e", data)[0],
    _BFLOAT16: lambda data: struct.unpack("<f", b"\0\0" + data)[0],
}
