"""Parquet and CSV: the same rows, only changed partitions written, the previous version whole."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.conftest import PROJECT
from tests.export.conftest import ODD
from tests.export.content import assert_equal, published_rows, summary
from warehouse.export import ExportError, export_folder, export_parquet
from warehouse.export.source import is_nested


def exported_rows(folder: Path, form: str, published: Path) -> dict[str, list[dict]]:
    """Read an export by its manifest, each column as the type of the published one."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    con = duckdb.connect(published, read_only=True)
    found = {}
    for table, entry in manifest["tables"].items():
        types = dict(
            con.execute("select column_name, data_type from duckdb_columns() where table_name = ?", [table]).fetchall()
        )
        files = [str(folder / file["file"]) for file in entry["files"]]
        options = "hive_partitioning = false"
        read = "read_parquet"
        if form == "csv":
            kinds = {name: "json" if is_nested(kind) else kind for name, kind in types.items()}
            read, options = "read_csv", f"{options}, header = true, columns = {kinds}, allow_quoted_nulls = false"
        columns = ", ".join(f'"{name}"::{kind} as "{name}"' for name, kind in types.items())
        sql = f"select {columns} from {read}({files}, {options})"
        found[table] = con.sql(sql).to_arrow_table().to_pylist()
    con.close()
    return found


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_every_value_arrives(published, tmp_path, form):
    folder = tmp_path / "out"
    result = export_folder(published, folder, form)
    expected = published_rows(published)
    assert_equal(exported_rows(folder, form, published), expected)
    assert result.rows == {table: len(rows) for table, rows in expected.items()}
    values = summary(expected["fct_metric"])["columns"]["value"]
    assert {"number", "nan", "inf", "-inf", "null"} <= values.keys(), "the test needs values that are not finite"


def test_tables_lie_by_migration_below_a_stable_name(published, tmp_path):
    folder = tmp_path / "out"
    export_parquet(published, folder)
    con = duckdb.connect()
    pattern = folder / "current" / "fct_metric" / "*" / "*.parquet"
    counts = con.execute(f"select migration, count(*) from '{pattern}' group by all order by all").fetchall()
    assert [name for name, _ in counts] == sorted([ODD, "a"])
    assert (folder / "current" / "dim_run.parquet").exists()
    assert (folder / "current" / "mart_drift_survival.parquet").exists()
    empty = con.execute(f"select count(*) from '{folder}/current/fct_parse_issue/*/*.parquet'").fetchall()
    assert empty == [(0,)]


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_only_what_changed_is_written(publish_stage, published, tmp_path, form):
    folder = tmp_path / "out"
    first = export_folder(published, folder, form)
    assert first.is_new
    assert not export_folder(published, folder, form).is_new
    before = {path.relative_to(folder / "current"): path.stat().st_ino for path in files_of(folder)}
    publish_stage("changed")
    second = export_folder(published, folder, form)
    after = {path.relative_to(folder / "current"): path.stat().st_ino for path in files_of(folder)}
    rewritten = {path for path in after if before.get(path) != after[path]}
    assert sum(second.written.values()) == len(rewritten)
    parts = {path for path in rewritten if path.parent.name.startswith("migration=")}
    assert {path.parent.name for path in parts} == {"migration=a"}
    assert Path("fct_metric/migration=a") / f"data.{form}" in parts
    assert "dim_rule" not in second.written
    assert_equal(exported_rows(folder, form, published), published_rows(published))


def files_of(folder: Path) -> list[Path]:
    return [path for path in (folder / "current").rglob("*") if path.is_file()]


def test_a_migration_that_is_gone_leaves_no_file(publish_stage, published, tmp_path):
    folder = tmp_path / "out"
    export_parquet(published, folder)
    export_parquet(publish_stage("one"), folder)
    folders = {path.parent.name for path in files_of(folder) if "=" in path.parent.name}
    assert folders <= {"migration=a", "migration=__HIVE_DEFAULT_PARTITION__"}


# Kills itself, with no chance to tidy up, after the fifth table.
KILLED = """
import os, signal, sys
from pathlib import Path
from warehouse.export import export_folder, export_postgres, export_workbook
tables = []
def report(table):
    tables.append(table)
    if len(tables) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
published, target, form = sys.argv[1:]
if form == "xlsx":
    export_workbook(Path(published), Path(target), report)
elif form == "postgres":
    export_postgres(Path(published), target, report)
else:
    export_folder(Path(published), Path(target), form, report)
"""


def export_and_be_killed(published: Path, target: Path | str, form: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(published), str(target), form],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_a_killed_export_leaves_the_previous_one_whole(publish_stage, published, tmp_path):
    folder = tmp_path / "out"
    export_parquet(published, folder)
    expected = published_rows(published)
    publish_stage("changed")
    export_and_be_killed(published, folder, "parquet")
    assert list(folder.glob(".draft-*")), "the export was not under way"
    assert_equal(exported_rows(folder, "parquet", published), expected)
    con = duckdb.connect()
    count = con.execute(f"select count(*) from '{folder}/current/fct_metric/*/*.parquet'").fetchall()
    assert count == [(len(expected["fct_metric"]),)]
    assert export_parquet(published, folder).is_new
    assert not list(folder.glob(".draft-*"))
    assert_equal(exported_rows(folder, "parquet", published), published_rows(published))


def test_one_folder_holds_one_format(published, tmp_path):
    export_parquet(published, tmp_path / "out")
    with pytest.raises(ExportError, match="holds an export as parquet; name another folder for csv"):
        export_folder(published, tmp_path / "out", "csv")


def test_a_folder_that_can_not_be_written_is_named(published, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ExportError, match=r"file.out: the export can't be written"):
        export_parquet(published, tmp_path / "file" / "out")
