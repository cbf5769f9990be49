"""The data dictionary is complete, its lineage leads somewhere, and the copy in docs/ is current."""

import json
import re

import duckdb
import pytest

from tests.conftest import PROJECT
from tests.integration.conftest import firstdrift
from warehouse.dictionary import er_diagram, read_dictionary, to_html, to_json, to_markdown


@pytest.fixture(scope="module")
def tables():
    return read_dictionary()


def test_every_table_and_column_is_explained(tables):
    assert len(tables) > 25
    assert not [table.name for table in tables if not table.comment]
    assert not [f"{table.name}.{column.name}" for table in tables for column in table.columns if not column.comment]


def test_every_published_table_is_in_it(tables, demo_home):
    with duckdb.connect(demo_home / "published" / "firstdrift.duckdb", read_only=True) as con:
        columns = con.execute(
            "select table_name, column_name from duckdb_columns() where schema_name = 'main' and not internal"
        ).fetchall()
    known = {(table.name, column.name) for table in tables for column in table.columns if table.is_published}
    assert {pair for pair in columns if pair[0] != "publication"} == known


def test_the_lineage_leads_to_columns_that_exist(tables):
    known = {f"{table.name}.{column.name}" for table in tables for column in table.columns}
    for table in tables:
        for column in table.columns:
            assert set(column.sources) | set(column.origins) <= known, f"{table.name}.{column.name}"


def test_a_delta_is_traced_to_the_values_in_the_logs(tables):
    mart = next(table for table in tables if table.name == "mart_paired_delta")
    delta = next(column for column in mart.columns if column.name == "delta")
    assert {"int_pair_point.baseline_value", "int_pair_point.candidate_value"} <= set(delta.sources)
    assert "fct_metric.value" in delta.origins


def test_loaded_columns_have_no_origin(tables):
    fact = next(table for table in tables if table.name == "fct_metric")
    assert all(column.sources == () == column.origins for column in fact.columns)


def test_json_and_html_hold_the_same(tables):
    data = json.loads(to_json(tables))
    assert [table["name"] for table in data] == [table.name for table in tables]
    page = to_html(tables)
    anchors = set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= anchors
    assert not re.search(r"https?://", page)


def test_the_diagram_connects_the_facts_with_their_dimensions(tables):
    diagram = er_diagram(tables)
    assert "dim_run ||--o{ fct_metric : run_id" in diagram
    assert "dim_metric ||--o{ fct_metric : metric_id" in diagram
    assert "dim_run ||--o{ dim_migration : candidate_run_id" in diagram
    drawn = re.findall(r"^    (\w+) \{", diagram, re.M)
    assert sorted(drawn) == sorted(t.name for t in tables if t.group in ("Dimensions", "Facts"))


def test_the_dictionary_in_the_docs_is_current(tables):
    written = (PROJECT / "docs" / "data_dictionary.md").read_text(encoding="utf-8")
    assert written == to_markdown(tables), "docs/data_dictionary.md is stale: run `make generated`"


def test_the_command_line_writes_each_form(tmp_path):
    for suffix in ("md", "html", "json"):
        target = tmp_path / f"dictionary.{suffix}"
        firstdrift(tmp_path, "dictionary", "--output", str(target))
        assert "mart_first_drift" in target.read_text(encoding="utf-8")
    wrong = firstdrift(tmp_path, "dictionary", "--output", str(tmp_path / "d.xls"), check=False)
    assert wrong.returncode == 1
    assert "must end in one of .md, .html, .json" in wrong.stderr
