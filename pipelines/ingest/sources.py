"""Opening the files of a log: compression, windows and lines of a growing file, the look at a file's beginning.

Everything here is about bytes; what they mean belongs to the readers. A file is read in windows of some megabytes, so
that memory is bounded; of each window the reader says how much it has settled, and the rest comes again with the next.
"""

import gzip
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from pipelines.ingest.base import ClosedLogError, LogError
from pipelines.ingest.draft import Draft, LogFile

HEAD_BYTES = 1 << 16
"""How much of a file is looked at to tell its format."""

WINDOW_BYTES = 1 << 24
"""How much of a file is read at a time."""

LOGS_IN_ARCHIVES = ("metrics.jsonl",)
"""What the log of an archive is called: of ClearML's offline sessions."""

_GZIP_MAGIC = b"\x1f\x8b"
_ZIP_MAGIC = b"PK\x03\x04"
_BROKEN = (OSError, EOFError, zlib.error, zipfile.BadZipFile)
_PIECE = 1 << 16


class Line(NamedTuple):
    """A line of a text file.

    Attributes:
        number: From 1.
        body: Its bytes without the line break.
        whole: False for a last line without a line break.
    """

    number: int
    body: bytes
    whole: bool


@dataclass
class Window:
    """A stretch of a file.

    Attributes:
        data: Its bytes.
        base: Where in the file it begins.
        is_last: Whether the file ends with it.
        used: How many of its bytes are settled; to be set by who reads it.
        can_resume: Whether reading can go on from here in a later pass.
    """

    data: bytes
    base: int
    is_last: bool
    used: int = 0
    can_resume: bool = True


def is_compressed(path: Path) -> bool:
    """Tell whether this is a gzip file, or an archive that holds a log, whatever its name."""
    with path.open("rb") as file:
        return file.read(2) == _GZIP_MAGIC or bool(log_in_archive(path))


def log_in_archive(path: Path) -> str:
    """Return the name of the log in a zip archive; nothing for another file, or an archive without one."""
    with path.open("rb") as file:
        if file.read(4) != _ZIP_MAGIC or not zipfile.is_zipfile(file):
            return ""
        with zipfile.ZipFile(file) as archive:
            return next((name for name in archive.namelist() if Path(name).name in LOGS_IN_ARCHIVES), "")


