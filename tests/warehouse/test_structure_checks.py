from collections.abc import Iterator

import duckdb
import pytest

from tests.warehouse.rule_cases import XTUNER
from tests.warehouse.small_star import add_run, points_of
from warehouse.catalog import load_catalog
from warehouse.checks import load_checks, run_check
from warehouse.contract import stable_id
from warehouse.project import load_project
from warehouse.rules import refresh_rule_breaks
from warehouse.runner import build_all
from warehouse.schema import apply_macros, apply_schema, macro_files, schema_files
from warehouse.settings import project_folder

CATALOG = load_catalog(project_folder("catalog"))
CHECKS = {check.name: check for check in load_checks(project_folder("sql") / "checks")}
# A finding about runs, not about structure, that is shown in red all the same.
RED_FINDING = "mart_anomaly__no_rule_is_broken"
FINDINGS = sorted(name for name, check in CHECKS.items() if check.severity == "warn" or name == RED_FINDING)
STRUCTURE = sorted(CHECKS.keys() - FINDINGS)
ESS = "rollout_is/mismatch/rollout_is_eff_sample_size"


@pytest.fixture(scope="module")
def built() -> Iterator[duckdb.DuckDBPyConnection]:
    """A star of one sound pair, with all models."""
    con = duckdb.connect()
    con.execute("set timezone = 'UTC'")
    apply_schema(con)
    apply_macros(con)
    ids = {}
    for name in ("a", "b"):
        values = {m: dict.fromkeys(range(1, 11), value) for m, value in XTUNER.items()}
        ids[name] = add_run(con, CATALOG, points_of(values), name)
    con.execute(
        """
        insert into dim_step
        select distinct run_id, step_axis, attempt, step, null::timestamp, null::double, true, true from fct_metric
        """
    )
    con.execute(
        """
        insert into dim_migration
        values (?, 'migration', 'migration', 'declared', ?, 'a', ?, 'b', 'stack', 'stack', 'v')
        """,
        [stable_id("migration", "a", "b"), ids["a"], ids["b"]],
    )
    con.execute("insert into etl_state values ('catalog_hash', 'x')")
    refresh_rule_breaks(con, CATALOG.rules)
    build_all(con, load_project(project_folder("models"), schema_files(), macro_files()))
    yield con
    con.close()


