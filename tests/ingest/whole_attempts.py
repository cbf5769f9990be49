"""The rule of attempts over all points at once: what numbering them batch by batch must equal."""

import numpy as np


def attempts(name: np.ndarray, step: np.ndarray, file: np.ndarray) -> np.ndarray:
    """Number the attempts of a run on one step axis.

    A new attempt begins where a metric is written again at a step that it had already reached, and the
    axis as a whole has moved back too: a late evaluation row, or a second row of the same step, is no
    restart. A later file that repeats steps is a later attempt from its first point on.

    Args:
        name: Codes of the metrics, shape (n,), in the order of writing.
        step: Steps, shape (n,).
        file: Numbers of the files, or of the processes that wrote, shape (n,).

    Returns:
        The attempt of each point, from 1; shape (n,).
    """
    count = len(step)
    if count == 0:
        return np.zeros(0, dtype=np.int32)
    index = np.arange(count)
    order = np.argsort(name, kind="stable")
    previous = np.full(count, -1)
    same = name[order][1:] == name[order][:-1]
    previous[order[1:][same]] = order[:-1][same]
    new_file = np.r_[True, file[1:] != file[:-1]]
    new_block = np.r_[True, step[1:] != step[:-1]] | new_file
    block = np.maximum.accumulate(np.where(new_block, index, 0))
    begin = np.maximum.accumulate(np.where(new_file, index, 0))
    repeated = (previous >= 0) & (step <= step[previous]) & (previous < block)

    starts, seen, highest = [0], 0, step[0]
    for at in np.flatnonzero(repeated):
        before = previous[at]
        if before < starts[-1]:
            continue
        highest = max(highest, step[seen : at + 1].max())
        seen = at
        other_file = file[before] != file[at]
        if step[at] < highest or other_file:
            starts.append(int(max(begin[at] if other_file else block[at], starts[-1] + 1)))
            seen, highest = starts[-1], step[starts[-1]]
    return np.searchsorted(np.asarray(starts), index, side="right").astype(np.int32)
