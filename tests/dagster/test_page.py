"""The Dagster page in a real browser: a log that lands becomes a verdict, and the page tells it."""

import json
import re
import time
from urllib.parse import quote

import duckdb
import pytest

from tests.dagster.instance import Instance, waited

pytestmark = pytest.mark.browser
DRIFTS = "npu_attn_mask_at60 drifts from step"
# What was planted at step 60 is found within a few steps of it.
ANSWER = re.compile(DRIFTS + r" (\d+) \(\d+ to \d+\), rollout_or_weight_sync")
NEAR = range(55, 66)


class Page:
    """The page of an instance in the browser."""

    def __init__(self, browser, instance: Instance, folder):
        self.browser = browser
        self.instance = instance
        self.folder = folder

    def open(self, path: str, *texts: str) -> str:
        """Open a page and wait until it shows the texts; return all that it shows."""
        self.browser.get(self.instance.address + path)
        return self.shows(*texts)

    def shows(self, *texts: str) -> str:
        def shown() -> str | None:
            text = self.browser.find_element("css selector", "body").text
            return text if all(part in text for part in texts) else None

        try:
            return waited(shown, 90, f"the page to show {texts}")
        except AssertionError:
            self.shot("missing")
            raise

    def click(self, xpath: str) -> None:
        waited(lambda: self.browser.find_elements("xpath", xpath), 60, xpath)[0].click()

    def shot(self, name: str) -> None:
        time.sleep(1.5)  # charts and spinners settle
        self.browser.save_screenshot(str(self.folder / f"{name}.png"))


@pytest.fixture
def page(browser, landed, screenshots):
    return Page(browser, landed, screenshots)


def asset(key: str, view: str = "overview") -> str:
    return f"/assets/{quote(key)}?view={view}"


def test_landing_a_log_leads_to_a_published_verdict_without_a_hand(landed):
    (run,) = landed.runs()
    assert run["status"] == "SUCCESS"
    assert run["tags"]["dagster/sensor_name"] == "landing_sensor"
    with duckdb.connect(landed.home / "published" / "firstdrift.duckdb", read_only=True) as con:
        found = con.execute(
            """
            select verdict, first_stage, first_onset_step from mart_pair_verdict
            inner join dim_migration using (pair_id) where candidate_run_name = 'npu_attn_mask_at60'
                and dim_migration.pair_kind = 'migration'
            """
        ).fetchall()
    ((verdict, stage, onset),) = found
    assert (verdict, stage) == ("drift", "rollout_or_weight_sync")
    assert onset in NEAR


def test_the_verdict_stands_on_the_page_of_its_asset(page):
    text = page.open(
        asset("marts/mart_pair_verdict"),
        DRIFTS, "Row count", "firstdrift", "DuckDB", "Grain: pair_id", "models/marts", "everything", "Fails if",
    )  # fmt: skip
    answer = ANSWER.search(text.replace("\n", " "))
    assert answer
    assert int(answer[1]) in NEAR
    page.shot("verdict")


def test_the_picture_of_the_onsets_shows(page):
    page.open(asset("marts/mart_pair_verdict"), DRIFTS)
    page.click("//tr[.//*[text()='onsets']]//*[contains(text(),'Show Markdown')]")
    page.shows("first metric", "rollout_or_weight_sync")
    (picture,) = page.browser.find_elements("xpath", "//img[starts-with(@src,'data:image/svg+xml')]")
    width, height = page.browser.execute_script(
        "return [arguments[0].naturalWidth, arguments[0].naturalHeight]", picture
    )
    assert width > 400
    assert height > 100
    page.shot("onsets")


