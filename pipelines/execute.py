"""Running the Dagster job from the command line, with progress.

The only module of the command line that imports Dagster; `pipelines.cli` imports it inside the commands
that run assets.
"""

import fcntl
import logging
import os
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

warnings.filterwarnings("ignore", module="dagster")

import dagster as dg  # noqa: E402
from sqlalchemy.exc import SQLAlchemyError  # noqa: E402

from pipelines.dagster_storage import prepare_storage  # noqa: E402
from pipelines.definitions import defs  # noqa: E402
from pipelines.defs.automation import JOB_NAME, run_tags  # noqa: E402
from pipelines.discovery import find_manifests  # noqa: E402
from pipelines.resources import WarehouseResource  # noqa: E402
from warehouse.connection import WarehouseLockedError, repair  # noqa: E402
from warehouse.settings import HOME_VARIABLE, Settings  # noqa: E402

_LAUNCHER_TAG = "firstdrift/launcher"
_UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@dataclass(frozen=True)
class RunSummary:
    """What one run of all assets did.

    Attributes:
        is_success: Every step ran and nothing in landing was unreadable.
        migrations: Migrations that lie in landing.
        runs_read: Logs that were read.
        runs_unchanged: Logs that had not changed.
        points_added: Points added to the star.
        lines_in_quarantine: Pieces of the read logs that could not be read.
        messages: A sentence for everything that went wrong.
        notes: Sentences worth knowing.
        failed_checks: Asset checks that did not pass, each with its number of failures.
        published: Path of the published file.
        is_new: A new file was published.
    """

    is_success: bool
    migrations: int = 0
    runs_read: int = 0
    runs_unchanged: int = 0
    points_added: int = 0
    lines_in_quarantine: int = 0
    messages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failed_checks: dict[str, int] = field(default_factory=dict)
    published: str = ""
    is_new: bool = False


def step_count() -> int:
    """Return the number of steps of the job, for a progress bar."""
    return len(defs.resolve_job_def(JOB_NAME).graph.nodes)


def run_everything(settings: Settings, report: Callable[[str], None]) -> RunSummary:
    """Take in what lies in landing and build, check and publish everything.

    Args:
        settings: The warehouse.
        report: Called with the name of each step when it is done.
    """
    found = find_manifests(settings.landing)
    names = [manifest.migration for manifest in found.manifests]
    if not names:
        messages = [failure.message for failure in found.failures]
        return RunSummary(False, messages=messages or [_nothing_to_read(settings)], notes=list(found.notes))
    with _told_failures(settings), _only_run(settings), _instance(settings) as instance:
        note = repair(settings.database)
        _bury_killed_runs(instance)
        instance.add_dynamic_partitions("migration", names)
        partitions = list(instance.get_dynamic_partitions("migration"))
        job = dg.Definitions.merge(
            dg.Definitions(loggers={"progress": _progress_logger(report)}), defs
        ).resolve_job_def(JOB_NAME)
        result = job.execute_in_process(
            instance=instance,
            tags={**run_tags(partitions), _LAUNCHER_TAG: "command line"},
            resources={"warehouse": WarehouseResource(home=str(settings.home))},
            run_config={"loggers": {"progress": {}}},
            raise_on_error=False,
        )
    summary = _summary(result)
    return replace(summary, notes=[note, *summary.notes]) if note else summary


def _nothing_to_read(settings: Settings) -> str:
    return (
        f"{settings.landing} holds no logs. Put a folder with a migration.yaml there, or name your logs with "
        "`firstdrift add`."
    )


@contextmanager
def _told_failures(settings: Settings) -> Iterator[None]:
    """Say in one sentence that Dagster's storage can't be used, on a full disk for example."""
    try:
        prepare_storage(settings.dagster_home)
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        what = str(error).splitlines()[0]
        raise OSError(
            f"{settings.dagster_home}: Dagster's storage can't be used: {what}; make room there or mend its rights, "
            "then run again."
        ) from error


@contextmanager
def _instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
    os.environ[HOME_VARIABLE] = str(settings.home)
    with dg.DagsterInstance.from_config(str(settings.dagster_home)) as instance:
        yield instance


@contextmanager
def _only_run(settings: Settings) -> Iterator[None]:
    """Hold the right to run from the command line; the system takes it back from a killed process."""
    with (settings.dagster_home / "run.lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise WarehouseLockedError(
                f"Another `firstdrift run` works on {settings.home}. Wait until it has ended, then run again."
            ) from error
        yield


def _bury_killed_runs(instance: dg.DagsterInstance) -> None:
    """End the runs of the command line that were killed; their place in the pool would block every later run."""
    for run in instance.get_runs(dg.RunsFilter(tags={_LAUNCHER_TAG: "command line"}, statuses=_UNFINISHED)):
        instance.report_run_failed(run, "The process was killed.")
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)


def _progress_logger(report: Callable[[str], None]) -> dg.LoggerDefinition:
    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            meta: dict[str, Any] = getattr(record, "dagster_meta", {})
            event = meta.get("dagster_event")
            if event is not None and event.event_type_value in ("STEP_SUCCESS", "STEP_FAILURE", "STEP_SKIPPED"):
                report(str(event.step_key))

    @dg.logger
    def progress(_context: dg.InitLoggerContext) -> logging.Logger:
        logger = logging.Logger("firstdrift.progress", level=logging.DEBUG)
        logger.addHandler(Handler())
        return logger

    return progress


def _summary(result: dg.ExecuteInProcessResult) -> RunSummary:
    metadata: dict[str, dict[str, Any]] = {}
    for event in result.get_asset_materialization_events():
        materialization = event.step_materialization_data.materialization
        metadata["/".join(materialization.asset_key.path)] = {
            key: value.value for key, value in materialization.metadata.items()
        }
    logs = metadata.get("lake/run_logs", {})
    facts = metadata.get("star/fct_metric", {})
    published = metadata.get("published/firstdrift_duckdb", {})
    errors = [_error_text(event) for event in result.all_events if event.is_step_failure]
    failed = {
        f"{e.asset_key.path[-1]}: {e.check_name}": int(str(e.metadata["failures"].value))
        for e in result.get_asset_check_evaluations()
        if not e.passed and "failures" in e.metadata
    }
    messages = [*logs.get("unreadable", []), *errors]
    return RunSummary(
        is_success=result.success and not messages,
        migrations=logs.get("migrations", 0),
        runs_read=logs.get("runs_read", 0),
        runs_unchanged=logs.get("runs_unchanged", 0),
        points_added=facts.get("points_added", 0),
        lines_in_quarantine=logs.get("lines_in_quarantine", 0),
        messages=messages,
        notes=logs.get("notes", []),
        failed_checks=failed,
        published=published.get("path", ""),
        is_new=bool(published.get("is_new", False)),
    )


def _error_text(event: dg.DagsterEvent) -> str:
    error = event.step_failure_data.error
    while error is not None and error.cause is not None:
        error = error.cause
    detail = error.message.strip().splitlines()[0] if error else "no message"
    return f"Step {event.step_key} failed: {detail}"
