from pathlib import Path

import duckdb
import numpy as np
import pytest

from pipelines.ingest.registry import read_log
from tests.warehouse.padded_log import PREFIX, write_padded_log
from tests.warehouse.rule_cases import XTUNER
from tests.warehouse.small_star import add_run, points_of
from warehouse.catalog import load_catalog
from warehouse.rules import refresh_rule_breaks
from warehouse.settings import project_folder

CATALOG = load_catalog(project_folder("catalog"))
MODELS = ("intermediate/int_contaminated_step", "marts/mart_metric_profile", "marts/mart_anomaly")
ESS = PREFIX + "eff_sample_size"


def build(con: duckdb.DuckDBPyConnection) -> None:
    """Check the rules and build the models about anomalies."""
    refresh_rule_breaks(con, CATALOG.rules)
    for model in MODELS:
        name = model.rsplit("/", 1)[1]
        text = (project_folder("models") / f"{model}.sql").read_text(encoding="utf-8")
        con.execute(f"create or replace table {name} as {text}")


def load_log(con: duckdb.DuckDBPyConnection, path: Path, name: str = "run") -> int:
    log = read_log(path)
    return add_run(con, CATALOG, log.points, name, log.framework, log.log_precision)


def found(con: duckdb.DuckDBPyConnection, where: str = "true") -> list[tuple]:
    return con.execute(
        f"select step, metric, rule_id, severity, cause from mart_anomaly where {where} order by all"
    ).fetchall()


def series(values, start: int = 1) -> dict[int, float | None]:
    return dict(enumerate(values, start=start))


# Logs of the examples, and real ones


def test_the_examples_have_an_error_in_one_metric_of_one_run(star):
    for path in sorted(project_folder("examples").glob("*.jsonl.gz")):
        load_log(star, path, path.name.removesuffix(".jsonl.gz"))
    build(star)
    rows = star.execute(
        "select run_name, metric, cause, min(step), count(*) from mart_anomaly where severity = 'error' group by all"
    ).fetchall()
    assert rows == [("npu_ess_overflow_at60", ESS, "numeric_overflow", 60, 91)]


@pytest.mark.parametrize("run", ["gpu_n0", "gpu_n1", "gpu_n2", "gpu_n3", "npu_n0", "npu_n1", "npu_n2"])
def test_an_unbroken_run_has_no_error(star, cases_dir, run):
    load_log(star, cases_dir / "lab" / f"{run}.jsonl.gz")
    build(star)
    assert found(star, "severity <> 'info'") == []


def test_an_overflow_is_charged_to_the_diagnostic_alone(star, cases_dir):
    load_log(star, cases_dir / "lab" / "npu_ess_overflow_at60.jsonl.gz")
    build(star)
    rows = found(star, "severity <> 'info'")
    assert {(metric, severity, cause) for _, metric, _, severity, cause in rows} == {(ESS, "error", "numeric_overflow")}
    assert sorted({step for step, *_ in rows}) == list(range(60, 151))
    assert star.execute("select count(*) from int_contaminated_step").fetchone() == (0,)


def test_the_known_breaks_of_old_verl_are_warnings(star, cases_dir):
    load_log(star, cases_dir / "real" / "verl_console_old_names.log")
    build(star)
    rows = found(star, "severity <> 'info'")
    assert {(rule, severity) for _, _, rule, severity, _ in rows} == {("mean_between_extremes", "warning")}
    by_metric = {m: sum(1 for _, metric, *_ in rows if metric == m) for m in {row[1] for row in rows}}
    assert by_metric == {"critic/returns/mean": 60, "response/advantages/mean": 7}


def test_the_other_real_logs_have_no_error(star, cases_dir):
    for path in (
        *sorted((cases_dir / "real").glob("verl_console_[mn]*.log")),
        *sorted((cases_dir / "real" / "tensorboard_twins").iterdir()),
        cases_dir / "real" / "tensorboard_restart",
        *sorted((cases_dir / "drift").iterdir()),
    ):
        load_log(star, path, path.name)
    build(star)
    assert found(star, "severity <> 'info'") == []
    stores = star.execute("select distinct run_name from mart_anomaly where cause = 'float32_store'").fetchall()
    assert {name for (name,) in stores} >= {"base", "async", "tensorboard_restart", "torchtitan_llama3_cuda.txt"}
    assert not {name for (name,) in stores} & {"verl_console_megatron.log", "verl_console_np_float64.log"}


