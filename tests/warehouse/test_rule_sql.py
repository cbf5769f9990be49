import shutil

import pytest

from tests.warehouse.small_star import add_run, points_of
from warehouse.catalog import CatalogError, Rule, load_catalog
from warehouse.rule_sql import condition, instances
from warehouse.rules import check_rules, refresh_rule_breaks
from warehouse.settings import project_folder

CATALOG = load_catalog(project_folder("catalog"))


def rule(expression: str, metric: str = "m", where: str = "") -> Rule:
    return Rule("r", "expression", metric, expression, where, 0.0, 0.0, "error", (), "code", "M.", "rules/x.csv:7")


def test_a_rule_is_bound_where_all_that_it_needs_is_there():
    one = rule('"a" >= coalesce("b", 0) + "c"')
    assert [i.metrics for i in instances([one], ["a", "c"])] == [("a", "c")]
    assert [i.metrics for i in instances([one], ["a", "b", "c"])] == [("a", "b", "c")]
    assert instances([one], ["a", "b"]) == ()


def test_a_template_is_bound_in_every_way_that_fits():
    one = rule('"{base}/min" <= "{base}/max"', "{base}/max")
    bound = instances([one], ["x/min", "x/max", "y/z/min", "y/z/max", "w/min"])
    assert sorted(i.metric for i in bound) == ["x/max", "y/z/max"]
    pairs = rule('"p@{k}" <= "p@{k2}"', "p@{k2}", "k < k2")
    assert {i.metrics for i in instances([pairs], ["p@2", "p@4", "p@16"])} == {
        ("p@2", "p@4"),
        ("p@2", "p@16"),
        ("p@4", "p@16"),
    }


def test_only_the_outer_comparison_of_numbers_is_tolerant():
    bound = instances([rule('("a" > 0) = ("b" > 0)')], ["a", "b"])[0]
    assert condition(bound, {"a": "m0", "b": "m1"}) == "not ((m0 > 0) = (m1 > 0))"


@pytest.mark.parametrize(
    "expression", ['"a" >= ', "a >= 1", "1 < 2", '"a" >= 1, "b" >= 2', 'drop table x', '"a" "b" "c" >= 1']
)  # fmt: skip
def test_what_is_no_rule_is_told_with_file_and_line(expression):
    with pytest.raises(CatalogError, match=r"rules/x\.csv:7: the expression of r"):
        check_rules([rule(expression)])


def test_a_wrong_where_is_told():
    with pytest.raises(CatalogError, match="column where"):
        instances([rule('"p@{k}" <= "p@{k2}"', where="k unlike k2")], ["p@2", "p@4"])


def test_all_rules_of_the_catalogue_compile():
    check_rules(CATALOG.rules)
    assert len(CATALOG.rules) >= 45


def test_a_new_row_is_a_new_rule(tmp_path, star):
    folder = tmp_path / "catalog"
    shutil.copytree(project_folder("catalog"), folder)
    with (folder / "rules" / "6_time.csv").open("a", encoding="utf-8") as file:
        file.write('short_step,expression,time/step,"""time/step"" <= 100",,,,warning,inferred,A long step.\n')
    changed = load_catalog(folder)
    add_run(star, changed, points_of({"time/step": {1: 99.0, 2: 101.0}}))
    refresh_rule_breaks(star, changed.rules)
    rows = star.execute("select step, rule_id, severity, observed from fct_rule_break").fetchall()
    assert rows == [(2, "short_step", "warning", "time/step = 101.0")]
    assert star.execute("select meaning from dim_rule where rule_id = 'short_step'").fetchone() == ("A long step.",)
