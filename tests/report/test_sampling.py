"""Drawing fewer points never hides an extreme or a step that is not finite."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warehouse.report.sampling import envelope, kept_indices, segments

VALUES = st.lists(
    st.one_of(st.floats(-1e9, 1e9), st.sampled_from([np.nan, np.inf, -np.inf])), min_size=1, max_size=800
).map(lambda values: np.array(values, dtype=np.float64))
BUCKETS = st.integers(1, 60)


@given(VALUES, BUCKETS)
def test_extremes_and_ends_are_kept(values, buckets):
    kept = kept_indices(values, buckets)
    finite = values[np.isfinite(values)]
    if len(finite):
        assert finite.min() in values[kept]
        assert finite.max() in values[kept]
    assert {0, len(values) - 1} <= set(kept.tolist())
    assert (np.diff(kept) > 0).all()


@given(VALUES, BUCKETS)
def test_every_part_keeps_its_own_extremes_and_a_gap(values, buckets):
    kept = set(kept_indices(values, buckets).tolist())
    if len(values) <= 3 * buckets:
        assert len(kept) == len(values)
        return
    for part in np.array_split(np.arange(len(values)), buckets):
        finite = values[part][np.isfinite(values[part])]
        shown = values[[i for i in part.tolist() if i in kept]]
        if len(finite):
            assert shown[np.isfinite(shown)].min() == finite.min()
            assert shown[np.isfinite(shown)].max() == finite.max()
        assert (len(finite) < len(part)) == bool((~np.isfinite(shown)).any())


@given(VALUES, BUCKETS)
def test_few_points_remain(values, buckets):
    assert len(kept_indices(values, buckets)) <= 3 * buckets + 2


@given(st.lists(st.booleans(), min_size=1, max_size=500))
def test_stretches_hold_every_marked_step_and_no_other(marked):
    steps = np.arange(len(marked)) * 10 + 3
    covered = {
        step for first, last in segments(steps, np.array(marked)) for step in steps.tolist() if first <= step <= last
    }
    assert covered == {step for step, is_marked in zip(steps.tolist(), marked, strict=True) if is_marked}


@given(VALUES, BUCKETS)
def test_a_band_is_never_drawn_narrower_than_it_is(values, buckets):
    low, high = values - 1.0, values + 1.0
    found = envelope(low, high, buckets)
    usable = np.isfinite(low) & np.isfinite(high)
    if usable.any():
        assert min(part[1] for part in found) == low[usable].min()
        assert max(part[2] for part in found) == high[usable].max()
    else:
        assert not found
