"""The workbook: what Excel can hold arrives, and what it can't is said in it."""

import math
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tests.export.content import published_rows
from tests.export.test_folder import export_and_be_killed
from warehouse.export import ExportError, export_workbook, workbook

KINDS = {"nan": "nan", "pos_inf": "inf", "neg_inf": "-inf"}


def sheet_rows(path: Path, name: str) -> list[dict[str, Any]]:
    book = openpyxl.load_workbook(path, read_only=True)
    try:
        header, *rows = book[name].iter_rows(values_only=True)
        names = [str(name) for name in header]
        return [dict(zip(names, row, strict=True)) for row in rows]
    finally:
        book.close()


@pytest.fixture(scope="module")
def made(stages, tmp_path_factory):
    path = tmp_path_factory.mktemp("book") / "marts.xlsx"
    return path, export_workbook(stages["two"], path), published_rows(stages["two"])


def test_every_mart_has_a_sheet_with_all_its_rows(made):
    path, result, expected = made
    marts = {name for name in expected if name.startswith("mart_")}
    assert result.rows.keys() == marts | {"dim_migration", "dim_run", "dim_metric"}
    for name in result.rows:
        assert len(sheet_rows(path, name)) == len(expected[name]) == result.rows[name], name


@pytest.mark.parametrize("name", ["mart_paired_delta", "mart_metric_profile", "mart_pair_verdict", "dim_run"])
def test_values_arrive_and_kinds_stand_beside_empty_cells(made, name):
    path, _, expected = made
    rows = sheet_rows(path, name)
    seen = set()
    for row, published in zip(rows, expected[name], strict=True):
        for column, value in published.items():
            cell = row[column]
            if isinstance(value, float) and not math.isfinite(value):
                assert cell is None
                assert KINDS[row[f"{column}_kind"]] == str(value)
                seen.add(str(value))
            elif isinstance(value, int) and isinstance(cell, str):
                assert cell == str(value)
            elif isinstance(value, float):
                assert cell == pytest.approx(value, rel=1e-15)
            elif isinstance(value, datetime):
                assert isinstance(cell, datetime)
                assert abs(cell - value) <= timedelta(milliseconds=1)
            elif not isinstance(value, list):
                assert cell == value or (cell is None and value == ""), column
    if name == "mart_paired_delta":
        assert seen, "the test needs values that are not finite"


def test_long_integers_are_text(made):
    path, _, expected = made
    long = [row["series_hash"] for row in expected["mart_metric_profile"]]
    assert max(long) > workbook.MAX_INTEGER
    assert [row["series_hash"] for row in sheet_rows(path, "mart_metric_profile")] == [str(value) for value in long]


def test_a_name_that_looks_like_a_formula_is_text(made):
    path, _, _ = made
    assert "=1+1" in {row["metric"] for row in sheet_rows(path, "dim_metric")}
    book = openpyxl.load_workbook(path)
    assert all(row[1].data_type == "s" for row in book["dim_metric"].iter_rows())


def test_rows_without_room_are_counted_in_the_workbook(stages, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "MAX_ROWS", 11)
    monkeypatch.setattr(workbook, "MAX_TEXT", 20)
    path = tmp_path / "marts.xlsx"
    result = export_workbook(stages["two"], path)
    total = result.rows["mart_paired_delta"]
    note = f"mart_paired_delta: {total - 10:,} of {total:,} rows, for which a sheet has no room."
    assert note in result.notes
    assert len(sheet_rows(path, "mart_paired_delta")) == 10
    book = openpyxl.load_workbook(path, read_only=True)
    said = [str(row[2]) for row in book["about"].iter_rows(values_only=True)]
    assert set(result.notes) <= set(said)
    assert any(note.startswith("dim_metric: the end of ") for note in result.notes)


def test_a_killed_export_leaves_the_previous_workbook(publish_stage, published, tmp_path):
    path = tmp_path / "out" / "marts.xlsx"
    assert export_workbook(published, path).is_new
    before = path.read_bytes()
    assert not export_workbook(published, path).is_new
    publish_stage("changed")
    export_and_be_killed(published, path, "xlsx")
    assert path.read_bytes() == before
    assert export_workbook(published, path).is_new
    assert [file.name for file in path.parent.iterdir()] == ["marts.xlsx"]


def test_a_workbook_that_can_not_be_written_is_named(stages, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ExportError, match=r"marts.xlsx: the workbook can't be written"):
        export_workbook(stages["two"], tmp_path / "file" / "marts.xlsx")
