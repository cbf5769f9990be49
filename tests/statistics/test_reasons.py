"""The sentences of verdicts and their reasons, on pairs with a known answer; each pair is a migration of one star."""

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest

from tests.statistics.star import Migration, Run, build, open_star, project, statistics_models

LOSS = "train_metrics/worker_0/step_avg_reduced_llm_loss"
REWARD = "response/rewards/mean"
PROMPTS = "response/prompt_len/mean"
STEPS = 60
RNG = np.random.default_rng(11)
PATH = 2.0 + 0.3 * RNG.standard_normal(STEPS)


def noise(size: float) -> np.ndarray:
    return size * RNG.standard_normal(STEPS)


def pair(name: str, baseline: dict, candidate: dict, status: str = "finished") -> Migration:
    def run(run_name, role, values, **more):
        points = {metric: dict(enumerate(series.tolist(), start=1)) for metric, series in values.items()}
        return Run(run_name, role, run_name, points, **more)

    runs = run("gpu", "baseline", baseline), run("npu", "candidate", candidate, baseline="gpu", status=status)
    return Migration(name, runs)


def pairs() -> list[Migration]:
    gone = PATH.copy()
    gone[30:] = np.nan
    growing = np.minimum(1e-5 * 2 ** (np.arange(STEPS) / 3.0), 1e-2) * RNG.standard_normal(STEPS)
    shifted = PATH + noise(0.01) + np.where(np.arange(STEPS) >= 40, 0.5, 0.0)
    return [
        pair("equal", {LOSS: PATH}, {LOSS: PATH}),
        pair("prompts", {PROMPTS: PATH}, {PROMPTS: PATH}),
        pair("time", {"time/step": PATH}, {"time/step": PATH + noise(0.01)}),
        pair("short", {LOSS: PATH[:1]}, {LOSS: PATH[:1]}),
        pair("apart", {LOSS: PATH[:30]}, {REWARD: PATH[:30]}),
        pair("gone", {LOSS: gone}, {LOSS: PATH + noise(0.01)}),
        pair("quiet", {LOSS: PATH}, {LOSS: PATH + noise(0.001)}),
        pair("noisy", {LOSS: PATH}, {LOSS: PATH + noise(0.3)}),
        pair("coupled", {LOSS: PATH}, {LOSS: PATH + growing}),
        pair("mismatch", {LOSS: 2.0 + noise(0.01)}, {LOSS: 3.0 + noise(0.01)}),
        pair("axes", {LOSS: PATH, REWARD: PATH}, {LOSS: shifted, REWARD: PATH + noise(0.01)}, status="crashed"),
    ]


@pytest.fixture(scope="module")
def star() -> Iterator[duckdb.DuckDBPyConnection]:
    con = open_star(pairs())
    # Rollouts of this pair are counted from 101 on, updates from 1.
    con.execute(
        """
        update fct_metric as f set step = step + 100
        from dim_run as r, dim_metric as m
        where f.run_id = r.run_id and f.metric_id = m.metric_id and r.migration = 'axes' and m.metric = ?
        """,
        [LOSS],
    )
    con.execute(
        """
        update fct_metric as f set step_axis = 'update'
        from dim_run as r, dim_metric as m
        where f.run_id = r.run_id and f.metric_id = m.metric_id and r.migration = 'axes' and m.metric = ?
        """,
        [REWARD],
    )
    build(con, [*statistics_models(), "mart_time_shift", "mart_verdict_reason", "int_pair_survival"])
    yield con
    con.close()


def verdict(star, name: str) -> dict:
    (row,) = star.sql(f"select * from mart_pair_verdict where migration = '{name}'").to_arrow_table().to_pylist()
    return row


def reasons(star, name: str) -> dict[str, list]:
    rows = star.execute(
        "select reason_kind, metric, step, sentence from mart_verdict_reason where migration = ? order by ordinal desc",
        [name],
    ).fetchall()
    return {kind: facts for kind, *facts in rows}


