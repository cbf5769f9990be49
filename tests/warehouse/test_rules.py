from collections.abc import Iterator

import duckdb
import pytest

from tests.warehouse.rule_cases import CASES, SOUND, XTUNER, Case
from tests.warehouse.small_star import add_run, points_of
from warehouse.catalog import load_catalog
from warehouse.rule_sql import instances
from warehouse.rules import refresh_rule_breaks
from warehouse.schema import apply_schema
from warehouse.settings import project_folder

CATALOG = load_catalog(project_folder("catalog"))
COUNTER, BATCH = "async/sample_from_dataset_count", "response/batch_size"
EXPRESSIONS = {r.rule_id for r in CATALOG.rules if r.kind == "expression"}


def names_of(cases) -> list[str]:
    return [f"{case.rule_id}-{number}" for number, case in enumerate(cases)]


def step(values) -> dict:
    return {name: {1: value} for name, value in values.items()}


def breaks_of(con: duckdb.DuckDBPyConnection, run_name: str) -> set[tuple[str, str, str]]:
    return set(
        con.execute(
            "select rule_id, metric, severity from fct_rule_break join dim_run using (run_id) where run_name = ?",
            [run_name],
        ).fetchall()
    )


@pytest.fixture(scope="module")
def checked() -> Iterator[duckdb.DuckDBPyConnection]:
    """All cases as runs of one step, checked at once."""
    con = duckdb.connect()
    apply_schema(con)
    for framework, values in SOUND.items():
        add_run(con, CATALOG, points_of(step(values)), f"sound {framework}", framework)
    for number, case in enumerate(CASES):
        values = SOUND[case.framework]
        add_run(con, CATALOG, points_of(step(values | case.changes)), f"broken {number}", case.framework)
        if case.holds:
            add_run(con, CATALOG, points_of(step(values | case.holds)), f"holds {number}", case.framework)
    refresh_rule_breaks(con, CATALOG.rules)
    yield con
    con.close()


@pytest.mark.parametrize("framework", SOUND)
def test_a_sound_step_breaks_nothing(checked, framework):
    assert breaks_of(checked, f"sound {framework}") == set()


@pytest.mark.parametrize(("number", "case"), enumerate(CASES), ids=names_of(CASES))
def test_a_fault_breaks_its_rule(checked, number, case: Case):
    assert (case.rule_id, case.metric, case.severity) in breaks_of(checked, f"broken {number}")


EDGES = [(number, case) for number, case in enumerate(CASES) if case.holds]


@pytest.mark.parametrize(("number", "case"), EDGES, ids=names_of(case for _, case in EDGES))
def test_at_its_edge_the_rule_holds(checked, number, case: Case):
    assert case.rule_id not in {rule for rule, _, _ in breaks_of(checked, f"holds {number}")}


def test_every_rule_has_a_case():
    elsewhere = {"counter_never_falls", "batch_size_steady"}
    assert {r.rule_id for r in CATALOG.rules} - {case.rule_id for case in CASES} == elsewhere


@pytest.mark.parametrize("rule_id", sorted(EXPRESSIONS))
def test_the_sound_steps_exercise_every_rule(checked, rule_id):
    logged = checked.execute("select distinct metric from fct_metric join dim_metric using (metric_id)").fetchall()
    metrics = [metric for (metric,) in logged]
    assert rule_id in {i.rule.rule_id for i in instances(CATALOG.rules, metrics)}


def test_what_was_seen_and_what_must_hold_are_told(checked):
    number = next(n for n, case in enumerate(CASES) if case.rule_id == "tail_ratio")
    row = checked.execute(
        """
        select observed, expected from fct_rule_break join dim_run using (run_id)
        where run_name = ? and rule_id = 'tail_ratio'
        """,
        [f"broken {number}"],
    ).fetchone()
    assert row == (
        "task_time/p99_p50_ratio = 1.4516129032258065, task_time/p99 = 310.0, task_time/p50 = 140.0",
        "task_time/p99_p50_ratio = task_time/p99 / nullif(task_time/p50, 0)",
    )


