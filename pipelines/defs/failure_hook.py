"""Telling a team that a run failed: one message of JSON to an address of theirs.

An example to build on: whatever takes a POST, a chat or a pager, can be told.
"""

import json
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import dagster as dg

from warehouse.settings import WEBHOOK_VARIABLE, team_settings

TIMEOUT_SECONDS = 10
_LONGEST_ERROR = 500


@dg.run_failure_sensor(
    name="failure_hook",
    minimum_interval_seconds=team_settings().sensor_seconds,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=f"Posts one message for each failed run to the address in {WEBHOOK_VARIABLE}, or else logs it.",
)
def failure_hook(context: dg.RunFailureSensorContext) -> None:
    """Post what failed, or log it where no address is set."""
    text = json.dumps(failure_message(context))
    webhook = team_settings().webhook
    if webhook:
        post(webhook, text)
    else:
        context.log.error(text)


def failure_message(context: dg.RunFailureSensorContext) -> dict[str, Any]:
    """Return what is told of a failed run; `text` is the sentence that chat services show."""
    run = context.dagster_run
    steps = [
        {"step": event.step_key, "error": _root_error(event)[:_LONGEST_ERROR]}
        for event in context.get_step_failure_events()
    ]
    reason = f"step {steps[0]['step']}: {steps[0]['error']}" if steps else context.failure_event.message or ""
    return {
        "text": f"firstdrift: run {run.run_id[:8]} of {run.job_name} failed. {reason}".strip(),
        "job": run.job_name,
        "run_id": run.run_id,
        "migrations": run.tags.get("firstdrift/changed", ""),
        "steps": steps,
    }


def _root_error(event: dg.DagsterEvent) -> str:
    error = event.step_failure_data.error
    while error is not None and error.cause is not None:
        error = error.cause
    return error.message.strip() if error else ""


def post(address: str, text: str) -> None:
    """Post JSON.

    Raises:
        RuntimeError: If it is not taken; the message names the host alone, since the address may hold a secret.
    """
    request = Request(address, data=text.encode(), headers={"content-type": "application/json"}, method="POST")
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS):
            pass
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise RuntimeError(f"{urlsplit(address).hostname} did not take the message of a failed run: {reason}") from None
