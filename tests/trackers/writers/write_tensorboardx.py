"""Let tensorboardX write the scenario: target folder as argument."""

import sys
import time
from pathlib import Path

import scenario
from tensorboardX import SummaryWriter

for run in scenario.RUNS:
    for leg, steps in scenario.legs():
        time.sleep(1.1)  # the file is named by the second
        writer = SummaryWriter(str(Path(sys.argv[1]) / run))
        for step in steps:
            for metric, value in scenario.row(run, leg, step).items():
                writer.add_scalar(metric, value, step)
        writer.close()
