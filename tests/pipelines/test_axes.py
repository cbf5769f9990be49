"""Step axes of a log stay apart all the way into a pair."""

import json
from pathlib import Path

import duckdb

from pipelines.landing import ingest_migration
from pipelines.manifest import read_manifest
from pipelines.resources import current_catalog
from warehouse.load import load_lake
from warehouse.settings import project_folder


def write(path: Path, scale: float, loss_on_optimizer_axis: bool) -> None:
    """Write an XTuner log: rollouts count 1 to 3, optimizer steps 1 to 6, so equal numbers mean other things."""
    rows = []
    for rollout in (1, 2, 3):
        for batch in (1, 2):
            step = 2 * (rollout - 1) + batch
            row = {"train_metrics/worker_0/grad_norm": scale * (100 + step), "step": step}
            rows.append(row | ({"shared/loss": scale * step} if loss_on_optimizer_axis else {}))
        row = {"response/rewards/mean": scale * rollout, "time/step": scale * (10 + rollout), "step": rollout}
        rows.append(row | ({} if loss_on_optimizer_axis else {"shared/loss": scale * step}))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_axes_are_never_mixed_in_a_pair(star: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    write(tmp_path / "gpu.jsonl", 1.0, True)
    write(tmp_path / "npu.jsonl", 1000.0, False)
    (tmp_path / "migration.yaml").write_text(
        "migration: m\nruns:\n  - {name: gpu, log: gpu.jsonl, role: baseline}\n"
        "  - {name: npu, log: npu.jsonl, role: candidate}\n"
    )
    ingest_migration(read_manifest(tmp_path / "migration.yaml"), tmp_path / "lake")
    load_lake(star, tmp_path / "lake", current_catalog())
    model = project_folder("models") / "intermediate" / "int_pair_point.sql"
    pairs = star.execute(
        f"""
        select f.metric_name, p.step_axis, p.step, p.baseline_value, p.candidate_value
        from ({model.read_text().rstrip().rstrip(";")}) as p
        inner join (select distinct metric_id, metric_name from fct_metric) as f on p.metric_id = f.metric_id
        order by all
        """
    ).fetchall()
    both = [row for row in pairs if row[3] is not None and row[4] is not None]
    assert {(name, axis) for name, axis, *_ in both} == {
        ("response/rewards/mean", "step"),
        ("time/step", "step"),
        ("train_metrics/worker_0/grad_norm", "optimizer_step"),
    }
    assert all(candidate == 1000 * baseline for _, _, _, baseline, candidate in both)
    alone = {(axis, a is None) for name, axis, _, a, _ in pairs if name == "shared/loss"}
    assert alone == {("optimizer_step", False), ("step", True)}, "one name on two axes makes no pair"
