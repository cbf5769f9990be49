"""What a chart is drawn from: nothing that matters is left out on the way to the drawing."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.pages import made_metric, made_series
from warehouse.report.charts import (
    BUCKETS,
    _broken_layers,
    _line,
    draw,
    metric_chart,
    sparkline,
    survival_chart,
    timeline_chart,
)
from warehouse.report.data import Series
from warehouse.report.survival import _named


def series_of(values: list[float]) -> Series:
    candidate = np.array(values, dtype=np.float64)
    n = len(candidate)
    nothing = np.full(n, np.nan)
    return Series(
        steps=np.arange(n) * 2 + 1,
        baseline=np.zeros(n),
        candidate=candidate,
        delta=nothing,
        standardised=nothing,
        offset=nothing,
        sigma=nothing,
        baseline_broken=np.zeros(n, dtype=bool),
        candidate_broken=~np.isfinite(candidate),
    )


@given(st.lists(st.one_of(st.floats(-1e6, 1e6), st.sampled_from([np.nan, np.inf, -np.inf])), min_size=1, max_size=3000))
def test_a_curve_keeps_its_extremes_and_breaks_where_values_are_not_finite(values):
    series = series_of(values)
    points = _line(series, series.candidate, "candidate", 1.0)["data"]["values"]
    drawn = [point["y"] for point in points if point["y"] is not None]
    finite = series.candidate[np.isfinite(series.candidate)]
    assert len(points) <= 3 * BUCKETS + 2
    if len(finite):
        assert max(drawn) == pytest.approx(finite.max(), rel=1e-5, abs=1e-12)
        assert min(drawn) == pytest.approx(finite.min(), rel=1e-5, abs=1e-12)
    assert (len(finite) < len(values)) == any(point["y"] is None for point in points)


@given(st.lists(st.booleans(), min_size=1, max_size=2000))
def test_every_step_that_is_not_finite_lies_under_a_bar(broken):
    series = series_of([np.inf if is_broken else 1.0 for is_broken in broken])
    bars = [bar for layer in _broken_layers(series)[:1] for bar in layer["data"]["values"]]
    under = {step for step in series.steps.tolist() for bar in bars if bar["x"] <= step <= bar["end"]}
    assert under == set(series.steps[series.candidate_broken].tolist())


def test_onsets_restarts_and_band_are_drawn():
    series = made_series(200, 1)
    band = (series.baseline - 0.3, series.baseline + 0.3)
    svg = metric_chart(series, band, made_metric("m", 1, 200), [50])
    for name in ("baseline", "candidate", "band", "drift", "decouple", "ink"):
        assert f"var(--{name})" in svg
    assert 'stroke-dasharray="5,3"' in svg
    assert 'stroke-dasharray="1,3"' in svg
    assert "#0a0b" not in svg


def test_a_series_without_any_value_can_be_drawn():
    series = series_of([np.nan, np.nan, np.inf])
    svg = metric_chart(series, (series.sigma, series.sigma), made_metric("m", 50, 3), [])
    assert svg.startswith("<svg")
    assert "<rect" in sparkline(series)


def test_a_timeline_names_the_categories_in_the_chosen_language():
    onsets = [
        {
            "category": "reward",
            "label_en": "Reward",
            "label_zh": "奖励统计",
            "onset_kind": kind,
            "onset_step": step,
            "low": step,
            "high": step,
            "last_step": 99,
        }
        for kind, step in (("first_diff", 1), ("decouple", 30), ("drift", None))
    ]
    assert ">Reward<" in timeline_chart(onsets, {"reward": 25.0}, "en")
    assert ">奖励统计<" in timeline_chart(onsets, {}, "zh")


def survival_row(kind: str, arm: str, duration: int, survival: float) -> dict:
    return {"component_kind": kind, "arm": arm, "duration": duration, "survival": survival, "event_count": 1,
            "pair_count": 2}  # fmt: skip


def test_equal_survival_curves_are_one_line_under_all_their_names():
    rows = [
        survival_row(kind, arm, duration, survival)
        for kind, arm, last in (("kernel", "dense 1", 0.5), ("engine", "lab 2", 0.5), ("kernel", "dense 2", 0.4))
        for duration, survival in ((60, 0.9), (150, last))
    ]
    curves = _named(rows)
    assert list(dict.fromkeys(row["group"] for row in curves)) == [
        "kernel dense 1 (1 / 2)\nengine lab 2 (1 / 2)",
        "kernel dense 2 (1 / 2)",
    ]
    assert [(row["step"], row["share"]) for row in curves] == [
        (0, 1),
        (60, 0.9),
        (150, 0.5),
        (0, 1),
        (60, 0.9),
        (150, 0.4),
    ]
    svg = survival_chart(curves)
    for name in ("kernel dense 1 (1 / 2)", "engine lab 2 (1 / 2)", "kernel dense 2 (1 / 2)"):
        assert f">{name}<" in svg


@pytest.mark.parametrize("last", [9, 150, 1600, 160_000])
def test_the_steps_on_an_axis_have_room_between_them(last):
    svg = survival_chart([{"group": "g", "step": 0, "share": 1.0}, {"group": "g", "step": last, "share": 0.5}])
    axis = svg[svg.index("x-axis") if "x-axis" in svg else svg.index("role-axis") :]
    labels = re.findall(r'<text[^>]*translate\(([\d.]+),[\d.]+\)"[^>]*font-size="11px"[^>]*>(\d+)<', axis)
    assert len(labels) >= 3
    places = [(float(x), len(text)) for x, text in labels]
    assert all(b - a > 7 * max(n, m) for (a, n), (b, m) in itertools.pairwise(places))


def test_text_in_a_drawing_is_escaped():
    spec = {
        "data": {"values": [{"x": "<script>&"}]},
        "mark": "point",
        "encoding": {"y": {"field": "x", "type": "nominal"}},
    }
    assert "<script>" not in draw(spec)