# Causes, on small logs


@pytest.mark.parametrize("as_written", ["Infinity", "null"])
def test_a_pack_of_padding_explains_its_step(star, tmp_path, as_written):
    path = tmp_path / "tracker.jsonl"
    write_padded_log(path, 40, padded={12, 13, 31})
    text = path.read_text(encoding="utf-8")
    assert text.count("Infinity") == 3
    path.write_text(text.replace("Infinity", as_written), encoding="utf-8")
    load_log(star, path)
    build(star)
    rows = found(star, "cause = 'empty_pack'")
    assert {step for step, *_ in rows} == {12, 13, 31}
    assert {(m, r, s) for _, m, r, s, _ in rows} >= {(ESS, "finite", "error")}
    errors = found(star, "severity = 'error' and cause is distinct from 'empty_pack'")
    assert errors == []
    left = star.execute(
        "select step, list(metric order by metric) from int_contaminated_step join dim_metric using (metric_id) group by 1 order by 1"  # noqa: E501
    ).fetchall()
    assert [step for step, _ in left] == [12, 13, 31]
    assert {PREFIX + "mean", PREFIX + "std", PREFIX + "seq_mean", ESS} <= set(left[0][1])
    assert not {PREFIX + "max", PREFIX + "min", "response/rewards/mean", "time/step"} & set(left[0][1])


def test_an_infinite_sample_size_alone_is_no_empty_pack(star):
    values = {name: series([value] * 3) for name, value in XTUNER.items()}
    values[ESS] = series([0.999, float("inf"), 0.9991])
    add_run(star, CATALOG, points_of(values))
    build(star)
    assert found(star, "severity = 'error'") == [(2, ESS, "finite", "error", "numeric_overflow")]
    assert star.execute("select count(*) from int_contaminated_step").fetchone() == (0,)


def test_no_overflow_where_an_input_is_broken_too(star):
    values = {name: series([value] * 3) for name, value in XTUNER.items()}
    values[ESS] = series([0.999, float("inf"), 0.9991])
    values[PREFIX + "std"] = series([0.03, float("nan"), 0.03])
    add_run(star, CATALOG, points_of(values))
    build(star)
    assert found(star, f"metric = '{ESS}' and severity = 'error'") == [(2, ESS, "finite", "error", None)]


def test_values_that_a_store_rewrote(star):
    points = points_of({"mismatch/mismatch_kl": series([0.001, None, 0.002]), ESS: series([0.9, 1.797e308, 0.9])})
    add_run(star, CATALOG, points)
    star.execute("update fct_metric set value_kind = 'rewritten_suspect' where step = 3 and value = 0.002")
    build(star)
    assert found(star, "severity = 'error'") == [
        (2, "mismatch/mismatch_kl", "finite", "error", "nonfinite_rewritten"),
        (2, ESS, "domain", "error", "nonfinite_rewritten"),
        (3, "mismatch/mismatch_kl", "finite", "error", "nonfinite_rewritten"),
    ]


def test_what_a_reader_restored_was_rewritten_too(star):
    add_run(star, CATALOG, points_of({"loss": series([0.5, float("inf"), float("nan")])}))
    star.execute("update fct_metric set raw_text = '1.7976931348623157e308' where value = 'inf'::double")
    star.execute("update fct_metric set raw_text = 'NaN' where isnan(value)")
    build(star)
    assert found(star, "severity = 'error'") == [
        (2, "loss", "finite", "error", "nonfinite_rewritten"),
        (3, "loss", "finite", "error", None),
    ]


def test_a_store_of_single_precision(star):
    exact = np.random.default_rng(1).uniform(0.1, 1, 40)
    single = exact.astype(np.float32).astype(float)
    short = np.round(exact * 8) / 8
    for name, values in (("double", exact), ("single", single), ("eighths", short)):
        add_run(star, CATALOG, points_of({"loss": series(values.tolist())}), name)
    build(star)
    rows = star.execute("select run_name, metric, severity, cause, observed from mart_anomaly").fetchall()
    assert [row[:4] for row in rows] == [("single", "(all metrics)", "info", "float32_store")]
    assert rows[0][4].endswith("values with long fractions are single precision")


