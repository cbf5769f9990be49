"""Fewer points for a drawing, without hiding what matters: extremes and steps that are not finite."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Steps = NDArray[np.int64]


def kept_indices(values: Floats, buckets: int) -> NDArray[np.int64]:
    """Return the indices of the values that a line has to pass through.

    The values are cut into `buckets` equal parts. Of each part the smallest and the largest finite value, the
    first value that is not finite, and of the whole series its two ends are kept.

    Args:
        values: One value a step, in the order of steps; shape (n,).
        buckets: Number of parts; at least 1.

    Returns:
        Ascending indices, at most 3 * buckets + 2 of them; all of them where there are no more than 3 * buckets.
    """
    n = len(values)
    if n <= 3 * buckets:
        return np.arange(n)
    kept = {0, n - 1}
    for part in np.array_split(np.arange(n), buckets):
        finite = part[np.isfinite(values[part])]
        if len(finite):
            kept.add(int(finite[np.argmin(values[finite])]))
            kept.add(int(finite[np.argmax(values[finite])]))
        broken = part[~np.isfinite(values[part])]
        if len(broken):
            kept.add(int(broken[0]))
    return np.array(sorted(kept), dtype=np.int64)


def envelope(low: Floats, high: Floats, buckets: int) -> list[tuple[int, float, float]]:
    """Return index, lowest `low` and highest `high` of each part of a band; parts without finite values are left out.

    The index is that of the middle of a part, and of the two ends of the series for the first and the last part.
    """
    n = len(low)
    parts = [np.array([i]) for i in range(n)] if n <= 2 * buckets else np.array_split(np.arange(n), buckets)
    found = []
    for number, part in enumerate(parts):
        finite = part[np.isfinite(low[part]) & np.isfinite(high[part])]
        if not len(finite):
            continue
        index = part[0] if number == 0 else part[-1] if number == len(parts) - 1 else part[len(part) // 2]
        found.append((int(index), float(low[finite].min()), float(high[finite].max())))
    return found


def segments(steps: Steps, is_marked: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return first and last step of each unbroken stretch of marked steps.

    Every marked step lies in one stretch, and no stretch holds a step that is not marked.
    """
    found: list[tuple[int, int]] = []
    open_at: int | None = None
    last = 0
    for step, marked in zip(steps.tolist(), is_marked.tolist(), strict=True):
        if marked and open_at is None:
            open_at = step
        if not marked and open_at is not None:
            found.append((open_at, last))
            open_at = None
        last = step
    if open_at is not None:
        found.append((open_at, last))
    return found
