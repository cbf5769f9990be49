"""The fast way through event files: records of one plain scalar, decoded many at a time.

Here belongs the recognition of the one shape that nearly every record has (time, step, one tag with a
`simple_value`), and its decoding by columns. Every other shape belongs to the TensorBoard reader, which decodes it
field by field; a record that is taken here would give the same point there.
"""

from typing import NamedTuple

import numpy as np

_TIME, _STEP, _SUMMARY, _VALUE, _TAG, _SIMPLE = 0x09, 0x10, 0x2A, 0x0A, 0x0A, 0x15
_SHORT = 0x80
"""Lengths below this take one byte; records with longer parts are left to the other way."""

_MOST_STEP_BYTES = 5


class Scalars(NamedTuple):
    """Decoded records, one entry each; all arrays have the length of the input.

    Attributes:
        plain: Whether the record has the plain shape; the others' entries mean nothing.
        step: Its step.
        wall_time: Its time, seconds since 1970.
        value: Its value.
        tag: Index of its tag in `tags`.
        tags: The tags, as bytes; a tag may stand there several times.
    """

    plain: np.ndarray
    step: np.ndarray
    wall_time: np.ndarray
    value: np.ndarray
    tag: np.ndarray
    tags: list[bytes]


def decode(data: bytes, begin: np.ndarray, size: np.ndarray) -> Scalars:
    """Decode records that have the plain shape, and mark which they are.

    Args:
        data: The file.
        begin: Where each payload begins, shape (n,).
        size: Its bytes, shape (n,).
    """
    count = len(begin)
    out = Scalars(
        np.zeros(count, dtype=bool),
        np.zeros(count, dtype=np.int64),
        np.zeros(count),
        np.zeros(count),
        np.zeros(count, dtype=np.int64),
        [],
    )
    file = np.frombuffer(data, dtype=np.uint8)
    for length in np.unique(size):
        if 24 <= length < _SHORT + 16:
            rows = np.flatnonzero(size == length)
            windows = np.lib.stride_tricks.sliding_window_view(file, int(length))
            _decode_length(out, rows, windows[begin[rows]])
    return out


def _decode_length(out: Scalars, rows: np.ndarray, block: np.ndarray) -> None:
    """Decode the records of one length; `block` holds their payloads as rows."""
    starts = block[:, 0] == _TIME
    without_step = starts & (block[:, 9] == _SUMMARY)
    _decode_shape(out, rows, block, without_step, 0)
    with_step = starts & (block[:, 9] == _STEP)
    more = np.ones(len(rows), dtype=bool)
    for width in range(1, _MOST_STEP_BYTES + 1):
        last = block[:, 9 + width] < _SHORT
        _decode_shape(out, rows, block, with_step & more & last, width)
        more &= ~last


def _decode_shape(out: Scalars, rows: np.ndarray, block: np.ndarray, wanted: np.ndarray, step_bytes: int) -> None:
    """Decode those of the wanted records whose parts have the right lengths and field numbers."""
    if not wanted.any():
        return
    length = block.shape[1]
    at = 9 + (step_bytes + 1 if step_bytes else 0)
    tag_size = length - at - 11
    if tag_size < 1 or length - at - 2 >= _SHORT:
        return
    expected = {
        at: _SUMMARY,
        at + 1: length - at - 2,
        at + 2: _VALUE,
        at + 3: length - at - 4,
        at + 4: _TAG,
        at + 5: tag_size,
        length - 5: _SIMPLE,
    }
    for column, byte in expected.items():
        wanted = wanted & (block[:, column] == byte)
    if not wanted.any():
        return
    chosen, target = block[wanted], rows[wanted]
    out.plain[target] = True
    out.wall_time[target] = np.ascontiguousarray(chosen[:, 1:9]).view("<f8").ravel()
    out.value[target] = np.ascontiguousarray(chosen[:, -4:]).view("<f4").ravel()
    kinds, codes = _distinct(chosen[:, at + 6 : at + 6 + tag_size])
    out.tag[target] = codes + len(out.tags)
    out.tags.extend(kinds)
    for position in range(step_bytes):
        out.step[target] |= (chosen[:, 10 + position].astype(np.int64) & 0x7F) << (7 * position)


def _distinct(texts: np.ndarray) -> tuple[list[bytes], np.ndarray]:
    """Return the distinct rows of an array of bytes, and for each row which it is."""
    count, size = texts.shape
    padded = np.zeros((count, -(-size // 8) * 8), dtype=np.uint8)
    padded[:, :size] = texts
    words = padded.view(np.uint64)
    weights = np.random.default_rng(1).integers(1, 1 << 63, words.shape[1], dtype=np.uint64) | np.uint64(1)
    _, first, code = np.unique((words * weights).sum(axis=1, dtype=np.uint64), return_index=True, return_inverse=True)
    if not (words[first][code] == words).all():  # two texts have one sum
        _, first, code = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return [texts[at].tobytes() for at in first], code.ravel()
