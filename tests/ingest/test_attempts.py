"""Attempts: found where a run was restarted, and nowhere else."""

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest.registry import read_log
from tests.ingest.whole_attempts import attempts


def number(rows: list[tuple[str, int]], files: list[int] | None = None) -> list[int]:
    names = {name: code for code, name in enumerate(dict.fromkeys(name for name, _ in rows))}
    name = np.array([names[n] for n, _ in rows], dtype=np.int32)
    step = np.array([s for _, s in rows], dtype=np.int64)
    file = np.array(files or [0] * len(rows))
    return attempts(name, step, file).tolist()


def test_a_restart_takes_all_metrics_of_its_first_step_along() -> None:
    rows = [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("new", 1), ("a", 1), ("b", 1), ("a", 2)]
    assert number(rows) == [1, 1, 1, 1, 2, 2, 2, 2]


def test_a_validation_at_the_step_of_resume_belongs_to_the_new_attempt() -> None:
    rows = [("loss", 4), ("val", 5), ("loss", 5), ("loss", 6), ("val", 5), ("loss", 6)]
    assert number(rows) == [1, 1, 1, 1, 2, 2]


def test_two_processes_with_metrics_of_their_own_are_one_attempt() -> None:
    rows = [("loss", 1), ("loss", 2), ("loss", 3), ("eval", 1), ("eval", 2)]
    assert number(rows, [0, 0, 0, 1, 1]) == [1] * 5


def test_a_file_that_goes_on_is_no_attempt_and_one_that_repeats_is() -> None:
    rows = [("loss", 1), ("loss", 2), ("loss", 3), ("loss", 4)]
    assert number(rows, [0, 0, 1, 1]) == [1, 1, 1, 1]
    rows = [("loss", 1), ("loss", 2), ("first", 2), ("loss", 2), ("loss", 3)]
    assert number(rows, [0, 0, 1, 1, 1]) == [1, 1, 2, 2, 2]


@settings(max_examples=80, deadline=None)
@given(legs=st.lists(st.tuples(st.integers(0, 30), st.integers(2, 20)), min_size=1, max_size=5))
def test_each_step_back_is_an_attempt(legs: list[tuple[int, int]]) -> None:
    """Legs of one metric that each begin at or below what the one before had reached, and go beyond by at least one."""
    rows, wanted, reached = [], [], None
    for attempt, (back, length) in enumerate(legs, 1):
        start = 100 if reached is None else max(0, reached - 1 - back)
        rows += [("loss", step) for step in range(start, start + length)]
        wanted += [attempt] * length
        reached = start + length - 1
    assert number(rows) == wanted


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(st.integers(0, 1000), min_size=2, max_size=40, unique=True), data=st.data())
def test_a_rotated_log_reads_as_the_whole(steps: list[int], data: st.DataObject, tmp_path_factory) -> None:
    folder: Path = tmp_path_factory.mktemp("rotated")
    lines = [f'{{"step": {s}, "data": {{"loss": {s / 7}, "lr": 1e-6}}}}\n' for s in sorted(steps)]
    cut = data.draw(st.integers(1, len(lines) - 1))
    (folder / "whole.jsonl").write_text("".join(lines))
    (folder / "parts").mkdir()
    (folder / "parts/1.jsonl").write_text("".join(lines[:cut]))
    (folder / "parts/2.jsonl").write_text("".join(lines[cut:]))
    kept = ["metric_name", "step_axis", "attempt", "step", "write_no", "value", "value_kind"]
    assert read_log(folder / "parts").points.select(kept) == read_log(folder / "whole.jsonl").points.select(kept)
