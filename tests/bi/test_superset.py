"""The bundle in a real Superset, on the published file and on Postgres."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.bi.conftest import BROWSER, Postgres, Superset
from tests.integration.conftest import firstdrift

pytestmark = pytest.mark.bi

TITLES = {"duckdb": "firstdrift: what drifted first", "postgres": "firstdrift: what drifted first (Postgres)"}


@pytest.fixture(scope="module")
def dashboards(
    superset: Superset, postgres: Postgres, lab: str, demo_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, int]:
    """Import the bundle for both databases; return the number of each dashboard."""
    folder = tmp_path_factory.mktemp("bundles")
    for engine, arguments in (("duckdb", []), ("postgres", ["--database", lab])):
        path = folder / f"{engine}.zip"
        firstdrift(demo_home, "superset", "--output", str(path), *arguments)
        password = json.dumps({"databases/firstdrift.yaml": postgres.password})
        with path.open("rb") as stream:
            answer = superset.post("dashboard/import/", files={"formData": stream}, data={"passwords": password})
        assert answer == {"message": "OK"}
    found = {row["dashboard_title"]: row["id"] for row in superset.get("dashboard/")["result"]}
    return {engine: found[title] for engine, title in TITLES.items()}


@pytest.fixture(scope="module")
def answers(superset: Superset, dashboards: dict[str, int]) -> dict[str, dict[str, dict]]:
    """What Superset itself answers to the query of every chart, by engine and chart."""
    found = {}
    for engine, number in dashboards.items():
        charts = superset.get(f"dashboard/{number}/charts")["result"]
        data = {chart["slice_name"]: superset.get(f"chart/{chart['id']}/data/") for chart in charts}
        found[engine] = {name: answer["result"][0] for name, answer in data.items()}
    return found


@pytest.mark.parametrize("engine", TITLES)
def test_every_chart_gets_its_data(answers, engine):
    assert len(answers[engine]) == 15
    for name, answer in answers[engine].items():
        assert answer["status"] == "success", name
        assert answer["rowcount"] > 0, name


def test_both_engines_answer_alike(answers):
    assert answers["duckdb"].keys() == answers["postgres"].keys()
    for name, answer in answers["duckdb"].items():
        assert same_rows(answer["data"]) == same_rows(answers["postgres"][name]["data"]), name


def same_rows(rows: list[dict]) -> list[str]:
    """Rows in one order; a sum of floats may differ in its last digits between engines."""
    rounded = [
        {key: float(f"{value:.9g}") if isinstance(value, int | float) else value for key, value in row.items()}
        for row in rows
    ]
    return sorted(json.dumps(row, sort_keys=True) for row in rounded)


@pytest.mark.parametrize("engine", TITLES)
def test_superset_finds_the_known_answer(answers, engine):
    verdicts = {row["candidate"]: row for row in answers[engine]["Verdicts"]["data"]}
    found = verdicts["npu_attn_mask_at60"]
    assert (found["verdict"], found["stage"]) == ("drift", "rollout_or_weight_sync")
    onset = re.fullmatch(r"\d+ \((\d+) to (\d+)\)", found["onset"])
    assert onset, found["onset"]
    low, high = onset.groups()
    assert 56 <= int(low) <= 60 <= int(high) <= 64
    assert verdicts["npu_ess_overflow_at60"]["verdict"] == "decoupled_only"
    errors = [row for row in answers[engine]["Anomalies"]["data"] if row["severity"] == "error"]
    assert [(row["cause"], row["first step"]) for row in errors] == [("numeric_overflow", 60)]


def test_datasets_carry_the_descriptions_of_the_dictionary(superset: Superset, dashboards: dict[str, int]):
    datasets = superset.get(f"dashboard/{dashboards['duckdb']}/datasets")["result"]
    number = next(entry["id"] for entry in datasets if entry["table_name"] == "mart_run_health")
    dataset = superset.get(f"dataset/{number}")["result"]
    assert dataset["description"]
    assert all(column["description"] for column in dataset["columns"])


@pytest.mark.parametrize("engine", TITLES)
def test_the_dashboard_is_drawn(superset: Superset, dashboards: dict[str, int], answers, engine, tmp_path):
    program = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if program is None:
        pytest.skip("no Chromium on the PATH")
    seen = superset.log.stat().st_size
    done = subprocess.run(
        [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1500,3000",
         f"--user-agent={BROWSER}", f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=90000",
         "--dump-dom", f"{superset.address}/superset/dashboard/{dashboards[engine]}/"],
        capture_output=True, text=True, check=True, timeout=240,
    )  # fmt: skip
    page = done.stdout
    for sign in (
        "npu_attn_mask_at60",
        answers[engine]["Verdicts"]["data"][0]["onset"],
        "rollout_or_weight_sync",
        "lab-npu",
    ):
        assert sign in page
    assert "Unexpected error" not in page
    asked = [line for line in superset.log.read_text(encoding="utf-8")[seen:].splitlines() if "/chart/data" in line]
    assert len(asked) >= 15
    assert all('" 200 ' in line for line in asked), asked
