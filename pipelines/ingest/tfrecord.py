"""Framing of TensorFlow record files: length, checksum, payload, checksum.

Here belongs how records are found, checked and, behind damage, found again. Their payload belongs to the
TensorBoard reader.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

import google_crc32c

_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")
OVERHEAD = _HEADER.size + _FOOTER.size
_MASK = 0xA282EAD8


class Record(NamedTuple):
    """A record, or a piece of the file that is none.

    Attributes:
        offset: Where it begins.
        payload: Its content; None for damage.
        problem: What is wrong; empty for a good record.
        size: How many bytes of the file it covers.
    """

    offset: int
    payload: bytes | None
    problem: str
    size: int


def masked_crc(data: bytes) -> int:
    """Return the masked CRC-32C of TensorFlow's record format."""
    crc = google_crc32c.value(data)
    return (((crc >> 15) | (crc << 17)) + _MASK) & 0xFFFFFFFF


def has_header(data: bytes, at: int = 0) -> bool:
    """Tell whether a record header with a right checksum stands at `at`."""
    if at + _HEADER.size > len(data):
        return False
    _, crc = _HEADER.unpack_from(data, at)
    return masked_crc(data[at : at + 8]) == crc


def records(data: bytes) -> Iterator[Record]:
    """Yield the records of a file and the damaged pieces between them; together they cover every byte."""
    at, end = 0, len(data)
    while at < end:
        if not has_header(data, at):
            behind = _next_header(data, at + 1)
            torn = end - at < _HEADER.size
            yield Record(at, None, "the file ends within a record" if torn else "damaged record header", behind - at)
            at = behind
            continue
        (size, _) = _HEADER.unpack_from(data, at)
        stop = at + _HEADER.size + size
        if stop + _FOOTER.size > end:
            yield Record(at, None, "the file ends within a record", end - at)
            return
        payload = data[at + _HEADER.size : stop]
        good = masked_crc(payload) == _FOOTER.unpack_from(data, stop)[0]
        yield Record(at, payload if good else None, "" if good else "checksum of a record is wrong", OVERHEAD + size)
        at = stop + _FOOTER.size


def _next_header(data: bytes, at: int) -> int:
    """Return where the next sound header begins, or the end.

    Lengths are below 2**32, so a header has four zero bytes at its fourth place: only such places are tried.
    """
    while (zeros := data.find(b"\0\0\0\0", at + 4)) >= 0:
        if has_header(data, zeros - 4):
            return zeros - 4
        at = zeros - 3
    return len(data)
