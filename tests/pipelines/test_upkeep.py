"""Killed runs end, old runs go, and a failed run is told to whoever asked for it."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import dagster as dg
import pytest

from pipelines.defs.failure_hook import failure_hook, post
from pipelines.defs.upkeep import forget_old_runs, killed_runs
from pipelines.resources import WarehouseResource, is_alive
from warehouse.settings import team_settings


@dg.op
def divide() -> float:
    return 1 / 0


@dg.job
def breaks() -> None:
    divide()


@dg.asset
def table() -> dg.MaterializeResult:
    return dg.MaterializeResult(metadata={"dagster/row_count": 1})


@pytest.fixture
def instance(tmp_path):
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as made:
        yield made


@pytest.fixture
def listener():
    """A web server of this machine that keeps what it is sent."""
    received: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.append({"type": self.headers["content-type"], "path": self.path, **json.loads(body)})
            self.send_response(500 if self.path.endswith("refused") else 204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", received
    server.shutdown()
    thread.join()
    server.server_close()


def tell(instance) -> None:
    done = breaks.execute_in_process(instance=instance, raise_on_error=False, tags={"firstdrift/changed": "to-npu"})
    context = dg.build_run_status_sensor_context(
        sensor_name="failure_hook",
        dagster_event=done.get_run_failure_event(),
        dagster_instance=instance,
        dagster_run=done.dagster_run,
    )
    failure_hook(context.for_run_failure())


def test_a_failed_run_is_posted_as_one_message(instance, listener, monkeypatch):
    address, received = listener
    monkeypatch.setenv("FIRSTDRIFT_WEBHOOK", f"{address}/hook")
    tell(instance)
    (message,) = received
    assert message["type"] == "application/json"
    assert message["job"] == "breaks"
    assert message["migrations"] == "to-npu"
    assert message["steps"] == [{"step": "divide", "error": "ZeroDivisionError: division by zero"}]
    assert "division by zero" in message["text"]
    assert instance.get_run_by_id(message["run_id"]).is_failure


def test_without_an_address_a_failed_run_is_logged(instance, capfd, monkeypatch):
    monkeypatch.delenv("FIRSTDRIFT_WEBHOOK", raising=False)
    tell(instance)
    logged = capfd.readouterr()
    assert '"text": "firstdrift: run ' in logged.out + logged.err


def test_an_address_that_refuses_is_said_without_its_secret(listener):
    address, _ = listener
    with pytest.raises(RuntimeError, match=r"127\.0\.0\.1 did not take the message") as caught:
        post(f"{address}/s3cret/refused", "{}")
    assert "s3cret" not in str(caught.value)


def test_an_address_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("FIRSTDRIFT_WEBHOOK", "file:///etc/passwd")
    with pytest.raises(ValueError, match="FIRSTDRIFT_WEBHOOK is no address"):
        team_settings()


def test_seconds_that_are_none_are_refused(monkeypatch):
    monkeypatch.setenv("FIRSTDRIFT_SENSOR_SECONDS", "often")
    with pytest.raises(ValueError, match="FIRSTDRIFT_SENSOR_SECONDS=often"):
        team_settings()


def test_old_runs_go_and_the_newest_of_an_asset_stays(instance):
    for _ in range(3):
        dg.materialize([table], instance=instance)
    breaks.execute_in_process(instance=instance, raise_on_error=False)
    newest = instance.get_latest_materialization_event(table.key).run_id
    kept = forget_old_runs.execute_in_process(
        instance=instance, run_config={"ops": {"forget_runs": {"config": {"days": 90}}}}
    )
    assert kept.output_for_node("forget_runs") == 0
    forgot = forget_old_runs.execute_in_process(
        instance=instance, run_config={"ops": {"forget_runs": {"config": {"days": 0}}}}
    )
    assert forgot.output_for_node("forget_runs") == 4
    assert {run.run_id for run in instance.get_runs()} == {newest, forgot.run_id}
    event = instance.get_latest_materialization_event(table.key)
    assert event.asset_materialization.metadata["dagster/row_count"].value == 1


def look_for_killed_runs(instance, home, cursor=None) -> Any:
    warehouse = {"warehouse": WarehouseResource(home=str(home))}
    with dg.build_sensor_context(instance=instance, cursor=cursor, resources=warehouse) as context:
        return killed_runs(context)


def test_a_run_whose_process_is_gone_is_ended_at_the_second_look(instance, tmp_path):
    run = instance.create_run_for_job(breaks, status=dg.DagsterRunStatus.STARTED, tags={".dagster/grpc_info": "{}"})
    first = look_for_killed_runs(instance, tmp_path)
    assert instance.get_run_by_id(run.run_id).status == dg.DagsterRunStatus.STARTED
    second = look_for_killed_runs(instance, tmp_path, first.cursor)
    assert instance.get_run_by_id(run.run_id).is_failure
    assert json.loads(second.cursor) == []


def test_a_run_that_lives_is_left_alone(instance, tmp_path):
    warehouse = WarehouseResource(home=str(tmp_path))
    seen = []

    @dg.op
    def look_twice(context: dg.OpExecutionContext, warehouse: WarehouseResource) -> None:
        seen.append(is_alive(warehouse.settings, context.run_id))
        instance.add_run_tags(context.run_id, {".dagster/grpc_info": "{}"})
        found = look_for_killed_runs(instance, tmp_path)
        look_for_killed_runs(instance, tmp_path, found.cursor)

    @dg.job(resource_defs={"warehouse": warehouse}, executor_def=dg.in_process_executor)
    def lives() -> None:
        look_twice()

    done = lives.execute_in_process(instance=instance)
    assert seen == [True]
    assert instance.get_run_by_id(done.run_id).is_success
    assert not is_alive(warehouse.settings, done.run_id)
    assert not any(warehouse.settings.running.iterdir())
