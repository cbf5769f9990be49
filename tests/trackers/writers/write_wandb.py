"""Let wandb write the scenario offline: target folder as argument."""

import sys
from pathlib import Path

import scenario
import wandb

for run in scenario.RUNS:
    folder = Path(sys.argv[1]) / run
    folder.mkdir(parents=True, exist_ok=True)
    for leg, steps in scenario.legs():
        session = wandb.init(
            project="scenario",
            id=run,
            name=run,
            dir=str(folder),
            mode="offline",
            resume="allow" if leg == 2 else None,
            config=scenario.CONFIG,
        )
        for step in steps:
            session.log(scenario.row(run, leg, step), step=step)
        session.finish()
