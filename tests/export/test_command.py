"""What the command says when something is in the way, and to programs."""

import json
import socket

import pytest

from tests.integration.conftest import firstdrift


@pytest.fixture
def home(published):
    return published.parent.parent


@pytest.fixture(scope="module")
def closed_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--to", "mysql://a:secret@host/lab"], "--to mysql://...: firstdrift writes to a folder"),
        (["--to", "marts.csv"], "--to marts.csv: name a folder for Parquet and CSV files"),
        (["--to", "marts.txt"], "--to marts.txt: name a folder for Parquet and CSV files"),
        (["--format", "avro"], "--format avro: write one of parquet, csv"),
        (["--to", "/dev/null/out"], "/dev/null/out: the export can't be written"),
        (["--to", "/dev/null/out.xlsx"], "/dev/null/out.xlsx: the workbook can't be written"),
        (["--to", "postgresql://me:secret@127.0.0.1:{port}/lab"], "no Postgres server answers there"),
        (["--to", "postgresql://me:secret@no.such.host.invalid/lab"], "the name of the host is not known"),
    ],
    ids=lambda value: value[-1][:24] if isinstance(value, list) else "",
)
def test_a_mistake_is_one_sentence(home, closed_port, arguments, sentence):
    done = firstdrift(home, "export", *[word.format(port=closed_port) for word in arguments], check=False)
    said = " ".join(done.stderr.split())
    assert done.returncode == 1
    assert sentence in said
    assert "Traceback" not in said
    assert "secret" not in done.stdout + done.stderr


def test_nothing_published_is_said(tmp_path):
    done = firstdrift(tmp_path, "export", check=False)
    assert done.returncode == 1
    assert "nothing has been published yet" in " ".join(done.stderr.split())


def test_programs_get_json(home):
    first = json.loads(firstdrift(home, "export", "--json").stdout)
    assert first["is_new"]
    assert first["rows"]["fct_metric"] == 2 * 2 * 3 * 30
    assert (home / "exports" / "current" / "dim_run.parquet").exists()
    second = json.loads(firstdrift(home, "export", "--json").stdout)
    assert (second["is_new"], second["written"]) == (False, {})
    assert "15 tables" in firstdrift(home, "export", "--to", str(home / "marts.xlsx")).stdout
