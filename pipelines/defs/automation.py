"""What makes runs happen: the job, the sensor of landing and the daily schedule."""

import time

import dagster as dg

from pipelines.defs.ingestion import migrations
from pipelines.defs.watching import look, read_memory, write_memory
from pipelines.discovery import find_manifests
from pipelines.resources import WarehouseResource
from warehouse.settings import team_settings

JOB_NAME = "everything"
SENSOR_SECONDS = team_settings().sensor_seconds
# A log that grows all the time starts a run every fifteenth look, every quarter of an hour.
SPACING_SECONDS = 15 * SENSOR_SECONDS
_NAMES_SHOWN = 5

everything = dg.define_asset_job(
    JOB_NAME,
    selection=dg.AssetSelection.all(),
    description="Take in what lies in landing, build every table that it touches, check, publish.",
    executor_def=dg.in_process_executor,
    # Everything may be repeated; what has not changed costs little.
    tags={"dagster/retry_strategy": "ALL_STEPS"},
)


def run_tags(partitions: list[str]) -> dict[str, str]:
    """Return the tags by which one Dagster run takes in every partition from the first to the last."""
    return {
        "dagster/asset_partition_range_start": partitions[0],
        "dagster/asset_partition_range_end": partitions[-1],
    }


@dg.sensor(
    job=everything,
    minimum_interval_seconds=SENSOR_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Starts a run when a log in landing is new or has grown, once it rests; one that never rests is taken in "
        f"every {SPACING_SECONDS // 60} minutes."
    ),
)
def landing_sensor(
    context: dg.SensorEvaluationContext, warehouse: WarehouseResource
) -> dg.SensorResult | dg.SkipReason:
    """Ask for one run over the migrations whose logs have changed."""
    landed = find_manifests(warehouse.settings.landing)
    if not landed.manifests:
        lines = [*(failure.message for failure in landed.failures), *landed.notes]
        return dg.SkipReason(" ".join(lines) or f"No logs in {warehouse.settings.landing}.")
    found = look(landed.manifests, read_memory(context.cursor), time.time(), SPACING_SECONDS)
    cursor = write_memory(found.memory)
    if not found.changed:
        reason = "Nothing in landing has changed."
        if found.waiting:
            reason = f"Still being written, or taken in a short while ago: {_names(found.waiting)}."
        return dg.SensorResult(skip_reason=reason, cursor=cursor)
    known = list(context.instance.get_dynamic_partitions("migration"))
    added = [name for name in found.changed if name not in known]
    # From the first to the last that changed: what lies between them is looked at in passing.
    order = [name for name in [*known, *added] if name in found.changed]
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(run_key=found.key, tags={**run_tags(order), "firstdrift/changed": _names(found.changed)})
        ],
        dynamic_partitions_requests=[migrations.build_add_request(added)] if added else [],
        cursor=cursor,
    )


def _names(migrations_found: tuple[str, ...]) -> str:
    more = len(migrations_found) - _NAMES_SHOWN
    return ", ".join(migrations_found[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


@dg.schedule(
    job=everything,
    cron_schedule="0 6 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Takes in every migration once a day, so that what is published is known to be current.",
)
def daily(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """Ask for a run over the known migrations."""
    known = list(context.instance.get_dynamic_partitions("migration"))
    if not known:
        return dg.SkipReason("No migration is known yet.")
    return dg.RunRequest(tags=run_tags(known))
