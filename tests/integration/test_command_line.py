"""What all commands share: the version, JSON for programs, one sentence for a mistake, quiet pipes."""

import json
import os
import subprocess
import sys

import pytest

from tests.integration.conftest import clean_environment, firstdrift, write_log


def test_the_version_is_told(tmp_path):
    assert firstdrift(tmp_path, "--version").stdout == "firstdrift 0.1.0\n"


def test_programs_get_json_of_what_was_written(tmp_path, demo_home):
    home = tmp_path / "home"
    log = tmp_path / "gpu.jsonl"
    write_log(log, [1.0])
    landing = home / "landing"

    def told(where, *arguments):
        return json.loads(firstdrift(where, *arguments, "--json").stdout)

    assert told(home, "init") == {"home": str(home), "landing": str(landing)}
    assert told(home, "add", "m", "gpu", str(log), "--role", "baseline")["runs"] == ["gpu"]
    assert told(home, "add", "m", "npu", str(log))["path"] == str(landing / "m" / "migration.yaml")
    assert told(home, "pair", "m", "gpu", "npu")["unpaired"] == []
    assert "mart_pair_verdict" in json.dumps(told(home, "dictionary"))
    pages = told(demo_home, "report", str(tmp_path / "pages"))["pages"]
    assert str(tmp_path / "pages" / "index.html") in pages
    assert told(demo_home, "superset", "--output", str(tmp_path / "bundle.zip"))["charts"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["add", "../evil", "x", "LOG"], "The migration `../evil` can't be used as a name"),
        (["add", "m", "x/y", "LOG"], "The run `x/y` can't be used as a name"),
        (["pair", "../evil", "a", "b"], "The migration `../evil` can't be used as a name"),
        (["query", "select 1; select 2"], "holds several statements; ask one at a time"),
        (["report", "/dev/null/pages"], "/dev/null"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_mistake_is_one_sentence(demo_home, tmp_path, arguments, sentence):
    log = tmp_path / "log.jsonl"
    write_log(log, [1.0])
    landing = demo_home / "landing"
    before = {path for path in landing.rglob("*")}
    done = firstdrift(demo_home, *[str(log) if word == "LOG" else word for word in arguments], check=False)
    said = " ".join(done.stderr.split())
    assert done.returncode == 1
    assert sentence in said
    assert "Traceback" not in said
    assert {path for path in landing.rglob("*")} == before


def test_one_statement_may_end_in_a_semicolon(demo_home):
    assert json.loads(firstdrift(demo_home, "query", "select 1 as n;", "--json").stdout) == [{"n": 1}]


@pytest.mark.parametrize("arguments", [("show", "--json"), ("show",), ("dictionary",), ("query", "--list")])
def test_a_reader_that_goes_away_is_no_fault(demo_home, arguments):
    reading, writing = os.pipe()
    os.close(reading)  # whoever was to read has gone before the first byte
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", *arguments],
        env=clean_environment(demo_home),
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
    )
    os.close(writing)
    assert done.stderr == ""
    assert done.returncode == 1
