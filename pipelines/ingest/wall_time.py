"""When a point was logged: seconds since 1970 UTC, whatever unit a log counts in.

Here belongs the one rule for all readers of what a time can be. Where a time stands in a log belongs to the readers.
"""

from typing import Any

import numpy as np

from pipelines.ingest.text_number import from_json

EARLIEST_TIME = 1e8
"""Seconds since 1970, in 1973: a smaller number in a column of times is a duration."""

_LATEST = 1e11  # in the year 5138
_FINER = 1e3


def time_of(value: Any, earliest: float = 0.0) -> float | None:
    """Return a time as a log spells it, in the log's unit; None where it is no number from `earliest` on."""
    number = from_json(value)
    told = None if number is None else number.value
    return told if told is not None and told >= earliest else None


def seconds_of(times: np.ndarray) -> np.ndarray:
    """Return times as seconds, NaN where it can't be told what they mean.

    Seconds end at 1e11, and milli-, micro- and nanoseconds of the same years begin where the unit above them ends: the
    size tells the unit. Times before 1970 and beyond the year 5138 in nanoseconds are none.

    Args:
        times: Numbers of a log; NaN where there is no time, shape (n,).
    """
    if not len(times) or ((times >= 0.0) & (times < _LATEST)).all():
        return times
    seconds = np.full(len(times), np.nan)
    scale, begin = 1.0, 0.0
    for _ in range(4):
        end = _LATEST * scale
        fits = (times >= begin) & (times < end)
        seconds[fits] = times[fits] / scale
        scale, begin = scale * _FINER, end
    return seconds
