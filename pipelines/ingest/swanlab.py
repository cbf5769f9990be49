"""SwanLab's local log (`run-<id>.swanlab`, version 0.10), decoded here.

A run is the log itself, or a folder with the logs of the sessions of one experiment, read in the order of
their start: SwanLab gives a resumed run a new id. Values are exact doubles,
non-finite ones too. Hardware comes from `files/swanlab-metadata.json` beside the log, by allow-list.
"""

from collections.abc import Iterator
from pathlib import Path

from pipelines.ingest import metadata
from pipelines.ingest.base import LogError
from pipelines.ingest.draft import Draft, LogFile
from pipelines.ingest.leveldb_log import FILE_HEADER, records
from pipelines.ingest.protowire import WireError, as_bytes, as_int, double, fields, signed
from pipelines.ingest.record_log import read_records
from pipelines.ingest.sources import head
from pipelines.ingest.text_number import STEP_FAULT, from_json, whole_step

NAME = "swanlab"

_SIGNATURE = b":SWL\xd6\xe1\x02"
_START, _FINISH, _SCALAR = 10, 11, 13
_STATES = {0: "running", 1: "finished", 2: "crashed", 3: "crashed"}


def sniff(path: Path) -> bool:
    """Tell whether this is a log of SwanLab, or a folder with some."""
    return bool(files(path))


def files(path: Path) -> list[Path]:
    """Return the logs of the run, oldest first.

    Raises:
        LogError: If the folder holds logs of several experiments.
    """
    if path.is_file():
        return [path] if head(path, 7) == _SIGNATURE else []
    if not path.is_dir():
        return []
    found = [p for p in sorted(path.rglob("*.swanlab")) if p.is_file() and head(p, 7) == _SIGNATURE]
    starts = {p: _start(p) for p in found}
    names = {name for name, _ in starts.values()}
    if len(names) > 1:
        some = ", ".join(sorted(names)[:5])
        raise LogError(f"{path}: the folder holds SwanLab logs of several experiments ({some}); name one")
    return sorted(found, key=lambda p: starts[p][1])


def scan(log: LogFile) -> Iterator[Draft]:
    """Yield the points of one log in the order of writing."""
    draft = log.draft()
    yield from read_records(log, draft, lambda payload, place: _scan_record(draft, payload, place))
    draft.metadata.update(metadata.from_folder(log.path.parent / "files"))


def _start(path: Path) -> tuple[str, float]:
    """Return the name of the experiment that a log says it belongs to, and when the session began."""
    try:
        for record in records(head(path, 1 << 20)[FILE_HEADER:]).records:
            for number, _, content in fields(record.payload or b""):
                if number == _START:
                    start = {n: c for n, _, c in fields(as_bytes(content))}
                    name = as_bytes(start.get(4) or start.get(10) or b"").decode("utf-8", "replace")
                    return name, _seconds(as_bytes(start.get(12) or b""))
    except WireError:
        pass
    return path.stem, 0.0


def _scan_record(draft: Draft, payload: bytes, place: tuple[str, int]) -> None:
    for number, _, content in fields(payload):
        if number == _SCALAR:
            _scan_scalar(draft, as_bytes(content), place)
        elif number == _FINISH:
            state = next((as_int(c) for n, _, c in fields(as_bytes(content)) if n == 1), 0)
            draft.status = _STATES.get(state, "unknown")


def _scan_scalar(draft: Draft, data: bytes, place: tuple[str, int]) -> None:
    name, step, wall_time, value = "", 0, None, 0.0
    for number, _, content in fields(data):
        if number == 1:
            name = as_bytes(content).decode()
        elif number == 2:
            step = signed(as_int(content))
        elif number == 4:
            wall_time = _seconds(as_bytes(content))
        elif number == 5:
            value = next((double(c) for n, _, c in fields(as_bytes(content)) if n == 1), 0.0)
    number_of = from_json(value)
    assert number_of is not None, "a double is a number"
    if whole_step(step) is None:
        draft.issue(place, f"the step {step} {STEP_FAULT}", name, 1)
        return
    draft.add(name, step, value, number_of.raw, place, wall_time=wall_time)


def _seconds(timestamp: bytes) -> float:
    parts = {number: as_int(content) for number, _, content in fields(timestamp)}
    return signed(parts.get(1, 0)) + parts.get(2, 0) * 1e-9
