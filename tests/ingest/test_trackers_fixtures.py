"""What is peculiar to each tracker's files, on the fixtures."""

import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from pipelines.ingest.base import LogError
from pipelines.ingest.metadata import ALLOWED
from pipelines.ingest.registry import READERS, read_log
from tests.ingest import encode
from tests.ingest.test_fixtures import FIXTURES, values

INF = float("inf")


def test_wandb_sessions_and_custom_axis() -> None:
    run = read_log(FIXTURES / "wandb")
    assert values(run, "loss")[-2:] == [(2, 3, 1, 0.25), (2, 4, 1, 0.125)]
    assert values(run, "val/acc", "val/step") == [(1, 100, 1, 0.75)]
    assert values(run, "val/acc") == []
    assert run.status == "unknown", "the last session has no exit record"
    assert read_log(FIXTURES / "wandb/offline-run-20260101_000000-x").status == "finished"


def test_wandb_runs_are_not_mixed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"run-{name}.wandb").write_bytes(encode.wandb([(1, {"x": 1.0})]))
    with pytest.raises(LogError, match="several runs"):
        read_log(tmp_path)


def test_wandb_record_over_several_blocks(tmp_path: Path) -> None:
    wide = {f"metric/{n:05d}": n / 7 for n in range(3000)}
    (tmp_path / "run-x.wandb").write_bytes(encode.wandb([(1, wide), (2, {"a": 1.0})]))
    run = read_log(tmp_path / "run-x.wandb")
    assert {r["metric_name"]: r["value"] for r in run.points.to_pylist() if r["step"] == 1} == wide
    assert run.issues == ()


def test_swanlab_sessions_go_by_their_start() -> None:
    run = read_log(FIXTURES / "swanlab")
    assert values(run, "n") == [(1, 3, 1, 16836497.0)]
    assert values(run, "loss")[-1] == (2, 4, 1, 0.125)
    assert run.status == "finished"


def test_mlflow_undoes_what_sqlite_can_not_hold() -> None:
    run = read_log(FIXTURES / "mlflow")
    loss = values(run, "loss")
    assert loss[0] == (1, 1, 1, 0.5)
    assert loss[1][:3] == (1, 2, 1)
    assert loss[1][3] != loss[1][3]
    assert loss[2:] == [(1, 3, 1, INF), (1, 3, 2, -INF), (2, 2, 1, 0.75)]
    assert values(run, "system/cpu", "system") == [(1, 0, 1, 0.25)]


@pytest.mark.parametrize("row", [1, 4, 66_000])
@pytest.mark.parametrize(("column", "cell"), [("value", "x"), ("step", "x"), ("step", 2.5), ("timestamp", "x")])
def test_mlflow_cell_of_another_type_costs_its_row_alone(tmp_path: Path, row: int, column: str, cell: object) -> None:
    rows = [("loss" if at % 2 else "system/\xe9", at / 7, at, False) for at in range(1, 66_101)]
    encode.mlflow(tmp_path / "m.db", {"a": rows})
    with closing(sqlite3.connect(tmp_path / "m.db")) as con:
        con.execute(f"update metrics set {column} = ? where rowid = ?", (cell, row))
        con.commit()
    log = read_log(tmp_path / "m.db")
    assert [(i.source_position, i.lost_points) for i in log.issues] == [(row, 1)]
    read = zip(*(log.points[name].to_pylist() for name in ("source_position", "metric_name", "value")), strict=True)
    assert sorted(read) == [(at, name, value) for name, value, at, _ in rows if at != row]


def test_a_run_of_a_store_is_named(tmp_path: Path) -> None:
    encode.mlflow(tmp_path / "m.db", {"a": [("x", 1.0, 1, False)], "b": [("x", 2.0, 1, False)]})
    with pytest.raises(LogError, match=r"2 runs \(a, b\) and say which one"):
        read_log(tmp_path / "m.db")
    with pytest.raises(LogError, match="none is named c"):
        read_log(tmp_path / "m.db", run="c")
    assert values(read_log(tmp_path / "m.db", run="b"), "x") == [(1, 1, 1, 2.0)]


def test_mlflow_folder(tmp_path: Path) -> None:
    run = tmp_path / "mlruns/1/abc"
    (run / "metrics/reward").mkdir(parents=True)
    (run / "meta.yaml").write_text("run_name: r\nlifecycle_stage: active\nstatus: 3\n")
    (run / "metrics/loss").write_text("1700000000000 0.5 1\n1700000002000 nan 2\n1700000003000 bad 3\n")
    (run / "metrics/reward/mean").write_text("1700000000001 -inf 1\n1700000002001 0.25 2")
    log = read_log(tmp_path)
    assert values(log, "reward/mean") == [(1, 1, 1, -INF)]
    assert values(log, "loss")[0] == (1, 1, 1, 0.5)
    assert sorted((i.source_file, i.source_position) for i in log.issues) == [
        ("metrics/loss", 3),
        ("metrics/reward/mean", 2),
    ]
    assert log.status == "finished"


