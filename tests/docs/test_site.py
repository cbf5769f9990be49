"""The docs: the site builds, links lead somewhere, and what they tell people to type works."""

import gzip
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from pipelines.manifest import BASELINE_WORDS
from pipelines.questions import list_questions, parameters_of, questions_markdown
from tests.conftest import PROJECT
from tests.integration.conftest import clean_environment, firstdrift
from warehouse.contract import COMPONENT_KINDS

DOCS = PROJECT / "docs"
PAGES = sorted(path for path in DOCS.glob("*.md") if path.name != "data_dictionary.md")
MARTS_IN_TEXT = re.compile(r"`((?:mart|dim|fct|bridge)_[a-z_]+)`")
# Opens a page and stays; started by no test of the docs.
STAYS_OPEN = ("firstdrift dev",)


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)


def commands(path: Path) -> list[str]:
    lines = [line.strip() for block in blocks(path, "console") for line in block.splitlines()]
    return [line for line in lines if line.startswith("firstdrift ") and line not in STAYS_OPEN]


def test_the_site_builds_and_every_link_leads_somewhere(tmp_path):
    pytest.importorskip("mkdocs")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=PROJECT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    home = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "which one moved first" in home
    loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', home)
    assert not loaded, "the site loads something from elsewhere"


def test_every_link_between_pages_exists():
    for path in DOCS.rglob("*.md"):
        for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
            if not re.match(r"https?:|#", link):
                assert (path.parent / link.partition("#")[0]).exists(), f"{path.name}: {link}"


def test_the_list_of_questions_is_current():
    written = (DOCS / "questions.md").read_text(encoding="utf-8")
    assert written == questions_markdown(), "docs/questions.md is stale: run `make generated`"


@pytest.mark.parametrize(
    "path", [page for page in PAGES if page.stem != "your_logs" and commands(page)], ids=lambda path: path.stem
)
def test_the_commands_of_a_page_work(demo_home, tmp_path, path):
    for command in commands(path):
        words = shlex.split(command)[1:]
        done = subprocess.run(
            [sys.executable, "-m", "pipelines.cli", *words],
            cwd=tmp_path,
            env=clean_environment(demo_home),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert done.stdout.strip() or any(tmp_path.iterdir()), command


def test_a_newcomer_gets_from_logs_to_a_verdict(tmp_path):
    """Types what docs/your_logs.md says, with two of the examples in place of the reader's logs."""
    for name, example in (("gpu", "gpu_n0"), ("gpu2", "gpu_n1"), ("npu", "npu_attn_mask_at60")):
        target = tmp_path / "runs" / name / "tracker.jsonl"
        target.parent.mkdir(parents=True)
        target.write_bytes(gzip.decompress((PROJECT / "examples" / f"{example}.jsonl.gz").read_bytes()))
    typed = commands(DOCS / "your_logs.md")
    assert [line.split()[1] for line in typed[:6]] == ["init", "add", "add", "add", "run", "show"]
    output = {}
    for command in typed:
        done = subprocess.run(
            [sys.executable, "-m", "pipelines.cli", *shlex.split(command)[1:]],
            cwd=tmp_path,
            env=clean_environment(tmp_path / "data"),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        output[command] = done.stdout
    shown = output["firstdrift show to-npu"]
    assert re.search(r"npu .*drift .*rollout_or_weight_sync", shown)
    assert re.search(r"is off from step (5\d|6\d)\b", shown)


def test_the_page_lists_every_kind_of_component_and_every_word_of_a_baseline():
    text = (DOCS / "your_logs.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `(\w+)` \|", text, re.M)) == COMPONENT_KINDS
    line = next(line for line in text.splitlines() if line.startswith("`base`, "))
    assert tuple(re.findall(r"`(\w+)`", line)) == BASELINE_WORDS


def test_make_targets_exist():
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    named = {
        target
        for path in [*PAGES, PROJECT / "README.md"]
        for block in blocks(path, "console")
        for target in re.findall(r"^make ([a-z-]+)", block, re.M)
    }
    assert {"demo", "generated", "docs"} <= named
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in named)


@pytest.fixture(scope="module")
def published(demo_home):
    con = duckdb.connect(demo_home / "published" / "firstdrift.duckdb", read_only=True)
    yield con
    con.close()


@pytest.mark.parametrize(
    "sql", [sql for page in PAGES for sql in blocks(page, "sql")], ids=lambda sql: sql.strip().splitlines()[0][:40]
)
def test_the_statements_of_the_docs_run(published, sql):
    rows = published.execute(sql, parameters_of(sql) or None).fetchall()
    assert rows
    for test in re.findall(r"^-- test: (.+)$", sql, re.M):
        answer = published.execute(f"select {test} from (\n{sql}\n)", parameters_of(sql) or None).fetchall()
        assert answer == [(True,)]


def test_tables_and_questions_that_the_docs_name_exist(published):
    tables = {name for (name,) in published.execute("select table_name from duckdb_tables()").fetchall()}
    questions = {name for name, _ in list_questions()}
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        assert set(MARTS_IN_TEXT.findall(text)) <= tables, path.name
        named = set(re.findall(r"^firstdrift query ([a-z_]+)", text, re.M))
        assert named <= questions, path.name


def test_the_verdicts_of_the_docs_are_those_of_the_model():
    sql = (PROJECT / "models" / "marts" / "mart_pair_verdict.sql").read_text(encoding="utf-8")
    known = set(re.findall(r"(?:then|else) '([a-z_]+)'$", sql, re.M))
    text = (DOCS / "read_a_verdict.md").read_text(encoding="utf-8")
    section = text[text.index("## The verdicts") : text.index("Two things stand")]
    assert set(re.findall(r"^\| `([a-z_]+)`", section, re.M)) == known


def test_help_names_every_command_of_the_docs(tmp_path):
    shown = firstdrift(tmp_path, "--help").stdout
    for command in {line.split()[1] for page in PAGES for line in commands(page)}:
        assert re.search(rf"\b{command}\b", shown), command
