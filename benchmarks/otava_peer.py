"""Runs Apache Otava over the series of one file: `python otava_peer.py series.npy onsets.npy`.

It runs in an environment of its own, so it imports nothing of this project.
"""

import sys

import numpy as np
from otava.analysis import compute_change_points  # pyright: ignore[reportMissingImports]


def first_change(series: np.ndarray) -> int:
    """Return the step, from 1, of the first change point; 0 for none, also where Otava gives up on the series."""
    try:
        found, _ = compute_change_points(series, window_len=50, max_pvalue=0.001)
    except ValueError:  # raised by its t-test when a candidate leaves one point on a side
        return 0
    return min((point.index + 1 for point in found), default=0)


if __name__ == "__main__":
    np.save(sys.argv[2], np.array([first_change(series) for series in np.load(sys.argv[1])], dtype=int))
