import os
import re
import subprocess
import sys
import textwrap

import pyarrow as pa
import pytest

from pipelines.ingest.registry import read_log
from tests.warehouse.rule_cases import XTUNER
from tests.warehouse.small_star import add_run, points_of
from warehouse.catalog import load_catalog
from warehouse.expectations import PROFILE_QUERY, ExpectationFailure, validate_profiles
from warehouse.settings import project_folder

CATALOG = load_catalog(project_folder("catalog"))
ESS = "rollout_is/mismatch/rollout_is_eff_sample_size"


def profile(con) -> pa.Table:
    sql = (project_folder("models") / "marts" / "mart_metric_profile.sql").read_text(encoding="utf-8")
    con.execute(f"create or replace table mart_metric_profile as {sql}")
    return con.sql(PROFILE_QUERY).to_arrow_table()


def add_constant_run(con, name: str, **changed) -> None:
    values: dict = {metric: dict.fromkeys(range(1, 6), value) for metric, value in XTUNER.items()}
    values |= {"my/own_number": dict.fromkeys(range(1, 6), 7.0)}
    values |= {metric: dict(enumerate(series, start=1)) for metric, series in changed.items()}
    add_run(con, CATALOG, points_of(values), name)


def test_sound_runs_meet_every_expectation_and_get_pages(star, tmp_path):
    add_constant_run(star, "a")
    add_constant_run(star, "b")
    outcomes = validate_profiles(profile(star), CATALOG, tmp_path / "docs")
    assert all(outcome.passed for outcome in outcomes)
    assert len(outcomes) > len(XTUNER)
    assert {o.suite for o in outcomes} == {c.category for c in CATALOG.categories}
    index = (tmp_path / "docs" / "index.html").read_text(encoding="utf-8")
    assert "importance_sampling" in index
    pages = list((tmp_path / "docs" / "expectations").glob("*.html"))
    assert len(pages) == len(CATALOG.categories)
    results = re.findall(r'href="(validations/[^"]+)"', index)
    assert len(results) == len(CATALOG.categories)
    for page in results:
        text = (tmp_path / "docs" / page).read_text(encoding="utf-8")
        assert "smallest value" in text or "values not finite" in text
    for page in (tmp_path / "docs").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "<script" not in text
        assert not re.search(r"(?:src|href)\s*=\s*[\"']?https?:", text)


def test_what_is_broken_is_named_with_run_metric_and_first_step(star, tmp_path):
    inf = float("inf")
    add_constant_run(star, "sound")
    add_constant_run(
        star,
        "broken",
        **{
            ESS: [0.99, 0.99, inf, inf, 1.2],
            "time/step": [1.0, -1.0, 1.0, 1.0, 1.0],
            "response/batch_size": [64.0, 64.5, 64.0, 64.0, 64.0],
            "mismatch/mismatch_kl": [0.1, 0.1, 0.1, None, 0.1],
        },
    )
    table = profile(star)
    outcomes = [o for o in validate_profiles(table, CATALOG, tmp_path / "docs") if not o.passed]
    index = (tmp_path / "docs" / "index.html").read_text(encoding="utf-8")
    assert re.search(r'<td>importance_sampling</td><td>\d+</td><td class="failed">2 failed</td>', index)
    found = {(o.metric, o.expectation.split(": ")[1]): o.failures for o in outcomes}
    assert found == {
        (ESS, "every value is a finite number"): (ExpectationFailure("migration", "broken", ESS, 3, 2.0),),
        (ESS, "at most 1"): (ExpectationFailure("migration", "broken", ESS, 5, 1.2),),
        ("time/step", "at least 0"): (ExpectationFailure("migration", "broken", "time/step", 2, -1.0),),
        ("response/batch_size", "every value is a whole number"): (
            ExpectationFailure("migration", "broken", "response/batch_size", 1, 1.0),
        ),
        ("mismatch/mismatch_kl", "every value is a finite number"): (
            ExpectationFailure("migration", "broken", "mismatch/mismatch_kl", 4, 1.0),
        ),
    }
    for outcome in outcomes:
        rows = star.execute(f"select run_name, metric from ({outcome.query})").fetchall()
        assert rows == [("broken", outcome.metric)]


def test_no_run_no_expectation(star):
    assert validate_profiles(profile(star), CATALOG) == ()


def test_the_lab_overflow_turns_red_and_its_neighbour_does_not(star, cases_dir):
    for run in ("npu_n0", "npu_ess_overflow_at60"):
        path = cases_dir / "lab" / f"{run}.jsonl.gz"
        log = read_log(path)
        add_run(star, CATALOG, log.points, run, log.framework)
    outcomes = [o for o in validate_profiles(profile(star), CATALOG) if not o.passed]
    assert [(o.metric, o.failures) for o in outcomes] == [
        (ESS, (ExpectationFailure("migration", "npu_ess_overflow_at60", ESS, 60, 91.0),))
    ]


@pytest.mark.parametrize("module", ["great_expectations", "pandas"])
def test_importing_costs_nothing(module):
    code = f"import sys; import warehouse.expectations; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_nothing_is_sent_anywhere(tmp_path):
    """Any attempt to open a network connection, or to look a host up, fails the validation."""
    code = textwrap.dedent(
        """
        import socket, sys
        from pathlib import Path
        import pyarrow as pa
        import duckdb
        def refuse(*args, **kwargs):
            raise SystemExit(f"network: {args}")
        socket.socket.connect = refuse
        socket.getaddrinfo = refuse
        from tests.warehouse.test_expectations import CATALOG, add_constant_run, profile, validate_profiles
        from warehouse.schema import apply_schema
        con = duckdb.connect()
        apply_schema(con)
        add_constant_run(con, "a")
        assert validate_profiles(profile(con), CATALOG, Path(sys.argv[1]))
        """
    )
    env = {**os.environ, "PYTHONPATH": str(project_folder("catalog").parent)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "docs")], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