@pytest.mark.parametrize(
    ("name", "expected", "sentence"),
    [
        ("equal", "within_floor", "Every value is equal to the last logged digit up to step 60."),
        ("prompts", "insufficient", "No metric of training could be tested"),
        ("time", "insufficient", "There is no step at which a metric of training can be compared."),
        ("apart", "insufficient", "There is no step at which a metric of training can be compared."),
        ("short", "insufficient", "Both runs can be compared at 1 step only; 20 are needed."),
        ("quiet", "within_floor", "No lasting difference up to step 60: measured by the noise of the pair itself"),
        ("coupled", "decoupled_only", "no metric has a lasting bias up to step 60: measured by the noise of the pair"),
    ],
)
def test_a_verdict_says_what_the_pair_was_held_against(star, name, expected, sentence):
    row = verdict(star, name)
    assert (row["verdict"], sentence in row["reason"]) == (expected, True), row["reason"]
    if expected == "insufficient":
        assert reasons(star, name)["insufficient"][-1] == row["reason"]


def test_a_baseline_that_is_not_finite_is_told_and_its_steps_are_not_counted(star):
    row = verdict(star, "gone")
    assert (row["verdict"], row["step_count"], row["last_common_step"]) == ("within_floor", 30, 30)
    assert "up to step 30" in row["reason"]
    metric, step, sentence = reasons(star, "gone")["baseline_nonfinite"]
    assert (metric, step) == (LOSS, 31)
    assert "of the baseline is not finite at step 31" in sentence
    censored = star.sql(
        "select duration, end_kind from int_pair_survival where migration = 'gone' and onset_kind = 'drift'"
    )
    assert set(censored.fetchall()) == {(30, "censored")}


def test_a_mismatch_of_the_start_is_the_first_reason(star):
    assert verdict(star, "mismatch")["verdict"] == "initial_mismatch"
    first = star.execute(
        "select reason_kind, metric, step from mart_verdict_reason where migration = 'mismatch' and ordinal = 1"
    ).fetchall()
    assert first == [("initial_mismatch", LOSS, 1)]


def test_one_metric_is_not_spoken_of_as_many(star):
    row = verdict(star, "coupled")
    metric, step, sentence = reasons(star, "coupled")["decouple"]
    assert (metric, step) == (LOSS, row["decoupled_at"])
    assert sentence == f"1 metric lost step-by-step equality at step {step}."


def test_a_shift_that_matters_and_could_not_be_found_is_a_reason(star):
    assert verdict(star, "noisy")["verdict"] in ("within_floor", "decoupled_only")
    metric, _, sentence = reasons(star, "noisy")["sensitivity"]
    missed = star.execute(
        "select smallest_detectable_shift from mart_divergence_onset where migration = 'noisy' and onset_kind = 'drift'"
    ).fetchall()[0][0]
    times = missed / (0.02 * np.mean(np.abs(PATH)))
    assert metric == LOSS
    assert f"by less than {times:.1f} times its practical limit (0.02 of the baseline)" in sentence
    assert "sensitivity" not in reasons(star, "quiet")


def test_an_onset_is_counted_from_the_first_step_of_its_own_counter(star):
    assert verdict(star, "axes")["first_metric"] == LOSS
    rows = star.execute(
        """
        select s.metric_group, s.duration, s.end_kind from int_pair_survival as s
        where s.migration = 'axes' and s.onset_kind = 'drift' and s.metric_group in ('all', 'response')
        order by all
        """
    ).fetchall()
    onset = verdict(star, "axes")["first_onset_step"]
    assert 139 <= onset <= 143
    assert rows == [("all", onset - 100, "onset"), ("response", 60, "crash")]


def test_steps_are_missing_where_the_stride_is_broken_and_not_between_strides(star):
    star.execute(
        """
        insert into dim_step
        select run_id, 'step', 1, step, null::timestamp, null::double, true, false
        from dim_run, (select unnest(range(10, 210, 10)) as step)
        where migration = 'quiet' and (run_name = 'gpu' or step not in (50, 60, 120))
        """
    )
    needed = ("stg_current_point", "mart_metric_profile", "mart_anomaly", "mart_run_health")
    build(star, [m.name for m in project().models if m.name in needed])
    rows = star.execute(
        "select run_name, step_count, missing_steps from mart_run_health where migration = 'quiet' order by run_name"
    ).fetchall()
    assert rows == [("gpu", 20, 0), ("npu", 17, 3)]
