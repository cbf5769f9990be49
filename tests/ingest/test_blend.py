"""Several logs of one run in one folder."""

from pathlib import Path

from pipelines.ingest.registry import detect, log_files, read_log
from tests.ingest import encode
from tests.ingest.test_fixtures import values


def write(folder: Path, console_loss: str = "0.143") -> None:
    steps = range(1, 4)
    text = "".join(
        f"step:{s} - loss:{console_loss if s == 1 else format(s / 7, '.3f')} - only_console:{s}.000\n" for s in steps
    )
    (folder / "run.log").write_text(text)
    (folder / "tb").mkdir()
    rows = [(s, {"loss": s / 7, "only_events": 1.0}) for s in steps]
    (folder / "tb/events.out.tfevents.1.h").write_bytes(b"".join(encode.events(rows)))
    (folder / "tracker.jsonl").write_text("".join(f'{{"step": {s}, "data": {{"loss": {s / 7}}}}}\n' for s in steps))


def test_the_most_precise_log_wins_metric_by_metric(tmp_path: Path) -> None:
    write(tmp_path)
    log = read_log(tmp_path)
    assert [v[3] for v in values(log, "loss")] == [1 / 7, 2 / 7, 3 / 7]
    assert [v[3] for v in values(log, "only_console")] == [1.0, 2.0, 3.0]
    assert [v[3] for v in values(log, "only_events")] == [1.0, 1.0, 1.0]
    assert log.log_format == "jsonl"
    assert log.issues == ()
    assert set(log.points["source_file"].to_pylist()) == {"run.log", "tracker.jsonl", "events.out.tfevents.1.*"}
    assert [f.name for f in log_files(tmp_path)] == ["events.out.tfevents.1.h", "tracker.jsonl", "run.log"]
    assert detect(tmp_path).NAME == "tensorboard"


def test_disagreement_is_reported(tmp_path: Path) -> None:
    write(tmp_path, console_loss="0.145")
    (issue,) = read_log(tmp_path).issues
    assert issue.source_file == "run.log"
    assert "loss differs from jsonl" in issue.reason
    assert "at 1 of 3 steps, first at step 1" in issue.reason


def test_software_beside_the_log(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra/config.yaml").write_text(
        "trainer:\n  device: npu\nactor_rollout_ref:\n  rollout:\n    name: vllm\n"
    )
    (tmp_path / "requirements.txt").write_text("torch==2.9.0\n")
    found = dict(read_log(tmp_path).metadata)
    assert found.pop("config_hash")
    assert found == {"accelerator": "npu", "rollout_engine": "vllm", "torch": "2.9.0"}


def test_another_process_that_repeats_a_step_is_another_attempt(tmp_path: Path) -> None:
    lines = ["(TaskRunner pid=7) step:1 - loss:0.5", "(TaskRunner pid=7) step:2 - loss:0.25"]
    lines += ["(TaskRunner pid=9) step:2 - loss:0.125 - kl:0.1", "(TaskRunner pid=9) step:3 - loss:0.1"]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    log = read_log(tmp_path / "run.log")
    assert values(log, "loss") == [(1, 1, 1, 0.5), (1, 2, 1, 0.25), (2, 2, 1, 0.125), (2, 3, 1, 0.1)]
    assert values(log, "kl") == [(2, 2, 1, 0.1)]


def test_runs_below_do_not_hide_the_log(tmp_path: Path) -> None:
    (tmp_path / "tracker.jsonl").write_text('{"step": 1, "data": {"loss": 0.5}}\n')
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "events.out.tfevents.1.h").write_bytes(b"".join(encode.events([(1, {"x": 1.0})])))
    assert read_log(tmp_path).points["metric_name"].to_pylist() == ["loss"]
