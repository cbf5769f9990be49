"""The Dagster code location: it loads, its graph is as recorded, sensor and schedule really tick."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

dg = pytest.importorskip("dagster")

from pipelines.definitions import defs  # noqa: E402
from pipelines.defs import automation  # noqa: E402
from pipelines.defs.metadata import made_by  # noqa: E402
from pipelines.resources import WarehouseResource  # noqa: E402
from tests.conftest import PROJECT  # noqa: E402
from tests.integration.conftest import write_log  # noqa: E402

SNAPSHOT = Path(__file__).with_name("asset_graph.txt")


def graph_text() -> str:
    graph = defs.resolve_asset_graph()
    lines = []
    for key in sorted(graph.get_all_asset_keys(), key=lambda k: k.to_user_string()):
        node = graph.get(key)
        parents = " ".join(sorted(k.to_user_string() for k in node.parent_keys))
        checks = " ".join(sorted(k.name for k in graph.asset_check_keys if k.asset_key == key))
        lines.append(f"{key.to_user_string()} [{node.group_name}] <- {parents or '-'} ? {checks or '-'}")
    return "\n".join(lines) + "\n"


def test_definitions_load_and_are_valid():
    dg.Definitions.validate_loadable(defs)


def test_the_asset_graph_is_as_recorded():
    """To record a new graph: FIRSTDRIFT_RECORD=1 make unit, then read the difference."""
    text = graph_text()
    if os.environ.get("FIRSTDRIFT_RECORD"):
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert text == SNAPSHOT.read_text(encoding="utf-8")


def test_every_asset_has_group_kinds_owners_and_a_description_with_its_grain():
    graph = defs.resolve_asset_graph()
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.group_name in {"lake", "star", "staging", "intermediate", "marts", "published"}
        assert node.kinds, key
        assert node.owners == ("team:firstdrift",), key
        assert "Grain" in (node.description or ""), key
        is_looked_at = node.group_name in {"marts", "published"}
        assert (node.freshness_policy is not None) == is_looked_at, key


def test_every_asset_links_to_the_file_that_makes_it():
    graph = defs.resolve_asset_graph()
    for key in graph.get_all_asset_keys():
        (reference,) = graph.get(key).metadata["dagster/code_references"].code_references
        path = Path(reference.file_path)
        assert path.is_file()
        if key.path[0] in {"staging", "intermediate", "marts"}:
            assert path == PROJECT / "models" / key.path[0] / f"{key.path[1]}.sql"
        if key.path[0] == "star":
            line = path.read_text(encoding="utf-8").splitlines()[reference.line_number - 1]
            assert re.search(rf"\b{key.path[1]}\b", line)


def test_links_lead_to_where_the_team_keeps_the_source(monkeypatch):
    monkeypatch.setenv("FIRSTDRIFT_SOURCE_URL", "https://git.example.org/firstdrift/blob/main/")
    link = made_by(PROJECT / "models" / "marts" / "mart_anomaly.sql", 3)["dagster/code_references"]
    (reference,) = link.code_references
    assert reference.url == "https://git.example.org/firstdrift/blob/main/models/marts/mart_anomaly.sql#L3"


def test_whatever_opens_the_warehouse_shares_one_pool():
    graph = defs.resolve_asset_graph()
    for key in graph.get_all_asset_keys():
        if key.path[0] != "lake":
            assert graph.get(key).pools == {"warehouse"}, key


@pytest.fixture
def home(tmp_path):
    write_log(tmp_path / "landing" / "m" / "gpu.jsonl", [1.0, 2.0])
    write_log(tmp_path / "landing" / "m" / "npu.jsonl", [1.0, 2.5])
    return tmp_path


def tick(instance, home, cursor=None) -> Any:
    warehouse = {"warehouse": WarehouseResource(home=str(home))}
    with dg.build_sensor_context(instance=instance, cursor=cursor, resources=warehouse) as context:
        return automation.landing_sensor(context)


def asked(instance, home, cursor=None) -> Any:
    """Tick until landing was seen at rest."""
    noticed = tick(instance, home, cursor)
    assert not noticed.run_requests
    return tick(instance, home, noticed.cursor)


def test_the_sensor_asks_for_one_run_when_landing_changed_and_for_none_otherwise(home, monkeypatch):
    monkeypatch.setattr(automation, "SPACING_SECONDS", 0.001)
    with dg.DagsterInstance.ephemeral() as instance:
        first = tick(instance, home)
        if not first.run_requests:
            first = tick(instance, home, first.cursor)
        assert len(first.run_requests) == 1
        assert first.dynamic_partitions_requests[0].partition_keys == ["m"]
        instance.add_dynamic_partitions("migration", ["m"])
        again = tick(instance, home, first.cursor)
        assert again.skip_reason.skip_message == "Nothing in landing has changed."
        assert not again.run_requests
        write_log(home / "landing" / "m" / "npu.jsonl", [1.0, 2.5, 3.0])
        grown = tick(instance, home, first.cursor)
        if not grown.run_requests:
            grown = tick(instance, home, grown.cursor)
        assert grown.run_requests[0].run_key != first.run_requests[0].run_key
        assert not grown.dynamic_partitions_requests


def test_a_run_takes_in_what_changed_and_no_more(home):
    with dg.DagsterInstance.ephemeral() as instance:
        first = asked(instance, home)
        instance.add_dynamic_partitions("migration", ["m"])
        write_log(home / "landing" / "m2" / "gpu.jsonl", [1.0])
        added = asked(instance, home, first.cursor)
        tags = added.run_requests[0].tags
        assert automation.run_tags(["m2"]).items() <= tags.items()
        assert tags["firstdrift/changed"] == "m2"


def test_an_empty_landing_is_skipped_with_a_reason(tmp_path):
    with dg.DagsterInstance.ephemeral() as instance:
        skipped = tick(instance, tmp_path)
        assert isinstance(skipped, dg.SkipReason)
        assert "No logs" in (skipped.skip_message or "")


def test_the_schedule_asks_for_all_known_migrations(tmp_path):
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        context = dg.build_schedule_context(instance=instance)
        assert isinstance(automation.daily(context), dg.SkipReason)
        instance.add_dynamic_partitions("migration", ["a", "b", "c"])
        request: Any = automation.daily(context)
        assert isinstance(request, dg.RunRequest)
        assert request.tags == automation.run_tags(["a", "c"])


def test_a_run_that_the_sensor_asked_for_publishes_a_verdict(home, monkeypatch):
    monkeypatch.setenv("FIRSTDRIFT_HOME", str(home))
    with dg.DagsterInstance.ephemeral() as instance:
        result = asked(instance, home)
        assert isinstance(result, dg.SensorResult)
        instance.add_dynamic_partitions("migration", ["m"])
        job = defs.resolve_job_def(automation.JOB_NAME)
        done = job.execute_in_process(instance=instance, tags=result.run_requests[0].tags, raise_on_error=True)
        assert done.success
        key = dg.AssetKey(["marts", "mart_pair_verdict"])
        event = instance.get_latest_materialization_event(key)
        assert event is not None
        assert event.asset_materialization is not None
        metadata = event.asset_materialization.metadata
        assert metadata["dagster/row_count"].value == 1
        assert {"dagster/column_schema", "dagster/column_lineage", "preview"} <= metadata.keys()
        assert metadata["pairs"].value == 1
        assert "data:image/svg+xml;base64," in str(metadata["onsets"].value)
    assert (home / "published" / "firstdrift.duckdb").exists()
