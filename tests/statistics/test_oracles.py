"""The arithmetic in SQL against independent implementations."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from lifelines import KaplanMeierFitter
from lifelines.statistics import logrank_test
from lifelines.utils import restricted_mean_survival_time
from statsmodels.stats.multitest import multipletests

from benchmarks.fleet import Fleet, judge, survival_rows
from benchmarks.simulator import Cell, open_star, simulate
from tests.statistics.star import project
from warehouse.schema import apply_macros, apply_schema

MODELS = project()
TO_THE_FIT = (
    "int_contaminated_step",
    "int_pair_point",
    "int_scaled_point",
    "int_floor_step",
    "int_replicate_fit",
    "int_pair_floor",
    "mart_paired_delta",
    "int_level_fit",
)


@pytest.fixture
def macros():
    con = duckdb.connect()
    apply_schema(con)
    apply_macros(con)
    yield con
    con.close()


def largest_f(series: np.ndarray, shortest: int) -> tuple[float, int]:
    """Try every split the slow way; return the largest F and the index at which the right side begins."""
    best, onset = -1.0, -1
    n = len(series)
    for k in range(shortest, n - shortest + 1):
        left, right = series[:k], series[k:]
        sse = ((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum()
        flat = ((series - series.mean()) ** 2).sum()
        f = (flat - sse) / max(sse / (n - 2), 0.5)
        if f > best:
            best, onset = f, k
    return best, onset


def test_the_split_is_the_one_that_trying_all_splits_finds():
    cell = Cell(migrations=1, candidates=4, faulty_candidates=2, metrics=6, steps=60, shift=3.0, onset=31, start=1.0)
    values = simulate(cell, 3)
    con = open_star(cell, values, "none")
    for name in TO_THE_FIT:
        con.execute(f"create table {name} as\n{MODELS.model(name).sql}")
    rows = con.execute(
        """
        select p.candidate_run_name, m.metric, f.f, f.onset_step, f.sigma
        from int_level_fit as f
        inner join dim_migration as p on f.pair_id = p.pair_id
        inner join dim_metric as m on f.metric_id = m.metric_id
        """
    ).fetchall()
    assert len(rows) == 4 * 6
    for candidate, metric, f, onset, sigma in rows:
        run = cell.baseline_runs + cell.candidate_runs + int(candidate[-1])
        delta = values[0, run, int(metric[-3:])] - values[0, 0, int(metric[-3:])]
        middle = np.median(delta)
        clipped = np.clip(delta - middle, -2.5 * sigma, 2.5 * sigma) / sigma
        expected, index = largest_f(clipped, 8)
        assert f == pytest.approx(expected, rel=1e-9)
        assert onset == index + 1


@pytest.mark.parametrize("n", [50, 80, 150])
def test_the_tail_of_the_largest_f_is_not_too_small(macros, n):
    rng = np.random.default_rng(n)
    shortest = max(8, n // 8)
    x = rng.standard_normal((4000, n))
    left, total, squares = x.cumsum(axis=1), x.sum(axis=1, keepdims=True), (x * x).sum(axis=1, keepdims=True)
    k = np.arange(shortest, n - shortest + 1)
    s = left[:, k - 1]
    sse = squares - s * s / k - (total - s) ** 2 / (n - k)
    largest = ((squares - total**2 / n - sse) / (sse / (n - 2))).max(axis=1)
    for level in (0.1, 0.02):
        ((p,),) = macros.execute("select largest_f_p(?, ?)", [float(np.quantile(largest, 1 - level)), n]).fetchall()
        assert level * 0.85 < p < level * 2.5


def adjusted(p: np.ndarray, method: str) -> np.ndarray:
    return np.asarray(multipletests(p, method=method)[1])


def test_q_values_agree_with_statsmodels():
    cell = Cell(migrations=1, candidates=1, faulty_candidates=1, metrics=40, shift=2.0, faulty_metrics=7)
    con = open_star(cell, simulate(cell, 5), "both")
    for name in (*TO_THE_FIT, "int_start_offset", "int_drift_test"):
        con.execute(f"create table {name} as\n{MODELS.model(name).sql}")
    rows = con.execute(
        """
        select category, p_value, q_in_category, q_in_family, q_value, q_value_strict
        from int_drift_test order by metric
        """
    ).fetchall()
    categories = np.array([r[0] for r in rows])
    p = np.array([r[1] for r in rows])
    np.testing.assert_allclose([r[3] for r in rows], adjusted(p, "fdr_bh"), rtol=1e-9)
    np.testing.assert_allclose([r[5] for r in rows], adjusted(p, "fdr_by"), rtol=1e-9)
    names = sorted(set(categories))
    inside = np.empty(len(p))
    for name in names:
        inside[categories == name] = adjusted(p[categories == name], "fdr_bh")
    np.testing.assert_allclose([r[2] for r in rows], inside, rtol=1e-9)
    simes = np.array([inside[categories == name].min() for name in names])
    q_of_category = dict(zip(names, adjusted(simes, "fdr_bh"), strict=True))
    chosen = max(1, sum(q <= 0.05 for q in q_of_category.values()))
    expected = [
        min(1.0, max(q_of_category[c], q * len(names) / chosen)) for c, q in zip(categories, inside, strict=True)
    ]
    np.testing.assert_allclose([r[4] for r in rows], expected, rtol=1e-9)


@pytest.fixture(scope="module")
def fleet():
    rows, components = survival_rows(Fleet(), 11)
    con = judge(MODELS, rows, components)
    yield con, rows, components
    con.close()


def test_kaplan_meier_and_restricted_mean_agree_with_lifelines(fleet):
    con, rows, components = fleet
    for version in range(4):
        runs = {c[0] for c in components if c[1] == "attention_kernel" and c[3] == str(version)}
        arm = [r for r in rows if r["candidate_run_id"] in runs]
        fitted = KaplanMeierFitter().fit([r["duration"] for r in arm], [r["is_event"] for r in arm])
        curve = con.execute(
            """
            select duration, survival, standard_error, median_duration, span, restricted_mean
            from mart_drift_survival where arm = ? and metric_group = 'all' order by duration
            """,
            [f"flash {version}"],
        ).fetchall()
        for duration, survival, *_ in curve:
            assert survival == pytest.approx(float(fitted.predict(duration)), abs=1e-9)
        median, span, restricted = curve[0][3:]
        expected_median = fitted.median_survival_time_
        assert (median is None) == np.isinf(expected_median)
        if median is not None:
            assert median == expected_median
        assert restricted == pytest.approx(float(restricted_mean_survival_time(fitted, t=span)), abs=1e-9)  # type: ignore[arg-type]


def test_the_log_rank_statistic_agrees_with_lifelines_in_one_stratum():
    rows, _ = survival_rows(Fleet(), 12)
    versions = {r["candidate_run_id"]: (0 if i % 3 == 0 else 1) for i, r in enumerate(rows)}
    con = judge(MODELS, rows, [(run, "driver", "driver", str(v)) for run, v in versions.items()])
    arm = [r for r in rows if versions[r["candidate_run_id"]] == 0]
    rest = [r for r in rows if versions[r["candidate_run_id"]] == 1]
    expected = logrank_test(
        [r["duration"] for r in arm],
        [r["duration"] for r in rest],
        [r["is_event"] for r in arm],
        [r["is_event"] for r in rest],
    ).test_statistic
    ((found,),) = con.execute(
        "select chi_square from mart_component_contrast where arm = 'driver 0' and metric_group = 'all'"
    ).fetchall()
    assert found == pytest.approx(expected, abs=1e-9)
    con.close()


def test_values_are_equal_at_the_precision_of_the_coarser_log(macros):
    cases = [
        (1.0, 1.0, "float64", "float64", True),
        (1.0, 1.0 + 1e-12, "float64", "float64", False),
        (1.0, 1.0 + 1e-12, "float64", "float32", True),
        (0.1234, 0.12341, "decimal3", "float64", True),
        (0.123, 0.125, "decimal3", "decimal3", False),
        (12341.0, 12342.0, "digits4", "float64", True),
        (float("nan"), float("nan"), "float64", "float64", True),
        (float("nan"), 1.0, "float64", "float64", False),
        (1e40, 1e40, "float32", "float64", True),
        (1e40, 2e40, "float32", "float64", False),
        (1e40, 1.0, "float32", "float64", False),
        (1.7e308, -1.7e308, "float32", "float32", False),
    ]
    table = pa.table({c: [case[i] for case in cases] for i, c in enumerate(("a", "b", "pa", "pb", "expected"))})
    macros.register("cases", table)
    wrong = macros.execute("select * from cases where values_equal(a, b, pa, pb) is distinct from expected").fetchall()
    assert not wrong
