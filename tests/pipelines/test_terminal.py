"""What the command line prints is what lies in the data, and a failure is one sentence."""

import errno
import io
import json
import os
import subprocess
import sys

import duckdb
import pyarrow.parquet as pq
import pytest
from rich.table import Table

from pipelines import cli, terminal
from pipelines.explain import Evidence, print_evidence
from pipelines.questions import run_question
from pipelines.render import distinct_names, to_json, write_result
from pipelines.terminal import Terminal, failure_sentence, styled, visible
from tests.conftest import PROJECT
from warehouse.connection import seal

NAMES = ["rew[ard]", "a[/nope]", ":smile:", "[red]x[/red]"]


def arrow(sql):
    with duckdb.connect() as con:
        return run_question(con, sql, {})


def printed(show):
    stream = io.StringIO()
    show(Terminal(file=stream, width=120))
    return stream.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_brackets_and_colons_are_printed_as_they_are(name):
    table = Table(title=name)
    table.add_column(name)
    table.add_row(name)
    table.add_row(styled((name, "bold"), f" of {name}"))
    assert printed(lambda console: console.print(table)).count(name) == 5
    assert printed(lambda console: console.print(f"{name}: {name}", style="red")).count(name) == 2
    evidence = [Evidence(name, "select 1", ("metric", "n"), ((name, 1), (name, 2)))]
    assert printed(lambda console: print_evidence(evidence, console)).count(name) == 3
    assert printed(lambda console: print_evidence([Evidence(name, "q", (name,), ((name,),))], console)).count(name) == 3


def test_control_characters_are_written_out():
    name = "e\x1b[31mvil\n\u202e\x9b"
    assert visible(name) == r"e\x1b[31mvil\n\u202e\x9b"
    assert visible("损失 ▁▂ ä") == "损失 ▁▂ ä"
    table = Table(box=None)
    table.add_row(name)
    assert visible(name) in printed(lambda console: console.print(table))
    assert visible(name) in printed(lambda console: console.print(styled((name, "bold"))))
    assert "\x9b" not in to_json([name])
    assert json.loads(to_json([name])) == [name]


@pytest.mark.parametrize(
    ("sql", "names"),
    [("1 a, 2 a, 3 b", ["a", "a_1", "b"]), ("1 a, 2 a, 3 a_1, 4 as A", ["a", "a_1", "a_1_1", "A_2"]), ("1 b", ["b"])],
)
def test_equal_names_are_told_apart_as_duckdb_does(sql, names):
    assert arrow(f"select * from (select {sql})").column_names == names
    assert distinct_names(arrow(f"select {sql}").column_names) == names


def test_every_value_stands_under_its_own_name_in_every_form(tmp_path, capsys):
    table = arrow("select 1 as a, 2 as a, 3 as b")
    text = printed(lambda console: write_result(table, "table", None, console)).split("\n")
    assert (text[0].split(), text[1].split()) == (["a", "a_1", "b"], ["1", "2", "3"])
    write_result(table, "json", None, terminal.out)
    assert json.loads(capsys.readouterr().out) == [{"a": 1, "a_1": 2, "b": 3}]
    write_result(table, "csv", None, terminal.out)
    assert capsys.readouterr().out.splitlines() == ['"a","a_1","b"', "1,2,3"]
    write_result(table, "parquet", tmp_path / "x.parquet", terminal.out)
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == [{"a": 1, "a_1": 2, "b": 3}]


def test_times_that_python_has_none_for_are_text(capsys):
    table = arrow(
        "select '-infinity'::date d, 'infinity'::timestamp t, ['infinity'::date] l, date '10000-01-01' y, "
        "date '2024-01-02' o"
    )
    write_result(table, "json", None, terminal.out)
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {"d": "-infinity", "t": "infinity", "l": "[infinity]", "y": "10000-01-01", "o": "2024-01-02"}
    write_result(table, "csv", None, terminal.out)
    assert '"-infinity","infinity"' in capsys.readouterr().out