@pytest.mark.parametrize("written", ["null", "NaN", "Infinity"])
def test_a_null_is_a_value_of_unknown_kind(star, tmp_path, written):
    path = tmp_path / "log.jsonl"
    rows = [f'{{"step": {n}, "data": {{"{ESS}": {written if n == 3 else 0.99}}}}}' for n in range(1, 6)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    load_log(star, path)
    build(star)
    kind = {"null": "nonfinite_unknown", "NaN": "nan", "Infinity": "pos_inf"}[written]
    observed = star.execute("select step, observed, cause from mart_anomaly where severity = 'error'").fetchall()
    cause = "nonfinite_rewritten" if written == "null" else None
    assert observed == [(3, f"{written} ({kind})", cause)]


def test_two_counters_on_one_axis(star):
    rng = np.random.default_rng(2)
    mixed = {
        "response/rewards/mean": series(rng.uniform(-0.9, 0.9, 10).tolist()),
        "train_metrics/worker_0/grad_norm": series(rng.uniform(0.1, 0.2, 40).tolist()),
        "eval/X_Pass@2": {5: 0.5, 10: 0.6},
    }
    add_run(star, CATALOG, points_of(mixed), "mixed")
    crashed = {name: dict(list(values.items())[:10]) for name, values in mixed.items()}
    add_run(star, CATALOG, points_of(crashed), "one axis")
    build(star)
    rows = star.execute("select run_name, step, metric, cause, severity from mart_anomaly where severity <> 'info'").fetchall()  # noqa: E501 # fmt: skip
    assert rows == [("mixed", 11, "train_metrics/worker_0/grad_norm", "step_axis_mixed", "warning")]


def test_a_counter_that_starts_again_on_resume(star):
    counter = "async/sample_from_aborted_count"
    run_id = add_run(star, CATALOG, points_of({counter: series([3, 7, 9, 1, 4])}))
    star.execute("update fct_metric set attempt = 2 where step >= 4 and run_id = ?", [run_id])
    build(star)
    assert found(star) == [(4, counter, "counter_reset_on_resume", "info", "counter_reset_on_resume")]
    # A log that doesn't say where it was resumed shows the same within one attempt.
    star.execute("update fct_metric set attempt = 1")
    build(star)
    assert found(star) == [(4, counter, "counter_never_falls", "warning", "counter_reset_on_resume")]


def test_constants_and_duplicates(star):
    rng = np.random.default_rng(3)
    moving = rng.uniform(0.4, 0.6, 10).tolist()
    values = {
        "time/step": series(moving),
        "my/step_seconds": series(moving),
        "entropy/train": series([0.5] * 10),
        "response/batch_size": series([64.0] * 10),
        "my/almost": series([*moving[:9], 0.123]),
    }
    add_run(star, CATALOG, points_of(values))
    build(star)
    assert found(star) == [
        (1, "entropy/train", "constant_metric", "info", "constant_metric"),
        (1, "my/step_seconds", "duplicate_metric", "info", "duplicate_metric"),
    ]
    seen = star.execute("select observed from mart_anomaly where cause = 'duplicate_metric'").fetchone()
    assert seen == ("equal to time/step at all of 10 steps",)


def test_profiles_count_each_kind(star):
    values = [1.0, float("nan"), float("inf"), float("-inf"), None, 3.0, 2.5]
    add_run(star, CATALOG, points_of({"entropy/train": series(values), ESS: series([0.5, 1.5, 0.0], start=4)}))
    build(star)
    row = star.execute(
        """
        select point_count, finite_count, nan_count, pos_inf_count, neg_inf_count, nonfinite_unknown_count,
            first_nonfinite_step, low, median, high, whole_count
        from mart_metric_profile where metric = 'entropy/train'
        """
    ).fetchone()
    assert row == (7, 3, 1, 1, 1, 1, 2, 1.0, 2.5, 3.0, 2)
    outside = star.execute(
        "select outside_count, first_outside_step from mart_metric_profile where metric = ?", [ESS]
    ).fetchone()
    assert outside == (2, 5)
