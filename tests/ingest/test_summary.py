"""What `inspect` says of a log."""

import json
from pathlib import Path

from pipelines.ingest.summary import summarize
from tests.ingest.test_fixtures import FIXTURES


def test_summary_of_two_axes() -> None:
    summary = summarize(FIXTURES / "jsonl")
    axes = {(a.step_axis, a.attempt): (a.points, a.steps, a.first_step, a.last_step) for a in summary.axes}
    assert axes == {("optimizer_step", 1): (6, 3, 1, 3), ("step", 1): (10, 3, 0, 2)}
    grad = next(m for m in summary.metrics if m.metric_name == "train_metrics/worker_0/grad_norm")
    assert (grad.points, grad.not_finite) == (3, {"nan": 1})
    assert summary.value_kinds == {"finite": 11, "nan": 2, "neg_inf": 1, "nonfinite_unknown": 1, "pos_inf": 1}
    assert "3 pieces could not be read; 1 points and an unknown number in 2 places are quarantined." in summary.notes
    assert json.loads(json.dumps(summary.as_dict()))["points"] == 16


def test_notes_of_restarts_and_late_beginnings(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(f'{{"step": {s}, "data": {{"x": 1.0}}}}\n' for s in (40, 41, 42, 41)))
    notes = summarize(tmp_path / "a.jsonl").notes
    assert notes[0].startswith("The log begins at step 40 of the axis step")
    assert notes[1] == "Attempt 2 on the axis step begins again at step 41."


def test_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"step": 1, "data": {"x": 1.0}}\n')
    summarize(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]
