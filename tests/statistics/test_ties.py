"""Which drifted metrics are called tied."""

import numpy as np

from tests.statistics.star import Migration, Run, build, open_star, statistics_models


def moved(step: int) -> np.ndarray:
    return (np.arange(1, 101) >= step).astype(float)


def migration(name: str, shifts: dict[str, int]) -> Migration:
    """Return a pair in which each metric moves at a step of its own."""
    rng = np.random.default_rng(4)

    def run(role: str, baseline: str = "") -> Run:
        values = {
            metric: dict(enumerate(3 + 0.1 * rng.standard_normal(100) + moved(step if baseline else 101), 1))
            for metric, step in shifts.items()
        }
        return Run(f"{name}-{role}", role, role, values, baseline=baseline)

    return Migration(name, (run("baseline"), run("candidate", f"{name}-baseline")))


def test_metrics_that_moved_together_are_tied_and_one_that_moved_alone_is_not():
    shifts = {
        "alone": {"loss": 50},
        "one by one": {"loss": 30, "grad_norm": 80},
        "together": {"loss": 50, "grad_norm": 50, "late": 80},
    }
    con = open_star([migration(name, steps) for name, steps in shifts.items()])
    build(con, statistics_models())
    rows = con.execute("select migration, metric, is_tied from mart_first_drift").fetchall()
    assert {(name, metric) for name, metric, _ in rows} == {(n, m) for n, steps in shifts.items() for m in steps}
    assert {(name, metric) for name, metric, is_tied in rows if is_tied} == {
        ("together", "loss"),
        ("together", "grad_norm"),
    }
