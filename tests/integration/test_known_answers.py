"""Verdicts on logs whose answer is known: the lab runs and public curves."""

from itertools import combinations
from pathlib import Path

import duckdb
import pytest
import yaml

from pipelines.landing import ingest_migration
from pipelines.manifest import read_manifest
from pipelines.resources import current_catalog, current_project
from warehouse.load import load_lake
from warehouse.rules import refresh_rule_breaks
from warehouse.runner import build_all
from warehouse.schema import ensure_current

GPU, NPU = {"hardware": "gpu"}, {"hardware": "npu"}
FAULTS = ("attn_mask", "stale_weights", "grad_allreduce", "slow_comm", "ess_overflow", "reward_bug")
GPU_REPLICATES, NPU_REPLICATES = ("gpu_n1", "gpu_n2", "gpu_n3"), ("npu_n0", "npu_n1")
SETTINGS = {"both": (GPU_REPLICATES, NPU_REPLICATES), "baseline": (GPU_REPLICATES, ()), "none": ((), ())}


def build(folder: Path, manifests: list[dict]) -> duckdb.DuckDBPyConnection:
    for data in manifests:
        path = folder / f"{data['migration']}.yaml"
        path.write_text(yaml.safe_dump(data))
        result = ingest_migration(read_manifest(path), folder / "lake")
        assert not result.failures
    con = duckdb.connect()
    ensure_current(con)
    catalog = current_catalog()
    load_lake(con, folder / "lake", catalog)
    refresh_rule_breaks(con, catalog.rules)
    build_all(con, current_project())
    return con


def lab_manifest(cases: Path, name: str, replicates: tuple[tuple[str, ...], tuple[str, ...]]) -> dict:
    def entry(run, role, **facts):
        return {"name": run, "log": str(cases / "lab" / f"{run}.jsonl.gz"), "role": role,
                "components": GPU if run.startswith("gpu") else NPU, **facts}  # fmt: skip

    gpu, npu = replicates
    candidates = ["npu_n2", *[f"npu_{fault}_at60" for fault in FAULTS]]
    return {
        "migration": name,
        "runs": [
            entry("gpu_n0", "baseline"),
            *[entry(run, "replicate", of="gpu_n0") for run in gpu],
            *[entry(run, "replicate", of="npu_n2") for run in npu],
            *[entry(run, "candidate", baseline="gpu_n0") for run in candidates],
        ],
    }


@pytest.fixture(scope="module")
def lab(cases_dir, tmp_path_factory):
    manifests = [lab_manifest(cases_dir, f"lab-{name}", replicates) for name, replicates in SETTINGS.items()]
    for a, b in [*combinations([f"gpu_n{i}" for i in range(4)], 2), *combinations([f"npu_n{i}" for i in range(3)], 2)]:
        logs = {run: str(cases_dir / "lab" / f"{run}.jsonl.gz") for run in (a, b)}
        runs = [{"name": a, "log": logs[a], "role": "baseline"}, {"name": b, "log": logs[b], "role": "candidate"}]
        manifests.append({"migration": f"equal-{a}-{b}", "runs": runs})
    con = build(tmp_path_factory.mktemp("lab"), manifests)
    yield con
    con.close()


@pytest.fixture(scope="module")
def curves(cases_dir, tmp_path_factory):
    def pair(name, a, b):
        runs = [{"name": "base", "log": str(cases_dir / "drift" / a), "role": "baseline"},
                {"name": "cand", "log": str(cases_dir / "drift" / b), "role": "candidate"}]  # fmt: skip
        return {"migration": name, "runs": runs}

    rope = "megatron_rope_interleaved__lts_dgxa100_dracooci"
    manifests = [
        pair("llama3", "torchtitan_llama3_cuda.txt", "torchtitan_llama3_rocm_mi350x.txt"),
        pair("qwen3", "torchtitan_qwen3_moe_cuda.txt", "torchtitan_qwen3_moe_rocm_mi350x.txt"),
        pair("megatron", f"{rope}.json", f"{rope}-ord.json"),
    ]
    con = build(tmp_path_factory.mktemp("curves"), manifests)
    yield con
    con.close()


def ask(con, sql):
    return con.execute(sql).fetchall()


def verdict(con, migration, candidate):
    rows = con.execute(
        """
        select v.verdict, v.grade, v.time_verdict
        from mart_pair_verdict as v inner join dim_migration as p on v.pair_id = p.pair_id
        where p.migration = ? and p.candidate_run_name = ? and p.pair_kind = 'migration'
        """,
        [migration, candidate],
    ).fetchall()
    assert len(rows) == 1
    return rows[0]


def first(con, migration, candidate):
    return con.execute(
        """
        select f.stage, f.onset_step, f.onset_step_low, f.onset_step_high, f.metric
        from mart_first_drift as f inner join dim_migration as p on f.pair_id = p.pair_id
        where p.migration = ? and p.candidate_run_name = ? and f.rank = 1
        """,
        [migration, candidate],
    ).fetchall()


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["both", "baseline"])
@pytest.mark.parametrize(
    ("fault", "stage"),
    [
        ("attn_mask", "rollout_or_weight_sync"),
        ("stale_weights", "rollout_or_weight_sync"),
        ("grad_allreduce", "training"),
    ],
)
def test_a_fault_is_found_at_its_step_and_in_its_stage(lab, setting, fault, stage):
    candidate = f"npu_{fault}_at60"
    assert verdict(lab, f"lab-{setting}", candidate)[0] == "drift"
    ((found, onset, _, _, metric),) = first(lab, f"lab-{setting}", candidate)
    assert found == stage, metric
    assert abs(onset - 60) <= 3, metric


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_clean_migration_and_a_faulty_diagnostic_are_no_drift(lab, setting):
    for candidate in ("npu_n2", "npu_ess_overflow_at60", "npu_slow_comm_at60"):
        assert verdict(lab, f"lab-{setting}", candidate)[0] not in ("drift", "initial_mismatch", "nonfinite"), candidate


