"""A synthetic XTuner log in which some steps hold a pack of padding alone.

The metrics are computed as XTuner did before its fix: statistics by pack, then maximum, minimum or the
unweighted mean over packs, an all-padding pack counting as 0 and its effective sample size as 1/0.
"""

import json
from collections.abc import Collection
from pathlib import Path

import numpy as np

PREFIX = "rollout_is/mismatch/rollout_is_"
PACKS = 8


def write_padded_log(path: Path, steps: int, padded: Collection[int], seed: int = 7) -> None:
    """Write a tracker.jsonl of `steps` steps; those in `padded` hold a pack without a token."""
    rng = np.random.default_rng(seed)
    lines = []
    for step in range(1, steps + 1):
        packs = [_pack(rng) for _ in range(PACKS)]
        if step in padded:
            packs[-1] = _empty_pack()
        row = _merge(packs)
        reward = float(rng.normal(0.1, 0.02))
        row |= {"response/rewards/mean": reward, "response/rewards/min": -1.0, "response/rewards/max": 1.0}
        row |= {"reward/avg_raw_reward": reward - 0.01, "time/step": float(rng.uniform(900, 1000)), "step": step}
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _pack(rng: np.random.Generator) -> dict[str, float]:
    """Statistics of the weights of one pack of four sequences."""
    ratio = np.exp(rng.normal(0, 0.02, (4, 200)))
    means = ratio.mean(axis=1)
    return {
        "mean": float(ratio.mean()),
        "min": float(ratio.min()),
        "max": float(ratio.max()),
        "std": float(ratio.std()),
        "eff_sample_size": float(ratio.mean() ** 2 / (ratio**2).mean()),
        "seq_mean": float(means.mean()),
        "seq_min": float(means.min()),
        "seq_max": float(means.max()),
        "seq_std": float(means.std(ddof=1)),
        "seq_max_deviation": float(np.abs(means - 1).max()),
        "veto_fraction": 0.0,
    }


def _empty_pack() -> dict[str, float]:
    """What the same code gives for a pack in which every token is masked."""
    zero = dict.fromkeys(("mean", "std", "seq_mean", "seq_min", "seq_max", "seq_std", "veto_fraction"), 0.0)
    return zero | {"min": 1.0, "max": 0.0, "seq_max_deviation": 1.0, "eff_sample_size": float("inf")}


def _merge(packs: list[dict[str, float]]) -> dict[str, float]:
    def merged(name: str) -> float:
        values = [pack[name] for pack in packs]
        if "max" in name:
            return max(values)
        return min(values) if "min" in name else float(np.mean(values))

    return {PREFIX + name: merged(name) for name in packs[0]}
