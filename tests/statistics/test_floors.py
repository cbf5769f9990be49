"""What the noise of a pair is taken from, and that the choice is told."""

import numpy as np
import pytest

from tests.statistics.star import Migration, Run, build, open_star, statistics_models

LOSS = "training/loss"
PROMPTS = "response/prompt_len/mean"
ACCURACY = "eval/AIME2024_Acc_Mean@16"
RNG = np.random.default_rng


def steps(values, every: int = 1) -> dict[int, float]:
    return {every * (i + 1): float(v) for i, v in enumerate(values)}


def star_of(baseline: dict, candidate: dict, replicates: tuple[dict, ...] = ()):
    runs = [Run("gpu", "baseline", "gpu", baseline), Run("npu", "candidate", "npu", candidate, baseline="gpu")]
    runs += [Run(f"npu_again_{i}", "replicate", "npu", values) for i, values in enumerate(replicates)]
    con = open_star([Migration("m", tuple(runs))])
    build(con, statistics_models())
    return con


def drift_row(con, metric: str, columns: str):
    rows = con.execute(
        f"""
        select {columns} from mart_divergence_onset
        where metric = ? and onset_kind = 'drift'
            and pair_id in (select pair_id from dim_migration where pair_kind = 'migration')
        """,
        [metric],
    ).fetchall()
    (row,) = rows
    return row


def of_jumps(values) -> float:
    return 1.4826 * float(np.median(np.abs(np.diff(values)))) / np.sqrt(2)


def test_runs_that_start_as_one_are_measured_by_their_steps():
    rng = RNG(1)
    size = np.minimum(1e-6 * np.exp(0.4 * np.arange(80)), 0.05)
    delta = size * rng.standard_normal(80)
    con = star_of({LOSS: steps(np.full(80, 2.0))}, {LOSS: steps(2.0 + delta)})
    source, sigma = drift_row(con, LOSS, "floor_source, sigma")
    assert source == "local"
    assert sigma == pytest.approx(of_jumps(2.0 + delta), rel=1e-9)


def test_runs_that_wander_from_the_start_are_measured_by_their_first_steps():
    rng = RNG(2)
    delta = np.sin(np.arange(80) / 3.0) + 0.02 * rng.standard_normal(80)
    con = star_of({LOSS: steps(np.full(80, 5.0))}, {LOSS: steps(5.0 + delta)})
    source, sigma = drift_row(con, LOSS, "floor_source, sigma")
    first = (5.0 + delta - 5.0)[:12]
    assert source == "first_steps"
    assert sigma == pytest.approx(1.4826 * np.median(np.abs(first - np.median(first))), rel=1e-9)


def test_a_few_evaluations_are_measured_by_what_a_sample_must_scatter():
    a, b = [0.5, 0.55, 0.6, 0.65, 0.6, 0.7], [0.52, 0.56, 0.58, 0.66, 0.61, 0.69]
    con = star_of({ACCURACY: steps(a, 10)}, {ACCURACY: steps(b, 10)})
    source, sigma = drift_row(con, ACCURACY, "floor_source, sigma")
    constant = 0.00104  # 1 / (2 n) for 16 answers to each of 30 questions
    variance = sum(2 * constant / ((p + constant) * (1 - p + constant)) for p in (np.mean(a), np.mean(b)))
    assert source == "sampling"
    assert sigma == pytest.approx(np.sqrt(variance), rel=1e-9)
    assert sigma == pytest.approx(np.sqrt(1 / 480 / (0.6 * 0.4) + 1 / 480 / (0.6033 * 0.3967)), rel=0.01)


def shared_path(seed: int, noise: float, runs: int) -> list[np.ndarray]:
    """Runs that see the same data: what a batch does to the loss is common, what each adds is small."""
    rng = RNG(seed)
    batches = 2.0 + 0.3 * rng.standard_normal(80)
    return [batches + noise * rng.standard_normal(80) for _ in range(runs)]


def test_runs_of_other_data_are_unpaired_from_that_step_on():
    baseline, candidate, *others = shared_path(3, 0.01, 5)
    rng = RNG(4)
    candidate[40:] = 2.0 + 0.3 * rng.standard_normal(40)
    prompts = np.full(80, 512.0)
    moved = prompts + np.where(np.arange(80) >= 40, 3.0, 0.0)
    same = [{LOSS: steps(v), PROMPTS: steps(prompts)} for v in (baseline, *others)]
    con = star_of(same[0], {LOSS: steps(candidate), PROMPTS: steps(moved)}, tuple(same[1:]))
    rows = con.execute(
        """
        select step >= 41, is_unpaired, min(sigma), max(sigma) from mart_paired_delta
        where metric = ? and pair_id in (select pair_id from dim_migration where pair_kind = 'migration')
        group by all order by all
        """,
        [LOSS],
    ).fetchall()
    assert [row[:2] for row in rows] == [(False, False), (True, True)]
    unpaired = np.hypot(of_jumps(baseline), of_jumps(candidate))
    assert rows[0][3] < 0.05 < 0.3 < unpaired
    assert rows[1][2] == rows[1][3] == pytest.approx(unpaired, rel=1e-9)
    is_censored, is_unpaired = drift_row(con, LOSS, "is_censored, is_unpaired")
    assert (is_censored, is_unpaired) == (True, True)
    verdicts = con.execute("select verdict from mart_pair_verdict where pair_kind = 'migration'").fetchall()
    assert verdicts == [("parity_broken",)]


def test_a_spread_that_widens_at_once_is_a_change_of_scale():
    rng = RNG(5)
    size = np.where(np.arange(100) < 60, 1e-3, 5e-2)
    con = star_of({LOSS: steps(np.full(100, 2.0))}, {LOSS: steps(2.0 + size * rng.standard_normal(100))})
    shape, onset = con.execute(
        "select shape, onset_step from mart_divergence_onset where metric = ? and onset_kind = 'decouple'", [LOSS]
    ).fetchall()[0]
    assert shape == "scale"
    assert abs(onset - 61) <= 2
