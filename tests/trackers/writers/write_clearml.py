"""Let ClearML write the scenario offline: target folder as argument."""

import os
import sys

import scenario

os.environ["CLEARML_CACHE_DIR"] = sys.argv[1]
from clearml import Task

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
