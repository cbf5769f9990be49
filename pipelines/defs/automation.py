"""What makes runs happen: the job, the folder sensor and the daily schedule."""

import hashlib

import dagster as dg

from pipelines.defs.ingestion import migrations
from pipelines.ingest.base import LogError
from pipelines.intake import content_hash
from pipelines.landing import find_manifests, resolve_log
from pipelines.manifest import Manifest, ManifestError
from pipelines.resources import WarehouseResource

JOB_NAME = "everything"
SENSOR_SECONDS = 60

everything = dg.define_asset_job(
    JOB_NAME,
    selection=dg.AssetSelection.all(),
    description="Take in what lies in landing, build every table that it touches, check, publish.",
    executor_def=dg.in_process_executor,
)


def landing_state(manifests: list[Manifest]) -> dict[str, str]:
    """Return a hash of the declared runs and their logs for each migration."""
    state = {}
    for manifest in manifests:
        digest = hashlib.sha256(repr((manifest.recipe, manifest.runs)).encode())
        for entry in manifest.runs:
            try:
                digest.update(content_hash(resolve_log(manifest, entry)).encode())
            except (ManifestError, LogError, OSError) as error:
                digest.update(str(error).encode())
        state[manifest.migration] = digest.hexdigest()
    return state


def run_tags(partitions: list[str]) -> dict[str, str]:
    """Return the tags by which one Dagster run takes in every partition from the first to the last."""
    return {
        "dagster/asset_partition_range_start": partitions[0],
        "dagster/asset_partition_range_end": partitions[-1],
    }


@dg.sensor(
    job=everything,
    minimum_interval_seconds=SENSOR_SECONDS,
    description="Starts one run when a log in landing is new or has changed; the run key is a hash of what lies there.",
)
def landing_sensor(
    context: dg.SensorEvaluationContext, warehouse: WarehouseResource
) -> dg.SensorResult | dg.SkipReason:
    """Compare what lies in landing with what the last tick saw."""
    manifests, failures = find_manifests(warehouse.settings.landing)
    if not manifests:
        lines = [failure.message for failure in failures]
        return dg.SkipReason(" ".join(lines) or f"No logs in {warehouse.settings.landing}.")
    state = landing_state(manifests)
    run_key = hashlib.sha256(repr(sorted(state.items())).encode()).hexdigest()[:16]
    if context.cursor == run_key:
        return dg.SkipReason("Nothing in landing has changed.")
    known = list(context.instance.get_dynamic_partitions("migration"))
    added = [name for name in state if name not in known]
    return dg.SensorResult(
        run_requests=[dg.RunRequest(run_key=run_key, tags=run_tags([*known, *added]))],
        dynamic_partitions_requests=[migrations.build_add_request(added)] if added else [],
        cursor=run_key,
    )


@dg.schedule(
    job=everything,
    cron_schedule="0 6 * * *",
    description="Takes in every migration once a day, for logs that grow slowly.",
)
def daily(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """Ask for a run over the known migrations."""
    known = list(context.instance.get_dynamic_partitions("migration"))
    if not known:
        return dg.SkipReason("No migration is known yet.")
    return dg.RunRequest(tags=run_tags(known))
