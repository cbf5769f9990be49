"""Let SwanLab write the scenario offline: target folder as argument."""

import sys
from pathlib import Path

import scenario
import swanlab

for run in scenario.RUNS:
    folder = Path(sys.argv[1]) / run
    folder.mkdir(parents=True, exist_ok=True)
    for leg, steps in scenario.legs():
        swanlab.init(
            project="scenario", experiment_name=run, logdir=str(folder), mode="offline", config=scenario.CONFIG
        )
        for step in steps:
            swanlab.log(scenario.row(run, leg, step), step=step)
        swanlab.finish()