def test_a_column_that_a_form_has_not_is_named_and_nothing_is_written(tmp_path):
    table = arrow("select interval 1 day i")
    with pytest.raises(ValueError, match="::varchar"):
        write_result(table, "parquet", tmp_path / "x.parquet", terminal.out)
    assert not (tmp_path / "x.parquet").exists()


def test_a_question_is_one_statement_and_touches_no_other_file(tmp_path):
    con = duckdb.connect()
    seal(con)
    with pytest.raises(ValueError, match="several statements"):
        run_question(con, "select 1 a; select 2", {})
    assert run_question(con, "select ';' a; -- done", {}).num_rows == 1
    assert run_question(con, "pivot (select 1 a, 2 b) on a using sum(b)", {}).num_rows == 1
    for sql in (
        f"copy (select 1) to '{tmp_path}/x.csv'",
        f"attach '{tmp_path}/x.duckdb'",
        "from read_text('/etc/hosts')",
    ):
        with pytest.raises(duckdb.PermissionException):
            run_question(con, sql, {})
    assert not list(tmp_path.iterdir())
    con.close()


def call(capsys, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["firstdrift", *arguments])
    monkeypatch.setattr(cli, "drop_output", lambda: None)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("dictionary", "-o", "{tmp}/no/x.md"), "no/x.md: no such file or directory; check the path"),
        (("init", "--home", "{tmp}/file"), "file: this is a file; name a folder as the home"),
        (("init", "--home", "{tmp}/file/x"), "a file lies where a folder is needed"),
        (("init", "--home", "{tmp}/" + "x" * 300), "file name too long; choose a shorter name"),
        (("init", "--home", "~nobody-of-that-name/x"), "there is no user of that name"),
        (("add", "m", "r", "~nobody-of-that-name/x", "--home", "{tmp}/h"), "there is no user of that name"),
        (("export", "--to", "~nobody-of-that-name/x", "--home", "{tmp}/h"), "there is no user of that name"),
        (("inspect", "/dev/null"), "neither a file nor a folder"),
        (("inspect", "/" + "x" * 300), "file name too long"),
        (("show", "--home", "{tmp}/a[b]"), "a[b]/published/firstdrift.duckdb does not exist"),
    ],
)
def test_what_the_system_refuses_is_one_sentence(arguments, sentence, capsys, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr(terminal.err, "_width", 1000)
    code, text = call(capsys, monkeypatch, *(a.format(tmp=tmp_path) if "{tmp}" in a else a for a in arguments))
    assert code == 1
    assert sentence in text


def test_a_home_with_brackets_is_named_rightly(capsys, monkeypatch, tmp_path):
    assert call(capsys, monkeypatch, "init", "--home", str(tmp_path / "z[" / "b]"))[0] == 0
    assert (tmp_path / "z[" / "b]" / "landing").is_dir()


def test_a_full_disk_has_a_remedy():
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x.md")
    assert failure_sentence(error).startswith("x.md: no space left on device; make room there")
    assert failure_sentence(OSError("our own sentence.")) == "our own sentence."


CODE = "import sys; sys.argv = ['firstdrift', 'metrics', *sys.argv[1:]]; from pipelines.cli import main; main()"


def in_a_shell(command):
    return subprocess.run(["sh", "-c", command], cwd=PROJECT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("redirect", "code", "sentence"),
    [("> /dev/full", 1, "no space left on device"), (">&-", 1, "Standard output is closed"), ("2>&- | head -1", 0, "")],
)
def test_an_output_that_takes_nothing(redirect, code, sentence):
    done = in_a_shell(f'{sys.executable} -c "{CODE}" {redirect}')
    assert done.returncode == code
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2 if sentence else not done.stderr


def test_an_encoding_of_few_characters_gets_escapes_that_json_reads():
    done = in_a_shell(f'PYTHONIOENCODING=ascii {sys.executable} -c "{CODE}" train/loss --json')
    assert done.returncode == 0, done.stderr
    plain = in_a_shell(f'PYTHONIOENCODING=utf-8 {sys.executable} -c "{CODE}" train/loss --json')
    assert json.loads(done.stdout) == json.loads(plain.stdout)
