import shutil

from warehouse.catalog import Domain, load_catalog
from warehouse.metrics_page import PAGE, domain_text, metric_card, metrics_page
from warehouse.settings import project_folder

CATALOG = load_catalog(project_folder("catalog"))
ESS = "rollout_is/mismatch/rollout_is_eff_sample_size"


def test_the_page_is_current():
    """If this fails: python -m warehouse.metrics_page."""
    page = project_folder("catalog").parent / PAGE
    assert page.read_text(encoding="utf-8") == metrics_page(CATALOG)


def test_the_page_names_every_metric_alias_rule_and_correction():
    page = metrics_page(CATALOG)
    for metric in CATALOG.metrics:
        assert f"`{metric.metric}`" in page
    for alias in CATALOG.aliases:
        assert f"`{alias.name}`" in page
    for rule in CATALOG.rules:
        assert f"`{rule.rule_id}`" in page
    for correction in CATALOG.corrections:
        assert correction.holds in page


def test_the_page_follows_a_new_row(tmp_path):
    folder = shutil.copytree(project_folder("catalog"), tmp_path / "catalog")
    with (folder / "aliases" / "verl.csv").open("a", encoding="utf-8") as file:
        file.write("verl,,my/pace,time/step,scaled,0.001,In milliseconds.\n")
    assert "| verl | `my/pace` | `time/step` | scaled (times 0.001) | In milliseconds. |" in metrics_page(
        load_catalog(folder)
    )


def test_a_card_gathers_all_about_a_metric():
    card = metric_card(CATALOG, "rollout_corr/rollout_is_eff_sample_size", "verl")
    assert card.metric.metric == ESS
    assert (card.category.label_zh, card.tier_name) == ("IS/校正", "importance sampling")
    assert ("verl", "rollout_corr/rollout_is_eff_sample_size") in {(a.framework, a.name) for a in card.aliases}
    assert {r.rule_id for r in card.rules} == {"finite", "domain", "ess_matches_spread"}
    assert [c.metric for c in card.corrections] == [ESS]


def test_a_card_of_a_family_member_and_of_an_unknown_metric():
    member = metric_card(CATALOG, "eval/SortDigits8_Pass@4")
    assert {"pass_grows_with_k", "mean_accuracy_below_pass"} <= {r.rule_id for r in member.rules}
    unknown = metric_card(CATALOG, "my/own_number")
    assert (unknown.category.category, unknown.aliases) == ("uncatalogued", ())
    assert {r.rule_id for r in unknown.rules} == {"finite"}


def test_domains_are_written_as_intervals():
    assert domain_text(Domain()) == "any number"
    assert domain_text(Domain(0, 1, low_open=True)) == "(0, 1]"
    assert domain_text(Domain(1, None, is_integer=True)) == "whole numbers in [1, inf)"