def test_trackio_restores_texts() -> None:
    run = read_log(FIXTURES / "trackio")
    assert values(run, "loss")[2:] == [(1, 3, 1, -INF), (2, 2, 1, 0.25)]
    assert run.metadata["precision"] == "bfloat16"


def test_clearml_zeros_are_suspect() -> None:
    run = read_log(FIXTURES / "clearml")
    kinds = {(r["metric_name"], r["step"]): r["value_kind"] for r in run.points.to_pylist()}
    assert kinds == {
        ("eval/AIME2024_Pass@16", 1): "rewritten_suspect",
        ("loss", 1): "finite",
        ("loss", 2): "rewritten_suspect",
    }


def test_a_packed_session_of_clearml_reads_like_its_folder(tmp_path: Path) -> None:
    session = tmp_path / "offline-1"
    session.mkdir()
    (session / "metrics.jsonl").write_bytes((FIXTURES / "clearml/metrics.jsonl").read_bytes())
    (session / "task.json").write_text('{"hyperparams": {"Args": {"seed": {"value": "7"}}}}')
    with zipfile.ZipFile(tmp_path / "offline-1.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in session.iterdir():
            archive.write(file, file.name)
    folder, packed = read_log(session), read_log(tmp_path / "offline-1.zip")
    kept = [name for name in folder.points.column_names if name != "source_file"]
    assert packed.points.select(kept) == folder.points.select(kept)
    assert packed.metadata == folder.metadata
    assert packed.metadata["seed"] == "7"
    assert len(packed.issues) == len(folder.issues) == 1
    assert read_log(tmp_path).points.num_rows == 3, "a session is read once where both are there"


def test_trainer_state_takes_the_longest_history(tmp_path: Path) -> None:
    for step in (9, 10):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        rows = ", ".join(f'{{"step": {s}, "loss": {s}.5}}' for s in range(1, step + 1))
        (folder / "trainer_state.json").write_text(f'{{"global_step": {step}, "log_history": [{rows}]}}')
    run = read_log(tmp_path)
    assert [v[1] for v in values(run, "loss")] == list(range(1, 11))


def test_slime_keeps_three_axes_apart() -> None:
    run = read_log(FIXTURES / "slime")
    assert set(run.points["step_axis"].to_pylist()) == {"step", "optimizer_step", "eval_step"}
    assert values(run, "rollout/raw_reward") == [(1, 0, 1, 0.5), (1, 1, 1, 0.75)]
    assert values(run, "rollout/response_len/mean") == [(1, 0, 1, 120.5)]
    assert values(run, "eval/aime-pass@8", "eval_step") == [(1, 0, 1, 0.5)]


def test_trl_lines_without_progress_are_counted(tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text("{'loss': 0.5, 'epoch': 0.1}\n{'loss': 0.25, 'epoch': 0.2}\n")
    run = read_log(tmp_path / "out.log")
    assert values(run, "loss", "log_row") == [(1, 1, 1, 0.5), (1, 2, 1, 0.25)]
    assert run.log_precision == "text"
    assert read_log(FIXTURES / "trl_console").log_precision == "digits4"


def test_metadata_is_allow_listed() -> None:
    for reader in READERS:
        assert set(read_log(FIXTURES / reader.NAME).metadata) <= ALLOWED


def test_wandb_axes_of_known_frameworks(tmp_path: Path) -> None:
    """slime declares three axes; they are named as in its console log."""

    def define(pattern: str, step: str) -> bytes:
        return encode.blob(12, encode.blob(2, pattern) + encode.blob(4, step))

    axes = [define("train/*", "train/step"), define("rollout/*", "rollout/step")]
    rows = [
        (0, {"train/loss": 0.5, "train/step": 8}),
        (1, {"rollout/raw_reward": 0.25, "rollout/step": 2, "other": 1.0}),
    ]
    (tmp_path / "run-x.wandb").write_bytes(encode.wandb(rows, extra=axes))
    log = read_log(tmp_path / "run-x.wandb")
    assert values(log, "train/loss", "optimizer_step") == [(1, 8, 1, 0.5)]
    assert values(log, "rollout/raw_reward", "step") == [(1, 2, 1, 0.25)]
    assert values(log, "other", "_step") == [(1, 1, 1, 1.0)]
