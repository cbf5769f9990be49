"""Opening the files of a log: compression, lines with their numbers, and the look at a file's beginning.

Everything here is about bytes; what they mean belongs to the readers.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from pipelines.ingest.points import Draft

HEAD_BYTES = 1 << 16
"""How much of a file is looked at to tell its format."""

_GZIP_MAGIC = b"\x1f\x8b"


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


def open_log(path: Path) -> IO[bytes]:
    """Open a plain or gzip file for reading bytes, whatever its name."""
    with path.open("rb") as file:
        compressed = file.read(2) == _GZIP_MAGIC
    return gzip.open(path, "rb") if compressed else path.open("rb")  # type: ignore[return-value]


def head(path: Path, size: int = HEAD_BYTES) -> bytes:
    """Return the first bytes of a file, decompressed; what can be had of a damaged one."""
    if not path.is_file():
        return b""
    out = b""
    try:
        with open_log(path) as file:
            while len(out) < size and (piece := file.read(min(8192, size - len(out)))):
                out += piece
    except (OSError, EOFError, zlib.error):
        pass
    return out


def lines(path: Path, source: str, draft: Draft) -> Iterator[Line]:
    """Yield the lines of a file; a damaged compressed file ends with an issue in `draft`."""
    number = 0
    try:
        with open_log(path) as file:
            for number, raw in enumerate(file, 1):
                whole = raw.endswith(b"\n")
                yield Line(number, raw.rstrip(b"\r\n") if whole else raw, whole)
    except (OSError, EOFError, zlib.error) as error:
        draft.issue((source, number + 1), f"the compressed file is damaged or cut off here ({error})")


def text_of(body: bytes) -> str:
    """Decode bytes of a text log; bytes that are no UTF-8 become the replacement character."""
    return body.decode("utf-8", "replace")


def looks_like_text(data: bytes) -> bool:
    """Tell whether the beginning of a file is text."""
    return bool(data) and b"\0" not in data[:4096]
