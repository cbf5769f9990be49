"""A page of a made-up pair, as large as one likes."""

import numpy as np

from warehouse.report.data import MigrationPage, PairPage, Row, Series


def made_series(steps: int, seed: int, *, broken_from: int | None = None) -> Series:
    rng = np.random.default_rng(seed)
    axis = np.arange(1, steps + 1)
    baseline = np.cumsum(rng.normal(size=steps)) / 10
    candidate = baseline + rng.normal(size=steps) * 0.1 + (axis > steps // 2) * 0.5
    is_broken = np.zeros(steps, dtype=bool)
    if broken_from is not None:
        is_broken[broken_from - 1 :] = True
        candidate[is_broken] = np.inf
    delta = np.where(is_broken, np.nan, candidate - baseline)
    return Series(
        steps=axis,
        baseline=baseline,
        candidate=candidate,
        delta=delta,
        standardised=delta / 0.15,
        offset=np.zeros(steps),
        sigma=np.full(steps, 0.15),
        baseline_broken=np.zeros(steps, dtype=bool),
        candidate_broken=is_broken,
    )


def made_metric(name: str, number: int, steps: int) -> Row:
    drifted = number < 10
    return {
        "metric": name,
        "category": "mismatch",
        "stage": "training",
        "label_en": f"Label of {name}",
        "label_zh": f"{name} 的名称",
        "meaning": "made up",
        "advice": None,
        "unit": None,
        "scale": "identity",
        "scale_constant": None,
        "focus_rank": number if number < 12 else None,
        "duplicates_of": None,
        "step_axis": "step",
        "first_diff": 1,
        "decouple": steps // 4,
        "drift": steps // 2 if drifted else None,
        "onset_step_low": steps // 2 - 2 if drifted else None,
        "onset_step_high": steps // 2 + 2 if drifted else None,
        "q_value": 0.001,
        "raw_effect": 0.5,
        "effect_in_sigma": 3.3,
        "smallest_detectable_shift": 0.1,
        "rank": number + 1 if drifted else None,
        "probability_first": 0.1,
        "is_tied": True,
    }


def made_page(metrics: int, steps: int, names: list[str] | None = None) -> MigrationPage:
    names = names or [f"group/metric_{number}" for number in range(metrics)]
    onsets = [
        {
            "category": category,
            "label_en": category.title(),
            "label_zh": "类别",
            "causal_tier": 1,
            "ordinal": 1,
            "onset_kind": kind,
            "onset_step": None if kind == "drift" and category == "reward" else steps // 2,
            "low": steps // 2 - 3,
            "high": steps // 2 + 3,
            "last_step": steps,
        }
        for category in ("training", "reward")
        for kind in ("first_diff", "decouple", "drift")
    ]
    pair = PairPage(
        pair={
            "pair_id": 7,
            "migration": "made-up",
            "baseline_run_name": "gpu",
            "candidate_run_name": "npu",
            "how_paired": "declared",
        },
        verdict={
            "verdict": "drift",
            "grade": "B",
            "reason": "Something is off.",
            "first_metric": names[0],
            "first_stage": "training",
            "first_onset_step": steps // 2,
            "last_common_step": steps,
            "step_count": steps,
            "nonfinite_metrics": [{"metric": names[-1], "step": 9}],
            "time_verdict": None,
        },
        metrics=[made_metric(name, number, steps) for number, name in enumerate(names)],
        onsets=onsets,
        reference={"training": steps // 5},
        series={
            (name, "step"): made_series(steps, number, broken_from=steps // 3 if number == 1 else None)
            for number, name in enumerate(names)
        },
        stack=[{"component_kind": "hardware", "baseline_has": "a", "candidate_has": "b"}],
        config=[],
        anomalies=[],
        parity=[],
        coverage=[],
        phases=[],
        time_shifts=[],
        restarts=[steps // 3],
        advice="run again: 1 more on the candidate's stack",
    )
    return MigrationPage("made-up", [pair], [], [])
