"""A million lines of which one in a hundred is damaged: nothing crashes, and no point is unaccounted for.

Reading them takes longer than `make test` should, so `make test-trackers` does it.
"""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from tests.pipelines.passes import Lake
from warehouse import lake as lake_files

LINES, BAD_EVERY, PER_LINE = 1_000_000, 100, 3


def write(path: Path) -> None:
    chance = random.Random(5)
    with path.open("w") as file:
        for step in range(1, LINES + 1):
            line = f'{{"step": {step}, "data": {{"a": {step / 7}, "b": {step}, "c": NaN}}}}'
            if step % BAD_EVERY == 0:
                line = line.replace(": NaN", ": NaN" + chance.choice(["NaN", " x", '"', "}{", "\x00"]))
            file.write(line + "\n")


@pytest.mark.trackers
def test_a_million_lines_with_bad_ones(tmp_path: Path) -> None:
    log, lake = tmp_path / "log.jsonl", Lake(tmp_path / "lake")
    write(log)
    outcome = lake.take_in(log)
    assert not outcome.error
    assert outcome.issue_count == LINES // BAD_EVERY
    folder = lake_files.run_folder(lake.folder, "m", "r")
    issues = pa.concat_tables([lake_files.read_part(folder, name) for name in lake.content().issues])
    assert outcome.point_count + sum(issues["lost_points"].to_pylist()) == LINES * PER_LINE
    assert sorted(issues["source_position"].to_pylist()) == list(range(BAD_EVERY, LINES + 1, BAD_EVERY))
    steps = {step for name in lake.content().points for step in lake_files.read_part(folder, name)["step"].to_pylist()}
    assert steps == set(range(1, LINES + 1)) - set(range(BAD_EVERY, LINES + 1, BAD_EVERY))
