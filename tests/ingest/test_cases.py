"""The real logs, against numbers that were counted without the readers.

JSON lines and golden values: counted with the json module, line by line. Console logs: one regular
expression over the text. Event files: TensorBoard's own loader and protocol classes.
"""

from collections import Counter
from pathlib import Path

import pytest

from pipelines.ingest.registry import read_log

# log: format, framework, precision, points, metrics, first step, last step, non-finite kinds
CASES = {
    **{
        f"lab/{run}.jsonl.gz": ("jsonl", "xtuner", "float64", 11925, 84, 1, 150, {})
        for run in (
            "gpu_n0",
            "gpu_n1",
            "gpu_n2",
            "gpu_n3",
            "npu_n0",
            "npu_n1",
            "npu_n2",
            "npu_attn_mask_at60",
            "npu_grad_allreduce_at60",
            "npu_reward_bug_at60",
            "npu_slow_comm_at60",
            "npu_stale_weights_at60",
        )
    },
    "lab/npu_ess_overflow_at60.jsonl.gz": ("jsonl", "xtuner", "float64", 11925, 84, 1, 150, {"pos_inf": 91}),
    "real/verl_console_megatron.log": ("verl_console", "verl", "decimal3", 5299, 53, 0, 105, {}),
    "real/verl_console_np_float64.log": ("verl_console", "verl", "text", 3024, 56, 1, 54, {}),
    "real/verl_console_old_names.log": ("verl_console", "verl", "decimal3", 17486, 42, 0, 434, {}),
    "real/tensorboard_restart": ("tensorboard", "verl", "float32", 366 + 2093, 153, 0, 31, {}),
    "real/tensorboard_twins/base": ("tensorboard", "verl", "float32", 6258, 63, 0, 105, {}),
    "real/tensorboard_twins/async": ("tensorboard", "verl", "float32", 6236, 62, 0, 105, {}),
    **{
        f"drift/torchtitan_{name}.txt": ("table", "", "text", 100, 1, 1, 100, {})
        for name in ("llama3_cuda", "llama3_rocm_mi350x", "qwen3_moe_cuda", "qwen3_moe_rocm_mi350x")
    },
    **{
        f"drift/megatron_rope_interleaved__lts_dgxa100_{name}.json": (
            "metric_map",
            "megatron",
            "text",
            500,
            5,
            1,
            100,
            {},
        )
        for name in ("dracooci", "dracooci-ord")
    },
}


@pytest.mark.parametrize("log", CASES)
def test_counts(cases_dir: Path, log: str) -> None:
    run = read_log(cases_dir / log)
    steps = run.points["step"].to_pylist()
    kinds = Counter(run.points["value_kind"].to_pylist())
    kinds.pop("finite")
    names = len(set(run.points["metric_name"].to_pylist()))
    found = (run.log_format, run.framework, run.log_precision, len(steps), names, min(steps), max(steps), dict(kinds))
    assert found == CASES[log]
    assert run.issues == ()


def test_every_log_has_a_case(cases_dir: Path) -> None:
    logs = {p.relative_to(cases_dir).as_posix() for p in cases_dir.rglob("*") if p.is_file() and p.suffix != ".md"}
    covered = {log for log in logs if any(log == case or log.startswith(case + "/") for case in CASES)}
    assert logs == covered


def test_restarted_event_files_are_two_attempts(cases_dir: Path) -> None:
    run = read_log(cases_dir / "real/tensorboard_restart")
    assert Counter(run.points["attempt"].to_pylist()) == {1: 366, 2: 2093}
    first = {r["step"] for r in run.points.to_pylist() if r["attempt"] == 1}
    assert first == {0, 1, 2, 3, 4, 5}


def test_single_values(cases_dir: Path) -> None:
    """A value from each kind of log, as its text shows it."""
    expected = {
        ("drift/torchtitan_llama3_cuda.txt", "loss", 100): 2.746471643447876,
        ("drift/megatron_rope_interleaved__lts_dgxa100_dracooci.json", "lm loss", 100): 9.34997,
        ("real/verl_console_np_float64.log", "actor/grad_norm", 1): 0.013598723337054253,
        ("real/verl_console_old_names.log", "critic/lr(1e-4)", 0): 0.1,
        ("real/verl_console_megatron.log", "val-core/openai/gsm8k/reward/mean@1", 0): 0.212,
        ("lab/gpu_n0.jsonl.gz", "reward/avg_raw_reward", 1): -0.6640625,
    }
    for (log, metric, step), value in expected.items():
        rows = read_log(cases_dir / log).points.to_pylist()
        assert [r["value"] for r in rows if r["metric_name"] == metric and r["step"] == step] == [value]


def test_printed_configuration(cases_dir: Path) -> None:
    """The allow-listed entries of the configuration that each console log begins with."""
    found = {
        name: dict(read_log(cases_dir / f"real/verl_console_{name}.log").metadata)
        for name in ("megatron", "np_float64", "old_names")
    }
    for facts in found.values():
        assert len(facts.pop("config_hash")) == 16
    assert found["megatron"]["accelerator"] == "cuda"
    assert found["np_float64"]["accelerator"] == "cuda"
    assert {facts["rollout_engine"] for facts in found.values()} == {"vllm"}
