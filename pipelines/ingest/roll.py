"""Console logs of ROLL: `metrics_tag: ` and one JSON object, `{"step": 3, "metrics": {...}}`.

NaN and infinities are bare tokens. What stands before `metrics_tag:` does not matter.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from pipelines.ingest.console import plain_text
from pipelines.ingest.draft import Draft, LogFile
from pipelines.ingest.sources import Line, find_in_text, read_lines
from pipelines.ingest.verl_jsonl import scan_row

NAME = "roll"

_START = re.compile(rb"metrics_tag: (?=\{)")


def sniff(path: Path) -> bool:
    """Tell whether a line with ROLL's tag stands in the text."""
    return find_in_text(path, _START)


def scan(log: LogFile) -> Iterator[Draft]:
    """Yield the points of one file in the order of writing."""
    draft = log.draft(framework="roll")
    decoder = json.JSONDecoder()

    def take(line: Line) -> None:
        start = _START.search(line.body)
        if start is None:
            return
        place = (log.source, line.number)
        text = plain_text(line.body[start.end() :])
        try:
            row, _ = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            draft.issue(place, "no whole JSON object behind metrics_tag", text)
            return
        scan_row(draft, row, place)

    return read_lines(log, draft, take)