def test_rules_may_differ_by_framework(star):
    changed = XTUNER | {"response/rewards/mean": 1.2, "mismatch/mismatch_kl": 0.0007}
    for framework in ("xtuner", "verl", "slime", ""):
        add_run(star, CATALOG, points_of(step(changed)), framework or "none", framework)
    refresh_rule_breaks(star, CATALOG.rules)
    found = {f: {(r, s) for r, _, s in breaks_of(star, f)} for f in ("xtuner", "verl", "slime", "none")}
    mean = {f: {s for r, s in found[f] if r == "mean_between_extremes"} for f in found}
    assert mean == {"xtuner": {"error"}, "verl": {"warning"}, "slime": {"error"}, "none": {"error"}}
    assert {f for f in found if ("kl_is_log_ppl_diff", "error") in found[f]} == {"xtuner"}


def test_counters_fall_and_batches_change_between_steps(star):
    sound = {COUNTER: {1: 10, 2: 20, 3: 20, 4: 25}, BATCH: {1: 64, 2: 64, 3: 64, 4: 64}}
    faulty = {COUNTER: {1: 10, 2: 20, 3: 5, 4: 15}, BATCH: {1: 64, 2: 32, 3: 32, 4: 32}}
    add_run(star, CATALOG, points_of(sound), "sound")
    add_run(star, CATALOG, points_of(faulty), "faulty")
    refresh_rule_breaks(star, CATALOG.rules)
    assert breaks_of(star, "sound") == set()
    rows = star.execute("select rule_id, step, observed, expected from fct_rule_break order by 1").fetchall()
    assert rows == [
        ("batch_size_steady", 2, "32.0", "the 64.0 of the step before it"),
        ("counter_never_falls", 3, "5.0", "at least 20.0, the value before it"),
    ]


@pytest.mark.parametrize(
    ("log_precision", "value", "breaks"),
    [
        ("float64", 0.2504, True),
        ("decimal3", 0.2504, False),
        ("decimal3", 0.252, True),
        ("digits4", 0.2501, False),
        ("digits4", 0.2504, True),
        ("float32", 0.2501, True),
    ],
)
def test_the_tolerance_knows_the_precision_of_the_log(star, log_precision, value, breaks):
    mean = {"x/min": {1: 0.0}, "x/mean": {1: value}, "x/max": {1: 0.25}}
    add_run(star, CATALOG, points_of(mean), "run", "xtuner", log_precision)
    refresh_rule_breaks(star, CATALOG.rules)
    assert (("mean_between_extremes", "x/mean", "error") in breaks_of(star, "run")) is breaks


def test_three_decimals_do_not_break_a_multiple_of_questions(star):
    add_run(star, CATALOG, points_of({"eval/AIME2024_Pass@4": {1: 0.833}}), "run", "xtuner", "decimal3")
    refresh_rule_breaks(star, CATALOG.rules)
    assert breaks_of(star, "run") == set()


def test_only_the_given_runs_are_checked_again(star):
    first = add_run(star, CATALOG, points_of({BATCH: {1: 64.5}}), "first")
    add_run(star, CATALOG, points_of({BATCH: {1: 64.5}}), "second")
    refresh_rule_breaks(star, CATALOG.rules)
    star.execute("update fct_metric set value = 64")
    result = refresh_rule_breaks(star, CATALOG.rules, [first])
    assert (result.breaks, result.passes) == (0, 2)
    assert breaks_of(star, "first") == set()
    assert breaks_of(star, "second") == {("whole_number", BATCH, "error")}
    refresh_rule_breaks(star, CATALOG.rules, [])
    assert breaks_of(star, "second") == {("whole_number", BATCH, "error")}


def test_a_step_that_a_later_attempt_logged_again_counts_once(star):
    run_id = add_run(star, CATALOG, points_of({BATCH: {1: 64.5}}), "run")
    star.execute("insert into fct_metric select * replace (2 as attempt, 64.0 as value) from fct_metric")
    star.execute("update fct_metric set is_current = attempt = 2 where run_id = ?", [run_id])
    refresh_rule_breaks(star, CATALOG.rules)
    assert breaks_of(star, "run") == set()
