"""The lab runs, cut to other lengths and against other baselines: what is known of them stays true.

A cut from step 21 on makes the onset of every fault that much earlier; a cut at step 90 ends while equal runs are
still parting.
"""

from pathlib import Path

import pytest

from tests.statistics.star import Migration, Run, build, open_star, read_lab_run, statistics_models

GPU = ("gpu_n0", "gpu_n1", "gpu_n2", "gpu_n3")
NPU = ("npu_n0", "npu_n1", "npu_n2")
STAGES = {
    "npu_attn_mask_at60": "rollout_or_weight_sync",
    "npu_stale_weights_at60": "rollout_or_weight_sync",
    "npu_grad_allreduce_at60": "training",
}
CLEAN = ("npu_n2", "npu_ess_overflow_at60", "npu_slow_comm_at60")
WINDOWS = ((1, 90, "gpu_n0"), (1, 120, "gpu_n0"), (21, 150, "gpu_n0"), (1, 150, "gpu_n2"), (1, 150, "gpu_n3"))


def cut(values: dict[str, dict[int, float]], first: int, last: int) -> dict[str, dict[int, float]]:
    kept = {m: {s - first + 1: v for s, v in points.items() if first <= s <= last} for m, points in values.items()}
    return {m: points for m, points in kept.items() if points}


def migration(logs: dict, first: int, last: int, baseline: str, setting: str) -> Migration:
    runs = {name: cut(values, first, last) for name, values in logs.items()}
    replicates = [(name, "gpu") for name in GPU if name != baseline]
    replicates += [(name, "npu") for name in NPU[:2]] if setting == "both" else []
    return Migration(
        f"{first} {last} {baseline} {setting}",
        (
            Run(baseline, "baseline", "gpu", runs[baseline]),
            *(Run(name, "replicate", stack, runs[name]) for name, stack in replicates),
            *(Run(name, "candidate", "npu", runs[name], baseline=baseline) for name in (*CLEAN, *STAGES)),
        ),
    )


@pytest.fixture(scope="module")
def verdicts(cases_dir: Path):
    names = (*GPU, *NPU, *CLEAN, *STAGES)
    logs = {name: read_lab_run(cases_dir / "lab" / f"{name}.jsonl.gz") for name in names}
    con = open_star([migration(logs, *window, setting) for window in WINDOWS for setting in ("both", "baseline")])
    build(con, statistics_models())
    return con.execute(
        """
        select p.migration, p.candidate_run_name, v.verdict, v.first_stage, v.first_onset_step
        from mart_pair_verdict as v inner join dim_migration as p on v.pair_id = p.pair_id
        """
    ).fetchall()


def test_runs_without_a_fault_never_drift(verdicts):
    judged = [row for row in verdicts if row[1] not in STAGES]
    assert len(judged) > len(WINDOWS) * 2 * len(CLEAN)
    assert [row for row in judged if row[2] == "drift"] == []


@pytest.mark.parametrize("fault", STAGES)
def test_faults_are_found_at_their_step_and_in_their_stage(verdicts, fault):
    judged = [row for row in verdicts if row[1] == fault]
    assert len(judged) == len(WINDOWS) * 2
    for name, _, verdict, stage, onset in judged:
        assert (name, verdict, stage) == (name, "drift", STAGES[fault])
        assert abs(onset + int(name.split()[0]) - 1 - 60) <= 3
