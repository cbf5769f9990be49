"""Let ClearML write the scenario offline: target folder as argument."""

import os
import sys
from pathlib import Path

import scenario

TARGET = Path(sys.argv[1])
# Events are written by this process: a second one that is lost at the end would be waited for.
TARGET.joinpath("clearml.conf").write_text("sdk { development { report_use_subprocess: false } }")
os.environ |= {"CLEARML_CACHE_DIR": str(TARGET), "CLEARML_CONFIG_FILE": str(TARGET / "clearml.conf")}

from clearml import Task  # noqa: E402 - reads the variables when imported

Task.set_offline(offline_mode=True)
for run in scenario.RUNS:
    task = Task.init(
        project_name="scenario",
        task_name=run,
        auto_connect_frameworks=False,
        auto_resource_monitoring=False,
        auto_connect_arg_parser=False,
        reuse_last_task_id=False,
    )
    task.connect(dict(scenario.CONFIG))
    for leg, steps in scenario.legs():
        for step in steps:
            for metric, value in scenario.row(run, leg, step).items():
                title, _, series = metric.partition("/")
                task.get_logger().report_scalar(title, series or title, value, step)
    task.close()
    session = next((TARGET / "offline").glob(f"*{task.id.removeprefix('offline-')}"))
    session.rename(TARGET / run)
    next((TARGET / "offline").glob(f"*{task.id.removeprefix('offline-')}.zip")).rename(TARGET / f"{run}.zip")
os._exit(0)  # its background threads would wait for a server
