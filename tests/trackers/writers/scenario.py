"""What each tracker's own writer is made to write: two runs of 40 steps that crash and resume.

Runs inside the environment of a tracker, so nothing but the standard library is imported here.
"""

import math

STEPS = 40
CRASH_AFTER = 20
RESUME_AT = 15
RUNS = ("alpha", "beta")
BIG = 16_836_497  # an odd integer over 2**24: a float32 can't hold it
CONFIG = {
    "model": "tiny",
    "seed": 7,
    "attn_implementation": "flash_attention_2",
    "dtype": "bfloat16",
    "api_key": "sk-planted-secret-0123456789",
    "owner": "planted.person@example.com",
    "hostname": "planted-host-17",
}


def row(run, leg, step):
    """Return what is logged at a step: metric to value, in the order of logging."""
    shift = RUNS.index(run) * 0.125 + leg * 1e-3
    values = {
        "loss": 2.0 / step + shift,
        "reward/mean": math.sin(step) + shift,
        "grad_norm": 0.1 * step + shift,
        "counter": BIG + 2 * step,
        "tiny": 1e-12 * step + shift * 1e-15,
    }
    if step == 5:
        values["grad_norm"] = math.inf
    if step == 17:
        values["grad_norm"] = -math.inf if leg == 2 else math.nan
    if step == 30:
        values["grad_norm"] = math.nan
    if step % 10 == 0:
        values["eval/AIME2024_Pass@16"] = step / 64 + shift
    return values


def legs():
    """Return the legs of a run: number and steps."""
    return [(1, range(1, CRASH_AFTER + 1)), (2, range(RESUME_AT, STEPS + 1))]


def expected(run):
    """Return the current value of every metric and step: the last leg that wrote it."""
    current = {}
    for leg, steps in legs():
        for step in steps:
            for metric, value in row(run, leg, step).items():
                current[metric, step] = value
    return current
