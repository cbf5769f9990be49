"""Framing of LevelDB logs, as wandb and SwanLab write them: blocks of 32 KiB, chunks with a CRC-32.

Here belongs how records are put together from chunks, checked, and found again behind damage. What a record
holds belongs to the readers.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BLOCK = 32 * 1024
FILE_HEADER = 7
"""Bytes of signature, magic number and version before the first chunk; they count as part of the first block."""

_CHUNK = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_PADDING = -1


class Record(NamedTuple):
    """A record, or a piece of the file that is none.

    Attributes:
        offset: Where its first chunk begins.
        payload: Its content; None for damage.
        problem: What is wrong; empty for a good record.
        size: How many bytes of the file it covers.
    """

    offset: int
    payload: bytes | None
    problem: str
    size: int


def has_chunk(data: bytes, at: int, base: int = 0) -> bool:
    """Tell whether a whole chunk with a right checksum begins at `at` of a stretch that begins at `base` of a file."""
    room = BLOCK - (base + at) % BLOCK
    if at + _CHUNK.size > len(data) or room < _CHUNK.size:
        return False
    crc, size, kind = _CHUNK.unpack_from(data, at)
    stop = at + _CHUNK.size + size
    if not _FULL <= kind <= _LAST or stop > len(data) or stop - at > room:
        return False
    return zlib.crc32(data[at + _CHUNK.size - 1 : stop]) == crc


class Stretch(NamedTuple):
    """The records and damaged pieces of a stretch of a file, in its order.

    Attributes:
        records: Those that further bytes can't change.
        tail: Of the last stretch of a file: what touches its end.
        settled: Where in the file the tail begins.
    """

    records: list[Record]
    tail: list[Record]
    settled: int


def records(data: bytes, base: int = FILE_HEADER, *, is_last: bool = True) -> Stretch:
    """Find the records of a stretch of a file, which begins with one.

    Args:
        data: The stretch.
        base: Where in the file it begins.
        is_last: Whether the file ends with it: what touches its end is damage then.
    """
    found, parts = [], []
    begin, settled = base, base + len(data)
    for at, size, kind, body in _chunks(data, base, is_last=is_last):
        if kind == 0:
            broken = begin if parts else at
            touches_end = at + size == base + len(data)
            problem = "the file ends within a record" if touches_end else "checksum of a chunk is wrong"
            found.append(Record(broken, None, problem, at + size - broken))
            settled = broken if touches_end else settled
            parts = []
        elif kind == _PADDING:
            settled = begin if parts else at
        elif kind in (_FULL, _FIRST):
            if parts:
                found.append(Record(begin, None, "a record is not finished before the next begins", at - begin))
            parts, begin = [body], at
            if kind == _FULL:
                found.append(Record(at, body, "", size))
                parts = []
        elif not parts:
            found.append(Record(at, None, "a record lacks its beginning", size))
        else:
            parts.append(body)
            if kind == _LAST:
                found.append(Record(begin, b"".join(parts), "", at + size - begin))
                parts = []
    if parts:
        settled = begin
        found.append(Record(begin, None, "the file ends within a record", base + len(data) - begin))
    whole = [record for record in found if record.offset < settled]
    return Stretch(whole, found[len(whole) :] if is_last else [], settled)


def record_at(path: Path, offset: int) -> bytes:
    """Return the content of the sound record that begins at an offset; nothing where there is none."""
    size = BLOCK
    with path.open("rb") as file:
        while True:
            file.seek(offset)
            data = file.read(size)
            found = records(data, offset, is_last=len(data) < size)
            if found.records or found.tail or len(data) < size:
                return next((r.payload or b"" for r in found.records if r.offset == offset), b"")
            size *= 2


def _chunks(data: bytes, base: int, *, is_last: bool) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield offset, size, kind and body of each chunk; kind 0 is damage of that size.

    Padding that reaches the end is yielded too: it may be the beginning of a chunk. Before the end of a file, so is the
    rest from a chunk on that is not sound in a block that is not whole.
    """
    at, end = 0, len(data)
    while at < end:
        left = BLOCK - (base + at) % BLOCK
        if left < _CHUNK.size:
            at += left
            continue
        if has_chunk(data, at, base):
            _, size, kind = _CHUNK.unpack_from(data, at)
            stop = at + _CHUNK.size + size
            yield base + at, stop - at, kind, data[at + _CHUNK.size : stop]
        elif not is_last and at + left > end:
            yield base + at, end - at, _PADDING, b""
            return
        elif not any(data[at : at + left]):
            stop = at + left
            if stop >= end:
                yield base + at, end - at, _PADDING, b""
        else:
            stop = _next_chunk(data, at + 1, base)
            yield base + at, stop - at, 0, b""
        at = stop


def _next_chunk(data: bytes, at: int, base: int) -> int:
    """Return where the next sound chunk begins, or the end."""
    while at < len(data):
        block_end = at + BLOCK - (base + at) % BLOCK
        for candidate in range(at, min(block_end, len(data)) - _CHUNK.size + 1):
            if has_chunk(data, candidate, base):
                return candidate
        at = block_end
    return len(data)
