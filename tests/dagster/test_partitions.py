"""Migrations as partitions on a running instance: what lands later, a backfill of one, and a power cut.

The tests follow one another on the instance that test_page.py looked at.
"""

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import duckdb
import pytest

from tests.dagster.instance import LOCATION, Instance, running_instance, waited
from tests.integration.conftest import write_log

pytestmark = pytest.mark.browser
SENSOR = {**LOCATION, "sensorName": "landing_sensor"}
PARTITION = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def published(instance: Instance, sql: str) -> list[tuple]:
    with duckdb.connect(instance.home / "published" / "firstdrift.duckdb", read_only=True) as con:
        return con.execute(sql).fetchall()


def contents(instance: Instance) -> dict[str, str]:
    """Return the content hash of every run, by migration and name."""
    found = published(instance, "select migration || '/' || run_name, content_hash from dim_run")
    return dict(found)


def rebuilt_pairs(instance: Instance) -> int:
    """Return how many pairs the last materialization of the differences rebuilt."""
    found = instance.ask(
        """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
            assetMaterializations(limit: 1) { metadataEntries { label ... on IntMetadataEntry { intValue } } } } } }""",
        key={"path": ["marts", "mart_paired_delta"]},
    )
    (event,) = found["assetNodeOrError"]["assetMaterializations"]
    return {entry["label"]: entry.get("intValue") for entry in event["metadataEntries"]}["keys_rebuilt"]


def stop_sensor(instance: Instance) -> None:
    found = instance.ask(
        "query($s: SensorSelector!) { sensorOrError(sensorSelector: $s) { ... on Sensor { sensorState { id } } } }",
        s=SENSOR,
    )
    state = found["sensorOrError"]["sensorState"]["id"]
    stopped = instance.ask("mutation($id: String!) { stopSensor(id: $id) { __typename } }", id=state)
    assert stopped["stopSensor"]["__typename"] == "StopSensorMutationResult", stopped


def test_a_log_that_lands_later_starts_a_run_over_its_migration_alone(landed):
    before = contents(landed)
    for name, last in (("gpu", 2.0), ("npu", 2.5)):
        write_log(landed.home / "landing" / "other" / f"{name}.jsonl", [1.0, 1.5, last])
    newest = landed.ended(2)[0]
    assert newest["status"] == "SUCCESS"
    assert [newest["tags"][key] for key in PARTITION] == ["other", "other"]
    assert newest["tags"]["firstdrift/changed"] == "other"
    after = contents(landed)
    assert before.items() < after.items()
    assert after.keys() - before.keys() == {"other/gpu", "other/npu"}
    assert rebuilt_pairs(landed) == 1


def test_a_backfill_of_one_migration_touches_its_pairs_alone(landed):
    stop_sensor(landed)
    before = contents(landed)
    write_log(landed.home / "landing" / "other" / "npu.jsonl", [1.0, 1.5, 2.5, 4.0])
    log = landed.home / "landing" / "sorting-npu" / "gpu_n1.jsonl.gz"
    log.write_bytes(gzip.compress(b"".join(gzip.decompress(log.read_bytes()).splitlines(keepends=True)[:-1])))
    nodes = landed.ask("{ assetNodes { assetKey { path } } }")["assetNodes"]
    # What the page asks for when a partition of the job `everything` is materialized.
    launched = landed.ask(
        """mutation($backfill: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $backfill) {
            __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }""",
        backfill={
            "assetSelection": [{"path": node["assetKey"]["path"]} for node in nodes],
            "partitionNames": ["other"],
        },
    )["launchPartitionBackfill"]
    assert launched["__typename"] == "LaunchBackfillSuccess", launched

    def status() -> str | None:
        found = landed.ask(
            "query($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status } } }",
            id=launched["backfillId"],
        )["partitionBackfillOrError"]["status"]
        return found if found.startswith(("COMPLETED", "FAILED")) else None

    assert waited(status, 480, "the end of the backfill") == "COMPLETED_SUCCESS"
    mine = [run for run in landed.runs() if run["tags"].get("dagster/backfill") == launched["backfillId"]]
    assert {run["status"] for run in mine} == {"SUCCESS"}
    after = contents(landed)
    assert {name for name in after if after[name] != before[name]} == {"other/npu"}
    assert rebuilt_pairs(landed) == 1


def test_a_power_cut_is_recovered_from_and_told(landed):
    """Kills everything in the middle of a run; after a start the run is ended, told and tried again."""
    landed.ask("mutation($id: SensorSelector!) { startSensor(sensorSelector: $id) { __typename } }", id=SENSOR)
    started = waited(lambda: [run for run in landed.runs() if run["status"] == "STARTED"], 240, "a run that started")
    killed = started[0]["runId"]
    waited(lambda: list((landed.home / "running").glob(killed)), 60, "its sign of life")
    landed.kill()
    told: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    with running_instance(landed.home, FIRSTDRIFT_SENSOR_SECONDS="4", FIRSTDRIFT_WEBHOOK=address) as again:
        retried = waited(
            lambda: [run for run in again.runs() if run["tags"].get("dagster/parent_run_id") == killed],
            240, "the second try of the killed run",
        )  # fmt: skip
        assert len(retried) == 1
        runs = again.ended(len(again.runs()))
        by_id = {run["runId"]: run for run in runs}
        assert by_id[killed]["status"] == "FAILURE"
        retries = [run for run in runs if run["tags"].get("dagster/parent_run_id") == killed]
        assert [run["status"] for run in retries] == ["SUCCESS"]
        waited(lambda: told, 60, "the message of the failed run")
        assert told[0]["run_id"] == killed
        assert again.runs()[0]["status"] == "SUCCESS"
        assert published(again, "select count(*) from mart_pair_verdict where migration = 'other'") == [(1,)]
    server.shutdown()
    server.server_close()
