"""Curves of one line for the terminal. Extremes and values that are not finite are never averaged away."""

import itertools
import math
from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"
NOT_FINITE = "×"


def sparkline(values: Sequence[float | None], width: int = 24) -> str:
    """Return the sizes of values as one line of bars.

    Each character stands for a stretch of values and shows the one farthest from zero, or × where one of them is
    not finite. Stretches without any value are blank.

    Args:
        values: In the order of steps; None where nothing was logged.
        width: Number of characters at most.
    """
    if not values:
        return ""
    columns = min(width, len(values))
    edges = [round(i * len(values) / columns) for i in range(columns + 1)]
    parts = [[v for v in values[a:b] if v is not None] for a, b in itertools.pairwise(edges)]
    finite = [abs(v) for part in parts for v in part if math.isfinite(v)]
    largest = max(finite, default=0.0)
    return "".join(_character(part, largest) for part in parts)


def _character(part: list[float], largest: float) -> str:
    if not part:
        return " "
    if not all(math.isfinite(v) for v in part):
        return NOT_FINITE
    if largest <= 0.0:
        return _BARS[0]
    return _BARS[min(int(max(abs(v) for v in part) / largest * len(_BARS)), len(_BARS) - 1)]
