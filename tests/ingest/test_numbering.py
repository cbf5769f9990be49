"""Attempts and write numbers found batch by batch are those of all points at once."""

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest.attempts import Numbering
from pipelines.ingest.draft import Draft
from tests.ingest.whole_attempts import attempts

Write = tuple[str, str, int, str, bool]  # metric, axis, step, file, written by another process than the one before

METRICS = st.sampled_from("abcde")
AXES = st.sampled_from(["step", "step", "step", "eval_step"])


@st.composite
def writes(draw: st.DrawFn) -> list[Write]:
    """A log of one to three files: steps go on, stay, go back a little or restart."""
    out: list[Write] = []
    step = draw(st.integers(0, 5))
    for file in "fgh"[: draw(st.integers(1, 3))]:
        for _ in range(draw(st.integers(0, 25))):
            out.append((draw(METRICS), draw(AXES), step, file, draw(st.integers(0, 19)) == 0))
            step = max(0, step + draw(st.sampled_from([0, 0, 0, 1, 1, 1, 2, -1, -3])))
        step = max(0, step - draw(st.integers(0, 6)))
    return out


def at_once(log: list[Write]) -> list[tuple[int, int]]:
    """Return attempt and write number of each write, by the plain rule."""
    sessions, session, file = [], 0, ""
    for _, _, _, here, is_other in log:
        session += here != file or is_other
        file = here
        sessions.append(session)
    found = [0] * len(log)
    for axis in {axis for _, axis, *_ in log}:
        rows = [at for at, row in enumerate(log) if row[1] == axis]
        name = np.array([ord(log[at][0]) for at in rows])
        step = np.array([log[at][2] for at in rows])
        for at, attempt in zip(rows, attempts(name, step, np.array([sessions[at] for at in rows])), strict=True):
            found[at] = int(attempt)
    counted: dict[tuple, int] = {}
    out = []
    for row, attempt in zip(log, found, strict=True):
        key = (row[0], row[1], row[2], attempt)
        counted[key] = counted.get(key, 0) + 1
        out.append((attempt, counted[key]))
    return out


def batch_by_batch(log: list[Write], cuts: list[int]) -> list[tuple[int, int]]:
    numbering = Numbering()
    numbers: list[tuple[int, int]] = []
    for begin, end in zip([0, *cuts], [*cuts, len(log)], strict=True):
        draft = Draft()
        for at in range(begin, end):
            metric, axis, step, file, is_other = log[at]
            if is_other:
                draft.mark_process()
            draft.add(metric, step, 0.0, None, (file, at), axis=axis)
        numbered = numbering.number(draft.take(), draft)
        for change in numbered.backdated:
            for at in range(begin):
                if log[at][1] == change.axis and log[at][3] == change.source_file and at >= change.position:
                    numbers[at] = (numbers[at][0] + 1, numbers[at][1])
        numbers += zip(numbered.attempt.tolist(), numbered.write_no.tolist(), strict=True)
        keys = [(log[begin + at][:2], numbers[begin + at][0], log[begin + at][2], at) for at in numbered.order]
        assert keys == sorted(keys), "the order of the table"
        numbering = Numbering.from_dict(json.loads(json.dumps(numbering.as_dict())))
    return numbers


@settings(max_examples=200, deadline=None)
@given(log=writes(), data=st.data())
def test_batches_of_any_size_give_the_same_numbers(log: list[Write], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(log)), max_size=6)))
    assert batch_by_batch(log, cuts) == at_once(log)


def test_a_restart_that_shows_late_reaches_back_into_earlier_batches() -> None:
    log: list[Write] = [
        ("loss", "step", 1, "f", False),
        ("loss", "step", 9, "f", False),
        ("val", "step", 4, "g", False),  # the new file begins here, but nothing is repeated yet
        ("val", "step", 5, "g", False),
        ("loss", "step", 5, "g", False),
    ]
    assert [attempt for attempt, _ in batch_by_batch(log, [3, 4])] == [1, 1, 2, 2, 2]
