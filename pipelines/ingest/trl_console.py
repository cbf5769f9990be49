"""Console logs of the Hugging Face trainers (TRL): a printed dictionary on a line of its own.

The line tells no step. Where a progress bar (`12/500 [00:31<...`) precedes every line of training metrics and goes
up, its count is the step. Otherwise the lines are counted, from 1, on the axis `log_row`, which can't be
mixed up with steps. Newer versions print four significant digits in quotes, older ones what Python prints.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pipelines.ingest.console import plain_text
from pipelines.ingest.draft import CannotResumeError, Draft, LogFile
from pipelines.ingest.slime import add_items
from pipelines.ingest.sources import Line, find_in_text, read_lines
from warehouse.contract import DEFAULT_STEP_AXIS

NAME = "trl_console"
ROW_AXIS = "log_row"

_START = re.compile(rb"(?:^|[\r\s])(\{'(?:loss|eval_loss|reward|grad_norm|num_tokens|train_runtime)': )", re.MULTILINE)
_PROGRESS = re.compile(rb"(?<!\d)(\d{1,15})/(\d{1,15}) \[")
_QUOTED = re.compile(r"'[^']+': '-?[\d.e+-]+'")


def sniff(path: Path) -> bool:
    """Tell whether a printed dictionary of a trainer stands in the text."""
    return find_in_text(path, _START)


@dataclass
class _Rows:
    """What is known of the rows of a log so far.

    Attributes:
        rows, training: How many there were, and how many of them of training metrics.
        progress, total: What the progress bar showed last, and its end.
        last: What it showed at the last row of training metrics.
        by_progress: It preceded every one of them, and went up.
        is_quoted: Every row had numbers in quotes.
    """

    rows: int = 0
    training: int = 0
    progress: int | None = None
    total: int | None = None
    last: int = 0
    by_progress: bool = True
    is_quoted: bool = True

    def see(self, body: bytes) -> tuple[str, int | None] | None:
        """Take up a line; return the printed dictionary that it holds and the progress shown before it."""
        start = _START.search(body)
        for match in _PROGRESS.finditer(body, 0, start.start() if start else len(body)):
            self.total = self.total or int(match[2])
            self._show(match)
        if start is None:
            return None
        text, progress = plain_text(body[start.start(1) :]), self.progress
        self.rows += 1
        self.is_quoted = self.is_quoted and _QUOTED.search(text) is not None
        if _is_training(text):
            self.training += 1
            self.by_progress = self.by_progress and bool(progress) and (self.training == 1 or progress > self.last)
            self.last = progress or 0
        for match in _PROGRESS.finditer(body, start.end()):
            self._show(match)
        return text, progress

    def _show(self, match: re.Match[bytes]) -> None:
        if int(match[2]) == self.total:
            self.progress = int(match[1])


def scan(log: LogFile) -> Iterator[Draft]:
    """Yield the points of one file in the order of writing.

    Raises:
        CannotResumeError: If the rows before the mark went by the progress bar and those behind it do not.
    """
    known = log.since.state
    ahead = _Rows(**known)
    for _ in read_lines(log, Draft(), lambda line: ahead.see(line.body) and None):
        pass
    if known.get("rows") and known["by_progress"] != ahead.by_progress:
        raise CannotResumeError(f"{log.path}: the progress bar is no step any more")
    draft = log.draft(framework="trl", log_precision="text")
    rows = _Rows(**known)

    def take(line: Line) -> None:
        row = rows.see(line.body)
        if row is None:
            return
        draft.log_precision = "digits4" if rows.is_quoted else "text"
        step, axis = (row[1], DEFAULT_STEP_AXIS) if ahead.by_progress else (rows.training, ROW_AXIS)
        add_items(draft, row[0], step or 0, axis, (log.source, line.number))

    yield from read_lines(log, draft, take, lambda: {**asdict(rows), "by_progress": ahead.by_progress})


def _is_training(text: str) -> bool:
    return not text.startswith(("{'eval_", "{'train_"))
