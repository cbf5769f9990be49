"""Which drifted metrics are called tied."""

import numpy as np

from tests.statistics.star import Migration, Run, build, open_star, statistics_models


def ties(shifts: dict[str, int]) -> dict[str, bool]:
    """Return which metrics are tied, where each moves at a step of its own."""
    rng = np.random.default_rng(4)
    base, candidate = (
        {name: 3 + 0.1 * rng.standard_normal(100) for name in shifts},
        {name: 3 + 0.1 * rng.standard_normal(100) + (np.arange(1, 101) >= step) for name, step in shifts.items()},
    )
    runs = [
        Run(name, role, name, {metric: dict(enumerate(series, start=1)) for metric, series in values.items()}, **facts)
        for name, role, values, facts in (
            ("base", "baseline", base, {}),
            ("cand", "candidate", candidate, {"baseline": "base"}),
        )
    ]
    con = open_star([Migration("one", tuple(runs))])
    build(con, statistics_models())
    return dict(con.execute("select metric, is_tied from mart_first_drift").fetchall())


def test_metrics_that_moved_together_are_tied_and_one_that_moved_alone_is_not():
    assert ties({"loss": 50}) == {"loss": False}
    assert ties({"loss": 30, "grad_norm": 80}) == {"loss": False, "grad_norm": False}
    assert ties({"loss": 50, "grad_norm": 50, "late": 80}) == {"loss": True, "grad_norm": True, "late": False}
