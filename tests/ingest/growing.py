"""Logs of every format that is read incrementally, written from the same rows: what tests of growing files use."""

import json
import math
from collections.abc import Callable, Sequence

from tests.ingest import encode

Rows = Sequence[tuple[int, dict[str, float]]]


def rows_of(legs: Sequence[tuple[int, int]], width: int = 3) -> list[tuple[int, dict[str, float]]]:
    """Return rows of `width` metrics for legs of first step and length; some values are not finite."""
    odd = {3: math.nan, 7: math.inf, 11: -math.inf}
    return [
        (step, {f"m{metric}/mean@{metric}": odd.get(step * metric, step / 7 + metric) for metric in range(width)})
        for first, length in legs
        for step in range(first, first + length)
    ]


def _text(value: float) -> str:
    return f"{value:.3f}"


def jsonl(rows: Rows) -> bytes:
    lines = [json.dumps({"step": step, "data": values}) for step, values in rows]
    lines[1:1] = ["", "{torn", '{"data": {"a": 1}}', '{"eval": 2.5, "step": 1}\r']
    return "\n".join([*lines, ""]).encode()


def verl_console(rows: Rows) -> bytes:
    config = [
        "{'actor_rollout_ref': {'rollout': {'name': 'vllm'},",
        "  'actor': {'x': 1}},",
        " 'trainer': {'seed': 7}}",
    ]
    lines = [f"\x1b[36m(TaskRunner pid=1)\x1b[0m {line}" for line in config]
    for at, (step, values) in enumerate(rows):
        pieces = " - ".join(f"{name}:{_text(value)}" for name, value in values.items())
        lines += [f"(TaskRunner pid={1 + at // 5}) step:{step} - training/global_step:{step} - {pieces}", "noise"]
    lines[6:6] = ["step:1 - a:no - b:1"]
    return "\n".join([*lines, ""]).encode()


def roll(rows: Rows) -> bytes:
    lines = ["[time] metrics_tag: " + json.dumps({"step": step, "metrics": values}) for step, values in rows]
    return "\n".join([*lines[:1], 'metrics_tag: {"step": 1, "metrics"', *lines[1:], ""]).encode()


def slime(rows: Rows) -> bytes:
    kinds = ("rollout", "step", "eval", "perf")
    lines = [f"[time] x.py:1 - {kinds[at % 4]} {step}: {values!r}" for at, (step, values) in enumerate(rows)]
    return "\n".join([*lines[:1], "step 1: {'a': 1, 'b", *lines[1:], ""]).encode()


def trl_console(rows: Rows) -> bytes:
    total = 1 + max(step for step, _ in rows)
    lines = []
    for step, values in rows:
        quoted = {"loss": "0.5", **{name: f"{value:.4g}" for name, value in values.items()}}
        lines.append(f"{step}/{total} [00:31<00:10]\r{quoted!r}")
    return "\n".join([*lines[:2], "{'eval_loss': '0.25'}", *lines[2:], ""]).encode()


def table(rows: Rows) -> bytes:
    lines = ["# a comment", ",".join(["step", *rows[0][1]])]
    lines += [",".join([str(step), *map(repr, values.values())]) for step, values in rows]
    lines[3:3] = ["1,2", "x,1,2,3"]
    return "\r\n".join([*lines, ""]).encode()


def clearml(rows: Rows) -> bytes:
    def event(name: str, step: int, value: float) -> dict:
        title, _, series = name.partition("/")
        kind, number = "training_stats_scalar", value if math.isfinite(value) else 0.0
        return {
            "timestamp": 1.7e12 + step,
            "type": kind,
            "iter": step,
            "metric": title,
            "variant": series,
            "value": number,
        }

    lines = [json.dumps([event(name, step, value) for name, value in values.items()]) for step, values in rows]
    return "\n".join([*lines[:1], "[{", *lines[1:], ""]).encode()


def tensorboard(rows: Rows) -> bytes:
    return b"".join(encode.events(rows))


def wandb(rows: Rows) -> bytes:
    config = encode.blob(17, encode.blob(4, encode.blob(1, encode.blob(1, "seed") + encode.blob(16, "7"))))
    later = encode.blob(5, encode.blob(1, encode.blob(1, "dtype") + encode.blob(16, '"bfloat16"')))
    defined = encode.blob(12, encode.blob(1, "m1/mean@1") + encode.blob(4, "m0/mean@0"))
    return encode.wandb(rows, extra=[config, defined, later])


def swanlab(rows: Rows) -> bytes:
    return encode.swanlab(rows)


FILES: dict[str, tuple[str, Callable[[Rows], bytes]]] = {
    "jsonl": ("log.jsonl", jsonl),
    "verl_console": ("run.log", verl_console),
    "roll": ("run.log", roll),
    "slime": ("run.log", slime),
    "trl_console": ("out.log", trl_console),
    "table": ("log.csv", table),
    "clearml": ("metrics.jsonl", clearml),
    "tensorboard": ("events.out.tfevents.1.h", tensorboard),
    "wandb": ("run-x.wandb", wandb),
    "swanlab": ("run-x.swanlab", swanlab),
}
"""Name of the file and its writer, by the reader's name."""
