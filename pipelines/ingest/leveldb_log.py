"""Framing of LevelDB logs, as wandb and SwanLab write them: blocks of 32 KiB, chunks with a CRC-32.

Here belongs how records are put together from chunks, checked, and found again behind damage. What a record
holds belongs to the readers.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

BLOCK = 32 * 1024
FILE_HEADER = 7
"""Bytes of signature, magic number and version before the first chunk; they count as part of the first block."""

_CHUNK = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


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


def has_chunk(data: bytes, at: int) -> bool:
    """Tell whether a whole chunk with a right checksum begins at `at`."""
    if at + _CHUNK.size > len(data) or at % BLOCK > BLOCK - _CHUNK.size:
        return False
    crc, size, kind = _CHUNK.unpack_from(data, at)
    stop = at + _CHUNK.size + size
    if not _FULL <= kind <= _LAST or stop > len(data) or stop > (at // BLOCK + 1) * BLOCK:
        return False
    return zlib.crc32(data[at + _CHUNK.size - 1 : stop]) == crc


def records(data: bytes) -> Iterator[Record]:
    """Yield the records of a log and the damaged pieces between them, in the order of the file."""
    parts: list[bytes] = []
    begin = 0
    for at, size, kind, body in _chunks(data):
        if kind == 0:
            broken = begin if parts else at
            yield Record(broken, None, _problem(data, at, size), at + size - broken)
            parts = []
        elif kind in (_FULL, _FIRST):
            if parts:
                yield Record(begin, None, "a record is not finished before the next begins", at - begin)
            parts, begin = [body], at
            if kind == _FULL:
                yield Record(at, body, "", size)
                parts = []
        elif not parts:
            yield Record(at, None, "a record lacks its beginning", size)
        else:
            parts.append(body)
            if kind == _LAST:
                yield Record(begin, b"".join(parts), "", at + size - begin)
                parts = []
    if parts:
        yield Record(begin, None, "the file ends within a record", len(data) - begin)


def _problem(data: bytes, at: int, size: int) -> str:
    if at + size < len(data):
        return "checksum of a chunk is wrong"
    return "the file ends within a record"


def _chunks(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield offset, size, kind and body of each chunk; kind 0 is damage of that size."""
    at, end = FILE_HEADER, len(data)
    while at < end:
        left = BLOCK - at % BLOCK
        if left < _CHUNK.size or not any(data[at : at + left]):
            at += left  # the padding of a block's end
            continue
        if has_chunk(data, at):
            _, size, kind = _CHUNK.unpack_from(data, at)
            stop = at + _CHUNK.size + size
            yield at, stop - at, kind, data[at + _CHUNK.size : stop]
        else:
            stop = _next_chunk(data, at + 1)
            yield at, stop - at, 0, b""
        at = stop


def _next_chunk(data: bytes, at: int) -> int:
    """Return where the next sound chunk begins, or the end of the file."""
    while at < len(data):
        block_end = (at // BLOCK + 1) * BLOCK
        for candidate in range(at, min(block_end, len(data)) - _CHUNK.size + 1):
            if has_chunk(data, candidate):
                return candidate
        at = block_end
    return len(data)
