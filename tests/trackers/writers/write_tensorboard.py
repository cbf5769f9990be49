"""Let TensorBoard's record writer and protocol classes write the scenario: target folder as argument."""

import sys
from pathlib import Path

import scenario
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

for run in scenario.RUNS:
    for leg, steps in scenario.legs():
        writer = EventFileWriter(str(Path(sys.argv[1]) / run), filename_suffix=f".leg{leg}")
        for step in steps:
            for metric, value in scenario.row(run, leg, step).items():
                summary = Summary(value=[Summary.Value(tag=metric, simple_value=value)])
                writer.add_event(Event(wall_time=1.7e9 + 100 * leg + step, step=step, summary=summary))
        writer.close()
