"""Console logs of the Hugging Face trainers (TRL): a printed dictionary on a line of its own.

The line tells no step. Where a progress bar (`12/500 [00:31<...`) precedes every line of training metrics and goes
up, its count is the step. Otherwise the lines are counted, from 1, on the axis `log_row`, which can't be
mixed up with steps. Newer versions print four significant digits in quotes, older ones what Python prints.
"""

import re
from itertools import pairwise
from pathlib import Path

from pipelines.ingest.base import RunLog
from pipelines.ingest.console import find_in_text, plain_text
from pipelines.ingest.points import Draft, assemble
from pipelines.ingest.slime import add_items
from pipelines.ingest.sources import lines
from warehouse.contract import DEFAULT_STEP_AXIS

NAME = "trl_console"
ROW_AXIS = "log_row"

_START = re.compile(rb"(?:^|[\r\s])(\{'(?:loss|eval_loss|reward|grad_norm|num_tokens|train_runtime)': )", re.MULTILINE)
_PROGRESS = re.compile(rb"(?<!\d)(\d+)/(\d+) \[")
_QUOTED = re.compile(r"'[^']+': '-?[\d.e+-]+'")


def sniff(path: Path) -> bool:
    """Tell whether a printed dictionary of a trainer stands in the text."""
    return find_in_text(path, _START)


def read(path: Path) -> RunLog:
    """Read one file."""
    return assemble(NAME, [scan(path)])


def scan(path: Path, source: str | None = None) -> Draft:
    """Return the points of one file in the order of writing."""
    draft = Draft(framework="trl", log_precision="text")
    source = source or path.name
    rows: list[tuple[int, str, int | None]] = []
    progress: int | None = None
    total: bytes | None = None
    for line in lines(path, source, draft):
        start = _START.search(line.body)
        for match in _PROGRESS.finditer(line.body, 0, start.start() if start else len(line.body)):
            total = total or match[2]
            progress = int(match[1]) if match[2] == total else progress
        if start is not None:
            rows.append((line.number, plain_text(line.body[start.start(1) :]), progress))
        for match in _PROGRESS.finditer(line.body, start.end() if start else len(line.body)):
            progress = int(match[1]) if match[2] == total else progress
    _add_rows(draft, rows, source)
    return draft


def _add_rows(draft: Draft, rows: list[tuple[int, str, int | None]], source: str) -> None:
    training = [step for _, text, step in rows if _is_training(text)]
    known = [step for step in training if step]
    by_progress = len(known) == len(training) and all(a < b for a, b in pairwise(known))
    if rows and all(_QUOTED.search(text) for _, text, _ in rows):
        draft.log_precision = "digits4"
    count = 0
    for line, text, progress in rows:
        count += _is_training(text)
        step, axis = (progress, DEFAULT_STEP_AXIS) if by_progress else (count, ROW_AXIS)
        add_items(draft, text, step or 0, axis, (source, line))


def _is_training(text: str) -> bool:
    return not text.startswith(("{'eval_", "{'train_"))
