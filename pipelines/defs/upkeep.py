"""What keeps the instance in order: runs that were killed end, runs of long ago go."""

import json
from datetime import UTC, datetime, timedelta

import dagster as dg

from pipelines.resources import WarehouseResource, is_alive
from warehouse.settings import team_settings
from warehouse.wording import counted

RUN_DAYS = 90
BATCH = 500
_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
# Dagster writes it to the runs that a daemon or a page started.
_STARTED_BY_SERVER = ".dagster/grpc_info"


@dg.sensor(
    minimum_interval_seconds=team_settings().sensor_seconds,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Ends the runs whose process is gone, after a power cut for example: they would keep their place in the "
        "pool, and no run after them would begin."
    ),
)
def killed_runs(context: dg.SensorEvaluationContext, warehouse: WarehouseResource) -> dg.SensorResult:
    """Fail every run that was found without a living process twice in a row."""
    instance = context.instance
    suspects = set(json.loads(context.cursor or "[]"))
    dead = [
        run
        for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
        if _STARTED_BY_SERVER in run.tags and not is_alive(warehouse.settings, run.run_id)
    ]
    for run in dead:
        if run.run_id in suspects:
            instance.report_run_failed(run, "The process of this run is gone: it was killed, or the machine stopped.")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
            (warehouse.settings.running / run.run_id).unlink(missing_ok=True)
    waiting = sorted(run.run_id for run in dead if run.run_id not in suspects)
    return dg.SensorResult(cursor=json.dumps(waiting), skip_reason=f"{counted(len(dead), 'run')} without a process.")


class Retention(dg.Config):
    """How long runs are kept.

    Attributes:
        days: Runs that were started longer ago are forgotten.
    """

    days: int = RUN_DAYS


@dg.op(description="Deletes finished runs of long ago with their events and logs; the tables stay as they are.")
def forget_runs(context: dg.OpExecutionContext, config: Retention) -> int:
    """Delete the finished runs of long ago, except those to which the newest version of an asset belongs."""
    instance = context.instance
    newest = {
        event.run_id
        for event in instance.get_latest_materialization_events(instance.all_asset_keys()).values()
        if event is not None
    }
    before = datetime.now(UTC) - timedelta(days=config.days)
    old = instance.get_runs(dg.RunsFilter(statuses=_FINISHED, created_before=before), limit=BATCH)
    forgotten = [run.run_id for run in old if run.run_id not in newest]
    for run_id in forgotten:
        instance.delete_run(run_id)
        instance.compute_log_manager.delete_logs(prefix=[run_id])
    context.log.info(f"{counted(len(forgotten), 'run')} older than {config.days} days forgotten.")
    return len(forgotten)


@dg.job(
    executor_def=dg.in_process_executor,
    description="Deletes what Dagster remembers of runs of long ago. Dagster itself purges ticks alone (dagster.yaml).",
)
def forget_old_runs() -> None:
    """Forget old runs; their number of days is the configuration of the op."""
    forget_runs()


@dg.schedule(
    job=forget_old_runs,
    cron_schedule="0 5 * * 0",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description=f"Forgets runs older than {RUN_DAYS} days, once a week.",
)
def weekly_upkeep() -> dg.RunRequest:
    """Ask for a run of the job."""
    return dg.RunRequest()
