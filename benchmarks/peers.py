"""The rules that the scoreboard puts beside the shipped models, each the first onset of a series, 0 for none.

Here belong rules alone; what they are measured on and by is in `benchmarks.scoreboard`.
"""

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.simulator import Array, Cell

_OTAVA = Path(__file__).with_name("otava_peer.py")


def deltas_of(cell: Cell, values: Array) -> Array:
    """Return the raw deltas: pair, metric, step; the pairs of a migration lie together."""
    first = cell.baseline_runs + cell.candidate_runs
    return (values[:, first:] - values[:, :1]).reshape(-1, cell.metrics, cell.steps)


def fixed_threshold(delta: Array, limit: float = 3.0) -> Array:
    """Return the first step at which a series is more than `limit` sigma from its start; 0 for none."""
    hit = np.abs(_from_start(delta)) > limit
    return np.where(hit.any(axis=-1), hit.argmax(axis=-1) + 1, 0)


def k_of_m(delta: Array, limit: float = 3.0, k: int = 4, m: int = 5) -> Array:
    """Return the first step that begins m steps of which k are more than `limit` sigma away; 0 for none."""
    beyond = (np.abs(_from_start(delta)) > limit).astype(int)
    counts = np.lib.stride_tricks.sliding_window_view(beyond, m, axis=-1).sum(axis=-1)
    hit = counts >= k
    return np.where(hit.any(axis=-1), hit.argmax(axis=-1) + 1, 0)


def _from_start(delta: Array) -> Array:
    """Take off the median of the first 20 steps. One sigma is 1 here: the rules are told the true noise."""
    return delta - np.median(delta[..., :20], axis=-1, keepdims=True)


def pelt(delta: Array) -> Array:
    """Return the first change that PELT finds with the usual penalty, 2 log n of the robust variance; 0 for none."""
    import ruptures

    flat = delta.reshape(-1, delta.shape[-1])
    found = np.zeros(len(flat), dtype=int)
    for i, series in enumerate(flat):
        sigma = 1.4826 * np.median(np.abs(np.diff(series))) / np.sqrt(2.0)
        scaled = series / max(sigma, 1e-12)
        changes = ruptures.Pelt(model="l2", min_size=8, jump=1).fit(scaled).predict(pen=2 * np.log(len(series)))
        found[i] = changes[0] + 1 if len(changes) > 1 else 0
    return found.reshape(delta.shape[:-1])


def otava(delta: Array, python: Path) -> Array:
    """Return the first change that Apache Otava finds with its defaults (window 50, p at most 0.001).

    Args:
        delta: Pair, metric, step.
        python: The interpreter of an environment that holds apache-otava, which pins another numpy than ours.

    Raises:
        subprocess.CalledProcessError: If that environment can't run it.
    """
    with tempfile.TemporaryDirectory() as folder:
        series, onsets = Path(folder) / "series.npy", Path(folder) / "onsets.npy"
        np.save(series, delta.reshape(-1, delta.shape[-1]))
        subprocess.run([python, _OTAVA, series, onsets], check=True)
        return np.load(onsets).reshape(delta.shape[:-1])
