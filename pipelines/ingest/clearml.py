"""ClearML's offline sessions (`offline-<id>/metrics.jsonl`, or the .zip that ClearML makes of it): a lossy source.

Each line is a list of events. Title and series are joined with `/`, as they were before ClearML split them; equal
ones are one name. ClearML writes NaN and infinities as 0.0, so an exact zero can't be trusted: it is kept with the
kind `rewritten_suspect`, a true zero included. Only the metrics are read: the task file holds the whole code
difference and all parameters.
"""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from pipelines.ingest import metadata
from pipelines.ingest.base import LogError
from pipelines.ingest.draft import Draft, LogFile
from pipelines.ingest.sources import Line, first_lines, head, log_in_archive, read_lines
from pipelines.ingest.text_number import from_json, whole_step, written
from pipelines.ingest.wall_time import time_of

NAME = "clearml"

_FILE, _TASK = "metrics.jsonl", "task.json"
_EVENT = "training_stats_scalar"


def sniff(path: Path) -> bool:
    """Tell whether this is the metrics file of an offline session, or a folder with one."""
    return bool(_found(path))


def files(path: Path) -> list[Path]:
    """Return the metrics file.

    Raises:
        LogError: If the folder holds several sessions.
    """
    found = _found(path)
    if len(found) > 1:
        some = ", ".join(file.parent.name for file in found[:5])
        raise LogError(f"{path}: the folder holds several sessions of ClearML ({some}); name one")
    return found


def scan(log: LogFile) -> Iterator[Draft]:
    """Yield the points of one metrics file in the order of writing."""
    draft = log.draft()
    draft.metadata.update(_parameters(log.path))

    def take(line: Line) -> None:
        place = (log.source, line.number)
        if not line.body.strip():
            return
        try:
            events = orjson.loads(line.body)
        except ValueError:
            draft.issue(place, "the line is no JSON" if line.whole else "the file ends within this line")
            return
        for event in events if isinstance(events, list) else [events]:
            _scan_event(draft, event, place)

    return read_lines(log, draft, take)


def _found(path: Path) -> list[Path]:
    if path.is_file():
        is_list = head(path, 4096).lstrip()[:1] == b"["
        return [path] if is_list and any(_EVENT.encode() in line for line in first_lines(path)) else []
    if not path.is_dir():
        return []
    here = [path / _FILE] if (path / _FILE).is_file() else sorted(path.glob(f"*/{_FILE}"))
    folders = {file.parent.name for file in here}
    packed = [file for file in sorted(path.glob("*.zip")) if file.stem not in folders]
    return [file for file in (*here, *packed) if _found(file)]


def _scan_event(draft: Draft, event: Any, place: tuple[str, int]) -> None:
    if not isinstance(event, dict):
        draft.issue(place, "an event is no object", written(event))
        return
    if event.get("type") != _EVENT:
        return
    step, number = whole_step(event.get("iter")), from_json(event.get("value"))
    title, series = str(event.get("metric", "")), str(event.get("variant", ""))
    name = title if series in ("", title) else f"{title}/{series}"
    if step is None or number is None or not name:
        draft.issue(place, "an event has no name, no whole step or no number", written(event), 1)
        return
    wall_time = time_of(event.get("timestamp"))  # milliseconds
    kind = "rewritten_suspect" if number.value == 0.0 else None
    draft.add(name, step, number.value, number.raw, place, wall_time=wall_time, kind=kind)


def _parameters(metrics: Path) -> dict[str, Any]:
    """Return the allowed ones of the parameters that lie beside the metrics."""
    try:
        content = json.loads(_task(metrics).decode("utf-8", "replace"))
        sections = content["hyperparams"].values()
        config = {name: entry.get("value") for section in sections for name, entry in section.items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError, zipfile.BadZipFile):
        return {}
    return dict(metadata.from_config(config))


def _task(metrics: Path) -> bytes:
    name = log_in_archive(metrics)
    if not name:
        return (metrics.parent / _TASK).read_bytes()
    with zipfile.ZipFile(metrics) as archive:
        return archive.read(Path(name).with_name(_TASK).as_posix())