@contextmanager
def open_log(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain or gzip file, or the log in an archive, for reading bytes."""
    if name := log_in_archive(path):
        with zipfile.ZipFile(path) as archive, archive.open(name) as file:
            yield file
    elif is_compressed(path):
        with gzip.open(path, "rb") as file:
            yield file  # type: ignore[misc]
    else:
        with path.open("rb") as file:
            yield file


def head(path: Path, size: int = HEAD_BYTES) -> bytes:
    """Return the first bytes of a file, decompressed; what can be had of a damaged one.

    Raises:
        ClosedLogError: If the file can't be opened.
    """
    if not path.is_file():
        return b""
    try:
        path.open("rb").close()
    except OSError as error:
        raise ClosedLogError.of(path, error) from None
    out = b""
    try:
        with open_log(path) as file:
            while len(out) < size and (piece := file.read(min(8192, size - len(out)))):
                out += piece
    except _BROKEN:
        pass
    return out


def first_lines(path: Path, count: int = 20) -> list[bytes]:
    """Return the first lines of a text file, however long they are; the last one may end with the look, not the line.

    Nothing of a file that is no text, and no more than a window of any.
    """
    if not looks_like_text(beginning := head(path)):
        return []
    size = HEAD_BYTES
    while len(beginning) == size < WINDOW_BYTES and beginning.count(b"\n") < count:
        size *= 4
        beginning = head(path, size)
    return beginning.split(b"\n")[:count]


def pieces(path: Path, size: int = 1 << 20, overlap: int = 4096) -> Iterator[bytes]:
    """Yield a file piece by piece, each behind the end of the one before; a damaged file ends early."""
    carry = b""
    try:
        with open_log(path) as file:
            while piece := file.read(size):
                yield carry + piece
                carry = piece[-overlap:]
    except _BROKEN:
        return


def find_in_text(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """Tell whether a pattern stands anywhere in a text file; False for other files."""
    return looks_like_text(head(path, 4096)) and any(pattern.search(piece) for piece in pieces(path))


def windows(log: LogFile, broken: Callable[[str], None] | None = None, size: int | None = None) -> Iterator[Window]:
    """Yield a file window by window, from its mark on.

    What a window leaves unused begins the next one; a window of which nothing is used is yielded again, twice as large.

    Args:
        log: The file.
        broken: Called with a sentence where a compressed file is damaged or cut off; it ends there.
        size: Bytes of a window.
    """
    compressed = is_compressed(log.path)
    at, rest, want = log.since.offset, b"", size or WINDOW_BYTES
    with open_log(log.path) as file:
        file.seek(at)
        while True:
            stop = None if log.stop is None or compressed else log.stop - at - len(rest)
            piece, is_last, fault = _read(file, want, stop)
            window = Window(rest + piece, at, is_last, can_resume=not compressed)
            yield window
            if fault and broken:
                broken(fault)
            if is_last:
                return
            rest = window.data[window.used :]
            at += window.used
            want = (size or WINDOW_BYTES) if window.used else len(window.data)


def _read(file: IO[bytes], want: int, left: int | None) -> tuple[bytes, bool, str]:
    """Return the next bytes, whether the file ends with them, and what is wrong with it."""
    want = want if left is None else min(want, left)
    parts, size = [], 0
    try:
        while size < want:
            piece = file.read1(min(want - size, want if isinstance(file, io.BufferedReader) else _PIECE))  # type: ignore[attr-defined]
            if not piece:
                return b"".join(parts), True, ""
            parts.append(piece)
            size += len(piece)
    except _BROKEN as error:
        return b"".join(parts), True, f"the compressed file is damaged or cut off here ({error})"
    return b"".join(parts), left is not None and size >= left, ""


def read_lines(
    log: LogFile,
    draft: Draft,
    take: Callable[[Line], None],
    state: Callable[[], Mapping[str, Any]] = dict,
) -> Iterator[Draft]:
    """Give the lines of a file to a reader, and yield its draft where all that it holds is settled.

    A last line without a line break comes behind the last yield: what is made of it may be different once the line is
    whole.

    Args:
        log: The file.
        draft: What the reader fills.
        take: Called with each line.
        state: Called for what the reader must know to go on.
    """
    number = log.since.line
    faults: list[str] = []
    rest = b""
    for window in windows(log, faults.append):
        window.used = window.data.rfind(b"\n") + 1
        for body in window.data[: window.used].split(b"\n")[:-1]:
            number += 1
            take(Line(number, body.rstrip(b"\r"), True))
        rest = window.data[window.used :]
        yield settled(draft, window, number, state())
    if rest:
        take(Line(number + 1, rest, False))
    for fault in faults:
        draft.issue((log.source, number + 1), fault)


def lines_before(log: LogFile) -> Iterator[bytes]:
    """Yield the lines of a file up to its mark, without their line breaks."""
    left = log.since.offset
    with log.path.open("rb") as file:
        for line in file:
            left -= len(line)
            if left < 0:
                return
            yield line.rstrip(b"\r\n")


def settled(draft: Draft, window: Window, line: int = 0, state: Mapping[str, Any] | None = None) -> Draft:
    """Return the draft with its mark behind what is settled of a window."""
    return draft.settle(window.base + window.used, line, state) if window.can_resume else draft


def json_document(path: Path, remedy: str) -> tuple[Any, str]:
    """Return the JSON document that a file is, and its text.

    Raises:
        LogError: If it is none; the message ends with the remedy.
    """
    try:
        with open_log(path) as file:
            text = file.read().decode("utf-8", "replace")
        return json.loads(text), text
    except (ValueError, EOFError, RecursionError) as error:
        raise LogError(f"{path}: the file is no whole JSON document ({error}); {remedy}") from None


def text_of(body: bytes) -> str:
    r"""Decode bytes of a log; those that are no UTF-8 become escapes like `\xff`, so that two names stay two."""
    return body.decode("utf-8", "backslashreplace")


def looks_like_text(data: bytes) -> bool:
    """Tell whether the beginning of a file is text."""
    return bool(data) and b"\0" not in data[:4096]
