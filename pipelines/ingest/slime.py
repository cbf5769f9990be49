"""Console logs of slime: a printed dictionary behind `step <n>:`, `rollout <n>:`, `perf <n>:` or `eval <n>:`.

slime counts on three axes. `rollout` and `perf` lines count rollouts and are on the axis `step`, the one that
other frameworks' summaries are on. `step` lines count optimizer steps: axis `optimizer_step`. `eval` lines are on
the axis `eval_step`. The time at the beginning of a line has no zone and is left out.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from pipelines.ingest.console import plain_text
from pipelines.ingest.dict_text import is_container, items
from pipelines.ingest.draft import Draft, LogFile
from pipelines.ingest.sources import Line, find_in_text, read_lines
from pipelines.ingest.text_number import STEP_FAULT, whole_step
from warehouse.contract import DEFAULT_STEP_AXIS

NAME = "slime"
AXES = {
    "rollout": DEFAULT_STEP_AXIS,
    "perf": DEFAULT_STEP_AXIS,
    "step": "optimizer_step",
    "eval": "eval_step",
}

_START = re.compile(rb"(?:^|[\s-])(rollout|perf|step|eval) (\d+): (?=\{['\"])")


def sniff(path: Path) -> bool:
    """Tell whether a line of slime's metrics stands in the text."""
    return find_in_text(path, re.compile(_START.pattern, re.MULTILINE))


def scan(log: LogFile) -> Iterator[Draft]:
    """Yield the points of one file in the order of writing."""
    draft = log.draft(framework="slime")

    def take(line: Line) -> None:
        if b": {" in line.body and (start := _START.search(line.body)) is not None:
            step = whole_step(start[2].decode())
            text = plain_text(line.body[start.end() :])
            add_items(draft, text, step, AXES[start[1].decode()], (log.source, line.number))

    return read_lines(log, draft, take)


def add_items(draft: Draft, text: str, step: int | None, axis: str, place: tuple[str, int]) -> None:
    """Add the numbers of a printed dictionary; what can't be read is an issue."""
    for name, number, written in items(text):
        if not name:
            draft.issue(place, "the printed dictionary ends or breaks off here", written)
        elif step is None:
            draft.issue(place, f"the step {STEP_FAULT}", written, 1)
        elif number is not None:
            draft.add(name, step, number.value, number.raw, place, axis=axis)
        elif not is_container(written):
            draft.issue(place, f"the value of {name} is no number", written, 1)