@pytest.fixture
def star(built: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The built star; what a test changes is undone."""
    built.begin()
    yield built
    built.rollback()


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_a_sound_star_passes(star, name):
    outcome = run_check(star, CHECKS[name])
    assert outcome.passed, outcome.sample


def test_structure_blocks_and_findings_never_do():
    assert len(STRUCTURE) >= 25
    assert len(FINDINGS) >= 8
    assert not any(CHECKS[name].is_blocking for name in FINDINGS)
    assert CHECKS[RED_FINDING].severity == "error"
    assert [name for name in STRUCTURE if not CHECKS[name].is_blocking] == ["fct_metric__writes_are_numbered"]


BREAK = "insert into fct_rule_break values (5, 'step', 1, 1, 'm', 'r', 'error', 'o', 'e')"
TWICE = "insert into {table} select * from {table} limit 1"
FAULTS = {
    "bridge_run_component__component_is_known": "insert into bridge_run_component select run_id, 1 from dim_run",
    "bridge_run_component__run_is_known": "insert into bridge_run_component values (1, 1)",
    "bridge_run_metric__run_and_metric_are_known": "insert into bridge_run_metric values (1, 1, 'float64')",
    "dim_migration__one_row_a_pair": "insert into dim_migration select * replace (1 as pair_id) from dim_migration",
    "dim_migration__runs_are_known": "update dim_migration set baseline_run_id = 5",
    "dim_metric__category_is_known": "update dim_metric set category = 'weather' where metric = 'time/step'",
    "dim_metric__duplicates_are_known": "update dim_metric set duplicates_of = 'none' where metric = 'time/step'",
    "dim_run__one_row_a_run_name": "insert into dim_run select * replace (1 as run_id) from dim_run limit 1",
    "dim_step__covers_every_point": "delete from dim_step where step = 4",
    "dim_step__one_current_attempt": "insert into dim_step select * replace (2 as attempt) from dim_step limit 1",
    "dim_step__run_is_known": "insert into dim_step select * replace (5 as run_id) from dim_step limit 1",
    "fct_metric__kind_fits_value": "update fct_metric set value = 'nan' where step = 3",
    "fct_metric__metric_is_known": "update fct_metric set metric_id = 5 where step = 3",
    "fct_metric__one_current_write": "update fct_metric set is_current = false where step = 3",
    "fct_metric__run_is_known": "update fct_metric set run_id = 5 where step = 3",
    "fct_metric__writes_are_numbered": "update fct_metric set write_no = 2 where step = 3",
    "fct_parse_issue__run_is_known": "insert into fct_parse_issue values (5, 'f', 1, 'r', 's', 1)",
    "fct_rule_break__metric_is_known": BREAK,
    "fct_rule_break__rule_is_known": BREAK,
    "fct_rule_break__run_is_known": BREAK,
    "fct_rule_break__one_row_a_break": """
        insert into fct_rule_break
        select 5, 'step', 1, 1, 'm', 'r', 'error', 'o', 'e' from range(2)""",
    "int_contaminated_step__one_row_a_spoiled_point": """
        insert into int_contaminated_step select 5, 6, 'step', 1, 'empty_pack', 'r' from range(2)""",
    "int_contrast_member__one_row_a_pair": """
        insert into int_contrast_member by name
        select 'hardware' as component_kind, 'npu' as arm, 'all' as metric_group, 'drift' as onset_kind, 1 as pair_id
        from range(2)""",
    "mart_first_drift__one_row_a_rank": """
        insert into mart_first_drift by name select pair_id, 1 as rank, 'm' as metric from dim_migration, range(2)""",
    "mart_metric_profile__covers_every_metric": "delete from mart_metric_profile where metric = 'time/step'",
    "mart_noise_floor__one_row_a_floor": """
        insert into mart_noise_floor by name select 'm' as migration, 's' as stack, 1 as metric_id from range(2)""",
    "mart_pair_verdict__covers_every_pair": "delete from mart_pair_verdict",
    "mart_run_health__covers_every_run": "delete from mart_run_health",
}
# Keys that the star itself enforces: the check guards against a table that was made without it.
ENFORCED = {"dim_metric__one_row_a_name"}


@pytest.mark.parametrize("name", [name for name in STRUCTURE if name not in ENFORCED])
def test_a_broken_structure_is_found(star, name):
    table = name.partition("__")[0]
    star.execute(FAULTS.get(name, TWICE.format(table=table)))
    outcome = run_check(star, CHECKS[name])
    assert outcome.failure_count > 0
    assert outcome.sample


FOUND = {
    "mart_metric_profile__every_metric_is_catalogued": """
        update dim_metric set is_catalogued = false where metric = 'time/step'""",
    "int_pair_point__both_runs_log_a_metric": """
        update int_pair_point set candidate_kind = null where metric_id = {time_step}""",
    "fct_parse_issue__nothing_is_quarantined": """
        insert into fct_parse_issue select run_id, 'f', 1, 'r', 's', 1 from dim_run""",
    "mart_anomaly__no_rule_is_bent": "update mart_anomaly set severity = 'warning'",
    "mart_anomaly__no_rule_is_broken": "update mart_anomaly set severity = 'error'",
    "mart_metric_profile__metrics_run_to_the_end": """
        update mart_metric_profile set last_step = 8, point_count = 8 where metric = 'time/step'""",
    "mart_metric_profile__values_are_finite": """
        update mart_metric_profile set finite_count = 7, first_nonfinite_step = 3""",
    "mart_metric_profile__values_are_possible": """
        update mart_metric_profile set outside_count = 1, first_outside_step = 3""",
    "mart_run_health__focus_metrics_are_logged": "update mart_run_health set focus_metrics_logged = 3",
    "mart_run_health__no_step_is_missing": "update mart_run_health set missing_steps = 3",
}


@pytest.mark.parametrize("name", FINDINGS)
def test_a_finding_is_reported(star, name):
    star.execute(FOUND[name].format(time_step=stable_id("time/step")))
    outcome = run_check(star, CHECKS[name])
    assert outcome.failure_count > 0


def test_a_finding_names_run_metric_and_first_step(star):
    star.execute(
        "update mart_metric_profile set finite_count = 9, first_nonfinite_step = 7 where metric = ? and run_name = 'b'",
        [ESS],
    )
    outcome = run_check(star, CHECKS["mart_metric_profile__values_are_finite"])
    assert outcome.columns[:4] == ("migration", "run_name", "metric", "first_step")
    assert [row[:5] for row in outcome.sample] == [("migration", "b", ESS, 7, 1)]
