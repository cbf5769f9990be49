"""Framing of TensorFlow record files: length, checksum, payload, checksum.

Here belongs how records are found, checked and, behind damage, found again. Their payload belongs to the
TensorBoard reader.
"""

import struct
from typing import NamedTuple

import google_crc32c
import numpy as np

_HEADER = struct.Struct("<QI")
HEADER_SIZE = _HEADER.size
FOOTER_SIZE = 4
_MASK = 0xA282EAD8


class Damage(NamedTuple):
    """A piece of the file that is no sound record: where, how many bytes, and why."""

    offset: int
    size: int
    reason: str


class Frames(NamedTuple):
    """The records of a stretch of a file. Together with the damage they cover every byte that is settled.

    Attributes:
        offset: Where each sound record begins, shape (n,), in the order of the file.
        size: Bytes of its payload, which begins `HEADER_SIZE` behind its offset, shape (n,).
        damage: The pieces between them; of the last stretch of a file, also the one at its end.
        settled: Bytes before what touches the end and may look different once more follows.
    """

    offset: np.ndarray
    size: np.ndarray
    damage: list[Damage]
    settled: int


def masked_crc(data: bytes) -> int:
    """Return the masked CRC-32C of TensorFlow's record format."""
    crc = google_crc32c.value(data)
    return (((crc >> 15) | (crc << 17)) + _MASK) & 0xFFFFFFFF


def has_header(data: bytes, at: int = 0) -> bool:
    """Tell whether a record header with a right checksum stands at `at`."""
    if at < 0 or at + HEADER_SIZE > len(data):
        return False
    _, crc = _HEADER.unpack_from(data, at)
    return masked_crc(data[at : at + 8]) == crc


def frames(data: bytes, *, is_last: bool = True) -> Frames:
    """Find the records of a stretch of a file, from the beginning of a record on, and check both checksums of each.

    Args:
        data: The stretch.
        is_last: Whether the file ends with it: what touches its end is damage then.
    """
    offset, size, crcs, damage, settled = _walk(data)
    if not is_last:
        damage = [piece for piece in damage if piece.offset < settled]
    bytes_at = np.frombuffer(data, dtype=np.uint8)
    if len(offset) == 0:
        return Frames(offset, size, damage, settled)
    feet = (offset + HEADER_SIZE + size)[:, None] + np.arange(FOOTER_SIZE)
    written = np.ascontiguousarray(bytes_at[feet]).view("<u4").ravel()
    good = (((crcs >> np.uint32(15)) | (crcs << np.uint32(17))) + np.uint32(_MASK)) == written
    for at in np.flatnonzero(~good):
        span = int(size[at]) + HEADER_SIZE + FOOTER_SIZE
        damage.append(Damage(int(offset[at]), span, "checksum of a record is wrong"))
    return Frames(offset[good], size[good], sorted(damage), settled)


def _walk(data: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Damage], int]:
    """Return offsets, sizes and payload checksums (as computed) of the records, the damage, and what is settled."""
    first, first_sizes = _sound_beginning(data)
    offsets, sizes, damage = [], [], []
    known: dict[bytes, int] = {}
    at, end, settled = 0, len(data), len(data)
    if len(first):
        at = int(first[-1] + first_sizes[-1]) + HEADER_SIZE + FOOTER_SIZE
    while at < end:
        header = data[at : at + HEADER_SIZE]
        size = known.get(header)
        if size is None:
            if not has_header(header):
                behind = _next_header(data, at + 1)
                torn = behind == end and end - at < HEADER_SIZE
                reason = "the file ends within a record" if torn else "damaged record header"
                damage.append(Damage(at, behind - at, reason))
                settled = at if behind == end else settled
                at = behind
                continue
            size = known[header] = _HEADER.unpack(header)[0]
        stop = at + HEADER_SIZE + size
        if stop + FOOTER_SIZE > end:
            damage.append(Damage(at, end - at, "the file ends within a record"))
            settled = at
            break
        offsets.append(at)
        sizes.append(size)
        at = stop + FOOTER_SIZE
    offset = np.r_[first, np.array(offsets, dtype=np.int64)]
    size = np.r_[first_sizes, np.array(sizes, dtype=np.int64)]
    begins, stops = (offset + HEADER_SIZE).tolist(), (offset + HEADER_SIZE + size).tolist()
    payloads = [data[begin:stop] for begin, stop in zip(begins, stops, strict=True)]
    crcs = np.fromiter(map(google_crc32c.value, payloads), dtype=np.uint32, count=len(payloads))
    return offset, size, crcs, damage, settled


def _sound_beginning(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets and sizes of the records up to the first damage, found all at once: the fast way.

    Every place that looks like a header (a length below 2**24, a right checksum) is taken for one. As long as each is
    where the one before says, they are the records.
    """
    file = np.frombuffer(data, dtype=np.uint8)
    may_begin = np.zeros(len(file) + 1, dtype=bool)
    may_begin[-1] = True
    for shift in range(4, min(8, len(file))):  # the upper half of the length is zero
        words = np.frombuffer(data, dtype="<u4", offset=shift, count=(len(data) - shift) // 4)
        may_begin[shift - 4 : shift - 4 + 4 * len(words) : 4] = words == 0
    at = np.flatnonzero(may_begin[: max(0, len(file) - HEADER_SIZE + 1)])
    at = at[file[at + 3] == 0]
    size = file[at].astype(np.int64) | file[at + 1].astype(np.int64) << 8 | file[at + 2].astype(np.int64) << 16
    stop = at + size + HEADER_SIZE + FOOTER_SIZE
    followed = may_begin[np.minimum(stop, len(file))] & (stop <= len(file))
    at, size, stop = at[followed], size[followed], stop[followed]
    written = np.zeros(len(at), dtype=np.uint32)
    for byte in range(4):
        written |= file[at + 8 + byte].astype(np.uint32) << np.uint32(8 * byte)
    kinds = np.unique(size)
    right = np.array([masked_crc(struct.pack("<Q", length)) for length in kinds.tolist()], dtype=np.uint32)
    sound = written == right[np.searchsorted(kinds, size)] if len(at) else np.zeros(0, dtype=bool)
    at, size, stop = at[sound], size[sound], stop[sound]
    follows = np.r_[at[:1] == 0, at[1:] == stop[:-1]]
    whole = len(at) if follows.all() else int(np.argmin(follows))
    return at[:whole], size[:whole]


def _next_header(data: bytes, at: int) -> int:
    """Return where the next sound header begins, or the end.

    Lengths are below 2**32, so a header has four zero bytes at its fourth place: only such places are tried.
    """
    while (zeros := data.find(b"\0\0\0\0", at + 4)) >= 0:
        if has_header(data, zeros - 4):
            return zeros - 4
        at = zeros - 3
    return len(data)
