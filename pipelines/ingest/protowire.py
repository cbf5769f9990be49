"""The wire format of protocol buffers, as far as log files need it.

Here belongs the walk over the fields of one message. What the fields mean belongs to the readers.
"""

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Field = tuple[int, int, "int | bytes"]


class WireError(ValueError):
    """The bytes are no message."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned varint at `at` and the offset behind it."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError("a varint is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def signed(value: int) -> int:
    """Return a varint as the int64 that it encodes."""
    value &= 0xFFFFFFFFFFFFFFFF
    return value - (1 << 64) if value >= 1 << 63 else value


def fields(data: bytes) -> Iterator[Field]:
    """Yield number, wire type and raw content of each field.

    The content is an integer for varints, bytes otherwise (8 or 4 for the fixed types).

    Raises:
        WireError: Where the bytes are no message.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        kind = key & 7
        if kind == VARINT:
            value, at = varint(data, at)
            yield key >> 3, kind, value
            continue
        if kind == BYTES:
            size, at = varint(data, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise WireError(f"wire type {kind} is not in use")
        if at + size > end:
            raise WireError("a field is cut off")
        yield key >> 3, kind, data[at : at + size]
        at += size


def as_bytes(value: "int | bytes") -> bytes:
    """Return the content of a field that must be bytes."""
    if isinstance(value, int):
        raise WireError("a number stands where a text or message is expected")
    return value


def as_int(value: "int | bytes") -> int:
    """Return the content of a field that must be a varint."""
    if not isinstance(value, int):
        raise WireError("a text or message stands where a number is expected")
    return value


def double(value: "int | bytes") -> float:
    """Return the content of a 64-bit field as a double."""
    data = as_bytes(value)
    if len(data) != 8:
        raise WireError("a double must have eight bytes")
    return struct.unpack("<d", data)[0]


def float32(value: "int | bytes") -> float:
    """Return the content of a 32-bit field as a double of the same value."""
    data = as_bytes(value)
    if len(data) != 4:
        raise WireError("a float must have four bytes")
    return struct.unpack("<f", data)[0]
