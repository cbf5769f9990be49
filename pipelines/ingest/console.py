"""Console logs of verl: one line a step, `step:1 - actor/entropy:1.18 - critic/rewards/mean:0.57`.

What surrounds the line does not matter: Ray prefixes, colours, progress bars, other output. Pieces are
split at ` - ` and at their last colon, because names hold colons, brackets and `@`.
`training/global_step:1 - ` inside a line is a metric, not the start of one. Values may be wrapped
(`np.float64(0.5)`).
Of the configuration that verl prints first, the allow-listed entries are kept.
A piece whose value is no number is an issue. So is the last value of a file that ends without a line
break: nobody can tell whether its digits are all there.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from pipelines.ingest import metadata
from pipelines.ingest.draft import Draft, LogFile
from pipelines.ingest.printed_config import PrintedConfig
from pipelines.ingest.sources import Line, find_in_text, read_lines, text_of
from pipelines.ingest.text_number import STEP_FAULT, from_text, whole_step

NAME = "verl_console"

_START = re.compile(rb"(?<![A-Za-z0-9_/.-])step:(-?\d+) - (?=[^ :]+[^:]*:)")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_RAY_REPEAT = re.compile(r"\s*\[repeated \d+x across cluster\].*$")
_PROCESS = re.compile(rb"pid=(\d+)[,)]")
_THREE_DECIMALS = re.compile(r"-?\d+\.\d{3}")


def sniff(path: Path) -> bool:
    """Tell whether a line of a step stands anywhere in the text."""
    return find_in_text(path, _START)


def note_process(draft: Draft, prefix: bytes, last: bytes) -> bytes:
    """Mark in `draft` where the process id that Ray puts before a line changes.

    Args:
        draft: Gets the mark.
        prefix: The beginning of the line.
        last: The process id of the line before.

    Returns:
        The process id of this line; that of the line before, where there is none.
    """
    found = _PROCESS.search(prefix)
    if found is None:
        return last
    if last and found[1] != last:
        draft.mark_process()
    return found[1]


def plain_text(body: bytes) -> str:
    """Return a piece of a console line without colours and without what a progress bar wrote over it."""
    return _ANSI.sub("", text_of(body)).split("\r")[0]


def scan(log: LogFile) -> Iterator[Draft]:
    """Yield the points of one file in the order of writing."""
    draft = log.draft(log_precision="decimal3", framework="verl")
    config = PrintedConfig.resumed(log)
    process = log.since.state.get("process", "").encode()

    def take(line: Line) -> None:
        nonlocal process
        if not config.done and config.feed(line.body):
            draft.metadata.update(metadata.from_config(config.found))
        if b"step:" in line.body and (start := _START.search(line.body)) is not None:
            process = note_process(draft, line.body[: start.start()], process)
            _scan_line(draft, line, start, (log.source, line.number))

    return read_lines(log, draft, take, lambda: {"process": process.decode(), **config.state()})


def _scan_line(draft: Draft, line: Line, start: re.Match[bytes], place: tuple[str, int]) -> None:
    step = whole_step(start[1].decode())
    pieces = _RAY_REPEAT.sub("", plain_text(line.body[start.end() :])).split(" - ")
    if step is None:
        draft.issue(place, f"the step {STEP_FAULT}", text_of(start[0]), len(pieces))
        return
    for at, piece in enumerate(pieces):
        name, _, text = piece.rpartition(":")
        number = from_text(text) if name else None
        if not line.whole and at == len(pieces) - 1:
            draft.issue(place, "the file ends within this value: it may be cut off", piece, 1)
        elif number is None:
            draft.issue(place, "no `name:number` between ` - ` and ` - `", piece, 1)
        else:
            draft.add(name.strip(), step, number.value, number.raw, place)
            if number.raw is None and not _THREE_DECIMALS.fullmatch(text.strip()):
                draft.log_precision = "text"
