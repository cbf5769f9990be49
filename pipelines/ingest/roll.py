"""Console logs of ROLL: `metrics_tag: ` and one JSON object, `{"step": 3, "metrics": {...}}`.

NaN and infinities are bare tokens. What stands before `metrics_tag:` does not matter.
"""

import json
import re
from pathlib import Path

from pipelines.ingest.base import RunLog
from pipelines.ingest.console import find_in_text, plain_text
from pipelines.ingest.points import Draft, assemble
from pipelines.ingest.sources import lines
from pipelines.ingest.verl_jsonl import scan_row

NAME = "roll"

_START = re.compile(rb"metrics_tag: (?=\{)")


def sniff(path: Path) -> bool:
    """Tell whether a line with ROLL's tag stands in the text."""
    return find_in_text(path, _START)


def read(path: Path) -> RunLog:
    """Read one file."""
    return assemble(NAME, [scan(path)])


def scan(path: Path, source: str | None = None) -> Draft:
    """Return the points of one file in the order of writing."""
    draft = Draft(framework="roll")
    source = source or path.name
    decoder = json.JSONDecoder()
    for line in lines(path, source, draft):
        start = _START.search(line.body)
        if start is None:
            continue
        place = (source, line.number)
        text = plain_text(line.body[start.end() :])
        try:
            row, _ = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            draft.issue(place, "no whole JSON object behind metrics_tag", text)
            continue
        scan_row(draft, row, place)
    return draft
