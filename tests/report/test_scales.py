"""The scales of the pages are those of the models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.report.scales import from_scale, noise_band, to_scale

CASES = [("identity", None), ("log", 1e-9), ("log", None), ("logit", 0.01), ("logit", None), ("asinh", 1e-4)]


@pytest.mark.parametrize(("scale", "width"), CASES)
@given(value=st.floats(0.001, 0.999))
def test_the_inverse_undoes_the_scale(scale, width, value):
    there = to_scale(np.array([value]), scale, width)
    assert there is not None
    assert from_scale(there, scale, width)[0] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(("scale", "width"), CASES)
@pytest.mark.parametrize("value", [-0.5, 0.0, 0.25, 1.0, 7.5])
def test_a_scale_equals_the_macro_of_the_models(star, scale, width, value):
    expected = star.execute("select comparison_value(?::double, 0.0, ?, ?::double)", [value, scale, width]).fetchone()
    there = to_scale(np.array([value]), scale, width)
    assert there is not None
    assert there[0] == pytest.approx(expected[0], rel=1e-12)


@pytest.mark.parametrize("scale", ["exact", "cumulative", "constant"])
def test_other_scales_have_no_band(scale):
    low, high = noise_band(np.ones(3), np.zeros(3), np.ones(3), scale, None)
    assert np.isnan(low).all()
    assert np.isnan(high).all()


def test_a_band_lies_around_the_baseline_moved_by_the_offset_of_the_stacks():
    low, high = noise_band(np.array([1.0, 2.0]), np.array([0.5, np.nan]), np.array([0.1, 0.1]), "identity", None)
    assert low.tolist() == pytest.approx([1.3, 1.8])
    assert high.tolist() == pytest.approx([1.7, 2.2])
