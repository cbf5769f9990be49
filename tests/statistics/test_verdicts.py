"""Verdicts on runs with a known answer, made by the test."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.scoreboard import build, score_models
from benchmarks.simulator import Cell, Replicates, metric_name, open_star, simulate
from tests.statistics.star import Migration, Run, project, statistics_models
from tests.statistics.star import build as build_all
from tests.statistics.star import open_star as star_of

MODELS = project()
SMALL = Cell(migrations=3, candidates=4, faulty_candidates=2, metrics=30, shift=3.0)


def judged(cell: Cell, replicates: Replicates = "both", seed: int = 1):
    con = open_star(cell, simulate(cell, seed), replicates, seed)
    build(con, MODELS)
    return con


def verdicts(con):
    return con.execute(
        """
        select p.migration, p.candidate_run_name, v.verdict, v.first_metric, v.first_onset_step, v.grade
        from mart_pair_verdict as v inner join dim_migration as p on v.pair_id = p.pair_id
        order by p.migration, p.candidate_run_name
        """
    ).fetchall()


@pytest.mark.parametrize(("replicates", "grade"), [("both", "A"), ("baseline", "B"), ("none", "C")])
def test_a_fault_is_found_and_its_neighbours_are_not(replicates, grade):
    con = judged(SMALL, replicates)
    for _, candidate, verdict, metric, onset, found_grade in verdicts(con):
        assert found_grade == grade
        if candidate in ("candidate_2", "candidate_3"):
            assert verdict == "drift"
            assert metric == metric_name(0)
            assert abs(onset - SMALL.onset) <= 3
        else:
            assert verdict != "drift"


def test_runs_of_one_fault_after_another_are_named_in_that_order():
    cell = replace(SMALL, faulty_metrics=3, lag=12, onset=30)
    con = judged(cell)
    rows = con.execute(
        """
        select p.pair_id, list(f.metric order by f.rank), sum(f.probability_first)
        from mart_first_drift as f inner join dim_migration as p on f.pair_id = p.pair_id
        where p.candidate_run_name in ('candidate_2', 'candidate_3') group by p.pair_id
        """
    ).fetchall()
    assert len(rows) == 6
    for _, metrics, total in rows:
        assert metrics[0] == metric_name(0)
        assert total == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("shape", ["ramp", "sawtooth"])
def test_the_shape_of_a_drift_is_told(shape):
    onset = 50 if shape == "ramp" else 35
    steps = 70 if shape == "ramp" else 80
    cell = replace(SMALL, shape=shape, shift=6.0, onset=onset, steps=steps)
    con = judged(cell)
    shapes = con.execute(
        """
        select o.shape, o.onset_step from mart_divergence_onset as o
        inner join dim_migration as p on o.pair_id = p.pair_id
        where o.metric = ? and o.onset_kind = 'drift' and p.candidate_run_name in ('candidate_2', 'candidate_3')
        """,
        [metric_name(0)],
    ).fetchall()
    assert len(shapes) == 6
    assert sum(s == shape for s, _ in shapes) >= 4
    assert all(abs(found - onset) <= 6 for s, found in shapes if s == shape)


def test_gaps_and_values_that_are_not_finite_do_not_make_drift():
    cell = replace(SMALL, shift=0.0, gaps=0.15, nonfinite=0.02)
    con = judged(cell)
    ((drifted,),) = con.execute("select count(distinct pair_id) from int_drift_test where is_drift").fetchall()
    assert drifted <= 1
    rows = con.execute("select verdict, len(nonfinite_metrics) from mart_pair_verdict").fetchall()
    assert all(verdict == "nonfinite" and count > 0 for verdict, count in rows)


def test_runs_that_crashed_and_wrote_steps_again_are_judged_by_the_last_attempt():
    cell = replace(SMALL, restarts=1.0)
    values = simulate(SMALL, 6)
    expected = open_star(SMALL, values, "both")
    again = open_star(cell, values, "both")
    build(expected, MODELS)
    build(again, MODELS)
    ((given_up,),) = again.execute("select count(*) from fct_metric where not is_current").fetchall()
    runs = SMALL.migrations * (SMALL.baseline_runs + SMALL.candidate_runs + SMALL.candidates)
    assert given_up == runs * SMALL.metrics * 5
    assert verdicts(again) == verdicts(expected)


def test_rows_in_another_order_and_steps_relabelled_by_a_constant_give_the_same_verdicts():
    values = simulate(SMALL, 4)
    con = open_star(SMALL, values, "both")
    build(con, MODELS)
    expected = verdicts(con)
    con.execute("create table shuffled as select * from fct_metric order by hash(step * 31 + metric_id), run_id")
    con.execute("delete from fct_metric")
    con.execute(
        """
        insert into fct_metric
        select * replace (step + 1000 as step, 'part' || (step % 3) as source_file) from shuffled
        """
    )
    build(con, MODELS)
    found = verdicts(con)
    assert [(a, b, c, d, e and e + 1000, f) for a, b, c, d, e, f in expected] == found


def test_the_runs_under_test_do_not_serve_in_their_own_floor():
    values = simulate(SMALL, 6)
    floors = []
    for factor in (1.0, 50.0):
        changed = values.copy()
        changed[:, 0] += (factor - 1.0) * np.random.default_rng(0).standard_normal(changed[:, 0].shape)
        con = open_star(SMALL, changed, "both")
        for name in (
            "int_contaminated_step",
            "int_scaled_point",
            "int_floor_step",
            "int_replicate_fit",
            "int_pair_floor",
        ):
            con.execute(f"create table {name} as\n{MODELS.model(name).sql}")
        floors.append(con.execute("select * from int_pair_floor order by pair_id, metric_id").fetchall())
    assert len(floors[0]) == len(floors[1]) > 0
    for left, right in zip(*floors, strict=True):
        assert left[:6] == right[:6]
        assert left[6:] == pytest.approx(right[6:], rel=1e-9)


def pair(baseline, candidate, metric="loss", **facts):
    def run(name, role, values, **more):
        return Run(name, role, name, {metric: dict(enumerate(values, start=1))}, **{**facts, **more})

    return Migration("one", (run("base", "baseline", baseline), run("cand", "candidate", candidate, baseline="base")))


def test_runs_that_are_equal_to_the_last_digit_are_censored():
    values = np.exp(-np.arange(60) / 30) + 3
    con = star_of([pair(values, values)])
    build_all(con, statistics_models())
    ((verdict, first),) = con.execute("select verdict, first_different_step from mart_pair_verdict").fetchall()
    assert verdict == "within_floor"
    assert first is None
    rows = con.execute("select onset_kind, is_censored, censored_at from mart_divergence_onset").fetchall()
    assert ("first_diff", True, 60) in rows
    assert all(censored for _, censored, _ in rows)


def test_a_difference_that_grows_and_saturates_is_decoupled_and_its_doubling_is_measured():
    rng = np.random.default_rng(8)
    t = np.arange(1, 121)
    base = 3 + np.exp(-t / 40) + 0.01 * rng.standard_normal(120)
    size = np.minimum(1e-5 * 2 ** (t / 5.0), 1e-2)
    con = star_of([pair(base, base + size * rng.standard_normal(120))])
    build_all(con, statistics_models())
    ((verdict,),) = con.execute("select verdict from mart_pair_verdict").fetchall()
    assert verdict == "decoupled_only"
    ((onset, doubling, shape),) = con.execute(
        "select onset_step, doubling_steps, shape from mart_divergence_onset where onset_kind = 'decouple'"
    ).fetchall()
    assert shape == "rise"
    assert doubling == pytest.approx(5.0, abs=0.7)
    assert abs(onset - 50) <= 8


def test_an_offset_of_the_start_is_a_mismatch_and_no_onset():
    rng = np.random.default_rng(9)
    t = np.arange(1, 101)
    base = 2 + 5 * np.exp(-t / 30) + 0.01 * rng.standard_normal(100)
    con = star_of([pair(base, base + 0.6 * np.exp(-t / 60) + 0.01 * rng.standard_normal(100))])
    build_all(con, statistics_models())
    ((verdict, metric),) = con.execute("select verdict, first_metric from mart_pair_verdict").fetchall()
    assert verdict == "initial_mismatch"
    assert metric is None


def test_prompts_that_differ_break_the_parity():
    prompts = np.full(40, 5.25)
    other = prompts.copy()
    other[17:] += 0.125
    con = star_of([pair(prompts, other, metric="response/prompt_len/mean")])
    build_all(con, statistics_models())
    ((verdict, step),) = con.execute("select verdict, parity_broken_at from mart_pair_verdict").fetchall()
    assert (verdict, step) == ("parity_broken", 18)


def test_few_common_steps_are_insufficient():
    con = star_of([pair(np.linspace(3, 2, 12), np.linspace(3, 2, 12) + 1e-6)])
    build_all(con, statistics_models())
    ((verdict,),) = con.execute("select verdict from mart_pair_verdict").fetchall()
    assert verdict == "insufficient"


def test_a_stage_that_becomes_slower_is_a_verdict_on_time_and_no_drift():
    rng = np.random.default_rng(10)
    base = 15 * np.exp(0.05 * rng.standard_normal(100))
    slow = 15 * np.exp(0.05 * rng.standard_normal(100))
    slow[49:] *= 1.6
    spell = 15 * np.exp(0.05 * rng.standard_normal(100))
    spell[80:] *= 1.0
    spell[60:72] *= 1.4
    con = star_of([pair(base, slow, metric="time/training")])
    build_all(con, statistics_models())
    ((verdict, time_verdict),) = con.execute("select verdict, time_verdict from mart_pair_verdict").fetchall()
    assert verdict != "drift"
    assert time_verdict.startswith("time/training 1.")
    assert "slower from step 5" in time_verdict
    con = star_of([pair(base, spell, metric="time/training")])
    build_all(con, statistics_models())
    ((time_verdict,),) = con.execute("select time_verdict from mart_pair_verdict").fetchall()
    assert time_verdict == "no stage became 25% slower or faster"


@pytest.mark.slow
def test_false_alarms_and_power_on_a_small_sample():
    cell = Cell(migrations=10, candidates=6, faulty_candidates=2, autocorrelation=0.3, wander=0.005, shift=2.0)
    con = judged(cell, seed=2)
    score = score_models(con, cell)
    assert score.false_pairs <= 0.125
    assert score.false_series <= 0.005
    assert score.power >= 0.85
    assert score.onset_error <= 1.5
    assert score.coverage >= 0.8