@pytest.mark.slow
def test_replicates_never_drift(lab):
    rows = ask(
        lab,
        """
        select p.migration, p.baseline_run_name, p.candidate_run_name
        from mart_pair_verdict as v inner join dim_migration as p on v.pair_id = p.pair_id
        where p.pair_kind = 'replicate' and v.verdict = 'drift'
        """,
    )
    assert not rows


@pytest.mark.slow
def test_equal_runs_without_any_replicate_are_no_drift(lab):
    rows = ask(
        lab,
        """
        select p.migration, v.verdict, v.grade, v.time_verdict
        from mart_pair_verdict as v inner join dim_migration as p on v.pair_id = p.pair_id
        where p.migration like 'equal-%'
        """,
    )
    assert len(rows) == 9
    for migration, found, grade, time_verdict in rows:
        assert found != "drift", migration
        assert grade >= "C", migration
        assert "time/" not in (time_verdict or ""), (migration, time_verdict)


@pytest.mark.slow
def test_without_replicates_no_verdict_of_a_fault_is_above_grade_c(lab):
    for fault in FAULTS:
        assert verdict(lab, "lab-none", f"npu_{fault}_at60")[1] >= "C"


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["both", "baseline"])
def test_slow_communication_is_a_verdict_about_time(lab, setting):
    found, _, time_verdict = verdict(lab, f"lab-{setting}", "npu_slow_comm_at60")
    assert found != "drift"
    assert time_verdict is not None
    assert "time/sync_weight" in time_verdict


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["both", "baseline"])
def test_a_small_fault_of_the_reward_is_found_or_said_to_be_too_small(lab, setting):
    migration, candidate = f"lab-{setting}", "npu_reward_bug_at60"
    if verdict(lab, migration, candidate)[0] == "drift":
        ((stage, _, low, high, _),) = first(lab, migration, candidate)
        assert stage == "reward"
        assert low <= 60 <= high
    else:
        rows = lab.execute(
            """
            select o.smallest_detectable_shift
            from mart_divergence_onset as o inner join dim_migration as p on o.pair_id = p.pair_id
            where p.migration = ? and p.candidate_run_name = ? and o.onset_kind = 'drift'
                and o.metric = 'response/rewards/mean'
            """,
            [migration, candidate],
        ).fetchall()
        assert rows
        assert rows[0][0] > 0.04


@pytest.mark.slow
def test_an_overflow_is_flagged_beside_the_verdict(lab):
    rows = ask(
        lab,
        """
        select distinct v.nonfinite_metrics::varchar
        from mart_pair_verdict as v inner join dim_migration as p on v.pair_id = p.pair_id
        where p.candidate_run_name = 'npu_ess_overflow_at60'
        """,
    )
    assert len(rows) == 1
    assert "eff_sample_size" in rows[0][0]
    assert "60" in rows[0][0]


def onsets(con, migration, kind):
    return dict(
        con.execute(
            """
            select o.metric, case when not o.is_censored then o.onset_step end
            from mart_divergence_onset as o inner join dim_migration as p on o.pair_id = p.pair_id
            where p.migration = ? and o.onset_kind = ?
            """,
            [migration, kind],
        ).fetchall()
    )


def test_llama3_differs_from_the_first_step_and_only_decouples(curves):
    assert verdict(curves, "llama3", "cand")[0] == "decoupled_only"
    assert onsets(curves, "llama3", "first_diff") == {"loss": 1}
    assert onsets(curves, "llama3", "drift")["loss"] is None
    ((doubling,),) = ask(
        curves,
        """
        select o.doubling_steps
        from mart_divergence_onset as o inner join dim_migration as p on o.pair_id = p.pair_id
        where p.migration = 'llama3' and o.onset_kind = 'decouple'
        """,
    )
    assert doubling == pytest.approx(6.1, abs=0.5)


def test_qwen3_is_off_at_the_start_and_has_no_onset(curves):
    assert verdict(curves, "qwen3", "cand")[0] == "initial_mismatch"
    assert onsets(curves, "qwen3", "drift")["loss"] is None
    assert not first(curves, "qwen3", "cand")


def test_the_megatron_pair_is_equal_and_censored_at_100(curves):
    assert verdict(curves, "megatron", "cand")[0] == "within_floor"
    assert not first(curves, "megatron", "cand")
    rows = ask(
        curves,
        """
        select o.metric, o.is_censored, o.censored_at
        from mart_divergence_onset as o inner join dim_migration as p on o.pair_id = p.pair_id
        where p.migration = 'megatron' and o.onset_kind = 'first_diff' and o.metric != 'iteration-time'
        """,
    )
    assert {metric for metric, _, _ in rows} >= {"lm loss", "num-zeros"}
    assert all(is_censored and at == 100 for _, is_censored, at in rows)
