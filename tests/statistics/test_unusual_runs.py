"""Runs that well-behaved noise would not bring up: equal for most of the way, far apart, half logged, two alike."""

import numpy as np
import pytest

from benchmarks.fleet import Fleet, judge, survival_rows
from tests.statistics.star import Migration, Run, build, open_star, project, statistics_models
from tests.statistics.test_floors import drift_row, star_of, steps

LOSS = "training/loss"
LENGTH = "response/response_len/mean"
RNG = np.random.default_rng


def verdict_of(con):
    ((verdict, step),) = con.execute(
        """
        select v.verdict, v.first_onset_step from mart_pair_verdict as v
        inner join dim_migration as p on v.pair_id = p.pair_id where p.pair_kind = 'migration'
        """
    ).fetchall()
    return verdict, step


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("equal_steps", [30, 60, 80])
def test_runs_that_are_equal_for_most_of_the_way_can_drift(equal_steps, noise):
    rng = RNG(1)
    base = 3 + 0.02 * rng.standard_normal(100)
    other = base.copy()
    other[equal_steps:] += 0.5 + noise * rng.standard_normal(100 - equal_steps)
    verdict, step = verdict_of(star_of({LOSS: steps(base)}, {LOSS: steps(other)}))
    assert verdict == "drift"
    assert abs(step - equal_steps - 1) <= 1


def test_runs_that_part_by_rounding_late_do_not_drift():
    rng = RNG(2)
    base = 3 + 0.02 * rng.standard_normal(100)
    other = base.copy()
    other[60:] += np.minimum(1e-7 * np.exp(0.3 * np.arange(40)), 0.02) * rng.standard_normal(40)
    assert verdict_of(star_of({LOSS: steps(base)}, {LOSS: steps(other)}))[0] == "decoupled_only"


@pytest.mark.parametrize("noise", [0.01, 0.002])
@pytest.mark.parametrize("replicates", [0, 3])
def test_a_large_change_of_a_quiet_metric_is_material(noise, replicates):
    rng = RNG(3)

    def run(factor: float) -> dict:
        values = 200 * np.exp(noise * rng.standard_normal(100))
        values[60:] *= factor
        return {LENGTH: steps(values)}

    con = star_of(run(1.0), run(50.0), tuple(run(1.0) for _ in range(replicates)))
    assert verdict_of(con) == ("drift", 61)
    ((reason,),) = con.execute("select reason from mart_pair_verdict where verdict = 'drift'").fetchall()
    assert reason.startswith(f"{LENGTH} is off from step 61. ")
    effect, shift = drift_row(con, LENGTH, "effect, raw_effect")
    assert effect == pytest.approx(np.log(50), abs=0.05)
    assert shift == pytest.approx(200 * 49, rel=0.05)


def two_stacks(logged: int, every: int = 1, offset: float = 0.08):
    """Return a pair of 150 steps without a fault on stacks that are apart, and replicates that log fewer steps."""
    rng = RNG(4)

    def run(name: str, role: str, stack: str, last: int, stride: int = 1, baseline: str = "") -> Run:
        values = 2 + 0.02 * rng.standard_normal(150) + (offset if stack == "npu" else 0.0)
        chosen = {s: v for s, v in steps(values).items() if s <= last and s % stride == 0}
        return Run(name, role, stack, {LOSS: chosen}, baseline)

    runs = [run("gpu", "baseline", "gpu", 150), run("npu", "candidate", "npu", 150, baseline="gpu")]
    runs += [run(f"{stack}_{n}", "replicate", stack, logged, every) for stack in ("gpu", "npu") for n in range(3)]
    con = open_star([Migration("m", tuple(runs))])
    build(con, statistics_models())
    return con


@pytest.mark.parametrize("logged", [60, 100, 150])
def test_replicates_that_end_early_make_no_drift_of_an_offset_between_stacks(logged):
    con = two_stacks(logged)
    assert verdict_of(con)[0] == "within_floor"
    ((last,),) = con.execute(
        """
        select max(step) filter (where is_comparable) from mart_paired_delta as d
        inner join dim_migration as p on d.pair_id = p.pair_id where p.pair_kind = 'migration'
        """
    ).fetchall()
    assert last == logged


def test_replicates_that_log_every_other_step_lend_their_offset_to_the_steps_between():
    con = two_stacks(150, every=2)
    assert verdict_of(con)[0] == "within_floor"
    even, odd, untested = con.execute(
        """
        select avg(adjusted_delta) filter (where step % 2 = 0), avg(adjusted_delta) filter (where step % 2 = 1),
            list(step order by step) filter (where not is_comparable)
        from mart_paired_delta as d
        inner join dim_migration as p on d.pair_id = p.pair_id where p.pair_kind = 'migration'
        """
    ).fetchall()[0]
    assert even == pytest.approx(0.0, abs=0.02)
    assert odd == pytest.approx(0.0, abs=0.02)
    assert untested == [1]


def test_equal_series_keep_their_order_from_build_to_build():
    rng = RNG(5)
    base = 3 + 0.02 * rng.standard_normal(80)
    other = 3 + 0.02 * rng.standard_normal(80)
    other[40:] += 0.5
    names = [f"made_up/metric_{n:02d}" for n in range(30)]
    for _ in range(3):
        con = star_of(dict.fromkeys(names, steps(base)), dict.fromkeys(names, steps(other)))
        order = con.execute("select metric from mart_first_drift order by rank").fetchall()
        assert [name for (name,) in order] == names
        con.close()


def test_a_library_is_compared_with_other_versions_of_itself_alone():
    """A run has many libraries: each pair stands on one side, and another library is no version of this one."""
    rows, components = survival_rows(Fleet(libraries=3), 3)
    con = judge(project(), rows, components)
    found = con.execute(
        """
        select arm, pairs, other_pairs from mart_component_contrast
        where component_kind = 'library' and metric_group = 'all'
        """
    ).fetchall()
    assert len(found) == 9
    runs = {}
    for run, kind, name, version in components:
        if kind == "library":
            runs.setdefault(f"{name} {version}", set()).add(run)
    assert {arm: (pairs, others) for arm, pairs, others in found} == {
        arm: (len(members), 40 - len(members)) for arm, members in runs.items()
    }
    con.close()


def test_what_tells_something_is_held_fixed_and_what_does_not_is_not():
    """Among many libraries that change nothing the guilty kernel is still found, and it is fixed beside the others."""
    rows, components = survival_rows(Fleet(guilty_onset=12.0, libraries=4), 8)
    con = judge(project(), rows, components)
    sql = "select arm, held_fixed, finding from mart_component_contrast where metric_group = 'all'"
    found = con.execute(sql).fetchall()
    fixed = {arm: held for arm, held, _ in found}
    assert [arm for arm, _, finding in found if finding == "earlier"] == ["flash 2"]
    assert all("attention_kernel" in held for arm, held in fixed.items() if not arm.startswith("flash"))
    assert len(fixed["flash 2"]) < 4
    con.close()