def test_the_overflow_is_a_red_check_with_its_rows(page):
    text = page.open(
        asset("marts/mart_anomaly", "checks") + "&checkDetail=no_rule_is_broken",
        "rollout_is_eff_sample_size", "Infinity (pos_inf)", "numeric_overflow", "first_step 60",
    )  # fmt: skip
    assert "npu_ess_overflow_at60" in text
    page.shot("check")
    page.click("//tr[.//*[text()='sample']]//*[contains(text(),'Show Markdown')]")
    page.shows("first_observed", "Infinity (pos_inf)")
    page.shot("check_rows")
    # A wide table can be scrolled to its last column.
    reached = page.browser.execute_script(
        """
        var cell = Array.from(document.querySelectorAll("th")).pop();
        cell.scrollIntoView({inline: "end"});
        var box = cell.getBoundingClientRect();
        return document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2) === cell;
        """
    )
    page.shot("check_rows_end")
    assert reached
    found = page.instance.ask(
        """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
            assetChecksOrError { ... on AssetChecks { checks { name executionForLatestMaterialization {
                status evaluation { severity success } } } } } } } }""",
        key={"path": ["marts", "mart_anomaly"]},
    )
    checks = {c["name"]: c for c in found["assetNodeOrError"]["assetChecksOrError"]["checks"]}
    broken = checks["no_rule_is_broken"]["executionForLatestMaterialization"]
    assert broken["evaluation"] == {"severity": "ERROR", "success": False}
    assert page.instance.runs()[-1]["status"] == "SUCCESS"


def test_rows_and_findings_are_plotted(page):
    page.open(asset("marts/mart_anomaly"), "runs_with_anomalies")
    page.click("//button[contains(., 'Plots')]")
    page.shows("dagster/row_count", "errors", "warnings")
    assert len(page.browser.find_elements("tag name", "canvas")) >= 3
    page.shot("plots")


def test_every_migration_is_a_partition_with_its_state(page):
    page.open(asset("lake/run_logs", "partitions"), "Materialized (1)", "Missing (0)", "sorting-npu")
    page.click("//*[text()='sorting-npu']")
    page.shows("run_count", "points_read")
    page.shot("partitions")


def test_sensors_and_schedules_are_on(page):
    text = page.open("/automation", "landing_sensor", "killed_runs", "failure_hook", "daily", "weekly_upkeep")
    assert "Stopped" not in text
    page.shot("automation")


@pytest.mark.parametrize("group", ["marts", "star", "published", "lake"])
def test_a_group_shows_its_assets(page, group):
    page.open(
        f"/locations/__repository__@pipelines.definitions/asset-groups/{group}/list",
        group,
        "1 partition" if group == "lake" else "Materialized",
    )
    page.shot(f"group_{group}")


def test_the_graph_of_the_marts_is_drawn(page):
    page.open("/locations/__repository__@pipelines.definitions/asset-groups/marts", "mart_pair_verdict")
    page.shot("graph")


def test_a_backfill_can_be_launched_from_the_page_of_the_job(page):
    page.open("/locations/__repository__@pipelines.definitions/jobs/everything/partitions", "1\nTotal partitions")
    page.click("//button[contains(., 'Materialize')]")
    page.shows("Launch runs to materialize", "Partition selection", "Launch backfill")
    page.shot("backfill")


def test_a_run_shows_its_steps(page):
    run = page.instance.runs()[-1]
    page.open(f"/runs/{run['runId']}", "Success", "run_logs")
    page.shot("run")


def test_the_daemon_finds_the_verdicts_fresh(page):
    page.open(asset("published/firstdrift_duckdb"), "megabytes")
    for _ in range(15):
        if "Passing" in page.open(asset("published/firstdrift_duckdb"), "Freshness policy", "Fails if"):
            break
        time.sleep(2)
    else:
        raise AssertionError("the freshness of the published file was not evaluated")
    page.shot("published")


def test_no_page_wrote_an_error_to_the_console(page):
    page.open(asset("star/fct_metric"), "points_added", "sql/schema")
    page.shot("facts")
    errors = [entry for entry in page.browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert not errors, json.dumps(errors, indent=1)
