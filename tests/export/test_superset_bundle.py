"""The bundle for Superset, without Superset: tests/bi imports it into a real one."""

import zipfile

import duckdb
import pytest
import yaml

from warehouse.export import ExportError
from warehouse.export.superset import bundle_files, write_bundle

POSTGRES = "postgresql://me:secret@db.example.org/lab"


@pytest.fixture(scope="module")
def files():
    return bundle_files("duckdb:///firstdrift.duckdb")


def of(files, folder):
    return {name: content for name, content in files.items() if name.startswith(folder)}


def test_charts_ask_for_columns_that_their_datasets_have(files, stages):
    con = duckdb.connect(stages["two"], read_only=True)
    datasets = {dataset["uuid"]: dataset for dataset in of(files, "datasets/").values()}
    for chart in of(files, "charts/").values():
        dataset = datasets[chart["dataset_uuid"]]
        known = {column["column_name"] for column in dataset["columns"]}
        params = chart["params"]
        named = [*params.get("all_columns", []), *params.get("groupby", []), params.get("x_axis")]
        assert {name for name in named if name} <= known, chart["slice_name"]
        table = f"({dataset['sql']})" if dataset["sql"] else dataset["table_name"]
        metrics = params.get("metrics") or [params["metric"]] if "metric" in params else params.get("metrics", [])
        for sql in [metric["sqlExpression"] for metric in metrics] or ["*"]:
            where = " and ".join(f["sqlExpression"] for f in params["adhoc_filters"]) or "true"
            con.execute(f"select {sql} from {table} as t where {where}").fetchall()
    con.close()


def test_datasets_say_what_tables_and_columns_hold(files):
    for dataset in of(files, "datasets/").values():
        assert dataset["description"], dataset["table_name"]
        assert all(column["description"] for column in dataset["columns"]), dataset["table_name"]
    pairs = files["datasets/firstdrift/mart_pair_verdict.yaml"]
    assert any("drift" in column["description"] for column in pairs["columns"])


def test_the_dashboard_shows_every_chart_once_in_rows_of_twelve(files):
    position = files["dashboards/firstdrift.yaml"]["position"]
    places = [part for part in position.values() if isinstance(part, dict) and part["type"] == "CHART"]
    assert sorted(place["meta"]["uuid"] for place in places) == sorted(c["uuid"] for c in of(files, "charts/").values())
    for row in [part for part in position.values() if isinstance(part, dict) and part["type"] == "ROW"]:
        assert sum(position[child]["meta"]["width"] for child in row["children"]) == 12
    for name in files["dashboards/firstdrift.yaml"]["metadata"]["native_filter_configuration"]:
        assert name["targets"][0]["datasetUuid"] in {d["uuid"] for d in of(files, "datasets/").values()}


def test_a_password_stays_out_of_the_bundle(stages, tmp_path):
    path = tmp_path / "bundle.zip"
    charts = write_bundle(path, POSTGRES, stages["two"])
    assert len(charts) >= 12
    with zipfile.ZipFile(path) as bundle:
        texts = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert not any("secret" in text for text in texts.values())
    database = yaml.safe_load(texts["firstdrift_superset/databases/firstdrift.yaml"])
    assert database["sqlalchemy_uri"] == "postgresql://me:XXXXXXXXXX@db.example.org/lab"
    verdict = yaml.safe_load(texts["firstdrift_superset/datasets/firstdrift/mart_pair_verdict.yaml"])
    kinds = {column["column_name"]: column["type"] for column in verdict["columns"]}
    assert kinds["pair_id"] == "BIGINT"
    assert kinds["nonfinite_metrics"] == "JSONB"


def test_the_published_file_is_opened_for_reading_alone(stages, tmp_path):
    path = tmp_path / "bundle.zip"
    write_bundle(path, "", stages["two"])
    with zipfile.ZipFile(path) as bundle:
        database = yaml.safe_load(bundle.read("firstdrift_superset/databases/firstdrift.yaml"))
    assert database["sqlalchemy_uri"] == f"duckdb:///{stages['two']}?access_mode=read_only"


def test_a_database_that_the_bundle_is_not_for_is_named(tmp_path, stages):
    with pytest.raises(ExportError, match="mysql: the bundle is for"):
        write_bundle(tmp_path / "bundle.zip", "mysql://host/lab", stages["two"])
