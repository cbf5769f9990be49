"""trainer_state.json of the Hugging Face trainers (TRL too): the list `log_history`.

Each checkpoint holds the whole history up to its step, so of a folder of checkpoints the one of the largest step is
read. Evaluation rows repeat the step of the training row. NaN and infinities are bare tokens. A row without a
step is an issue. There is no time in this file.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines.ingest.base import LogError
from pipelines.ingest.draft import Draft, LogFile
from pipelines.ingest.sources import first_lines, head, json_document, pieces
from pipelines.ingest.text_number import written
from pipelines.ingest.verl_jsonl import scan_row

NAME = "trainer_state"

_FILE = "trainer_state.json"
_STEP = re.compile(r'"step"\s*:')


def sniff(path: Path) -> bool:
    """Tell whether this is a trainer's state, or a folder with checkpoints."""
    return bool(files(path))


def files(path: Path) -> list[Path]:
    """Return the state with the longest history."""
    if path.is_file():
        return [path] if _is_state(path) else []
    if not path.is_dir():
        return []
    found = [p for p in (path / _FILE, *path.glob(f"checkpoint-*/{_FILE}")) if p.is_file() and _is_state(p)]
    return sorted(found, key=_steps_done)[-1:]


def scan(log: LogFile) -> Iterator[Draft]:
    """Yield the points of the history, row by row; the file is read whole.

    Raises:
        LogError: If the file is no whole JSON document.
    """
    state, text = _load(log.path)
    history: list[Any] = state["log_history"]
    draft = log.draft()
    places = _rows(text, len(history))
    for line, row in zip(places, history, strict=True):
        if isinstance(row, dict):
            scan_row(draft, dict(row), (log.source, line))
        else:
            draft.issue((log.source, line), "an entry of log_history is no object", written(row))
    maximum, done = state.get("max_steps"), state.get("global_step")
    draft.status = "finished" if isinstance(maximum, int) and maximum > 0 and done == maximum else "unknown"
    yield draft


def _is_state(path: Path) -> bool:
    if head(path, 4096).lstrip()[:1] != b"{" or _is_first_of_lines(path):
        return False
    if not any(b'"log_history"' in piece for piece in pieces(path)):
        return False
    return _loads(path)


def _is_first_of_lines(path: Path) -> bool:
    """Tell whether the first line is a JSON document of its own, with more behind it."""
    lines = first_lines(path, 3)
    if not any(line.strip() for line in lines[1:]):
        return False
    try:
        json.loads(lines[0])
    except (ValueError, RecursionError):
        return False
    return True


def _loads(path: Path) -> bool:
    try:
        _load(path)
    except LogError:
        return False
    return True


def _load(path: Path) -> tuple[dict[str, Any], str]:
    state, text = json_document(path, "take an earlier checkpoint")
    if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
        raise LogError(f"{path}: the JSON document has no list log_history")
    return state, text


def _steps_done(path: Path) -> int:
    done = _load(path)[0].get("global_step")
    return done if isinstance(done, int) else 0


def _rows(text: str, count: int) -> list[int]:
    """Return the line of each row: where its step stands, if every row has one; else its number in the list."""
    begin = text.find('"log_history"')
    starts = [match.start() for match in _STEP.finditer(text, begin)]
    if len(starts) != count:
        return list(range(1, count + 1))
    return [text.count("\n", 0, at) + 1 for at in starts]
