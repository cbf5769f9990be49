"""The shapes that pass between the log readers and the warehouse.

Here belong the canonical Arrow schemas, the closed vocabularies and the identifiers derived from names.
DuckDB, file access and anything that computes on points do not belong here: the readers import this
module, and it must stay cheap.
"""

import hashlib
from typing import Final, Literal

import pyarrow as pa

ValueKind = Literal["finite", "nan", "pos_inf", "neg_inf", "nonfinite_unknown", "rewritten_suspect"]

VALUE_KINDS: Final = ("finite", "nan", "pos_inf", "neg_inf", "nonfinite_unknown", "rewritten_suspect")
"""What a logged value is.

`nonfinite_unknown`: the log wrote null where NaN and infinity look the same.
`rewritten_suspect`: the store is known to rewrite non-finite values into the number seen here.
"""

DEFAULT_STEP_AXIS: Final = "step"
"""Name of the step axis of a log that has only one."""

LOG_PRECISIONS: Final = ("float64", "float32", "decimal3", "digits4", "text")
"""How precisely a log keeps a value: the limit below which a difference can't be seen.

`text` is a decimal text of varying length, `decimal3` has three decimals, `digits4` four significant digits.
"""

COMPONENT_KINDS: Final = (
    "hardware",
    "driver",
    "compute_stack",
    "framework",
    "rollout_engine",
    "attention_kernel",
    "matmul_kernel",
    "norm_kernel",
    "collectives",
    "precision",
    "library",
    "switch",
)
"""Kinds of component a run can state.

`compute_stack` is CUDA, CANN or ROCm, `precision` the number format, `library` any other package that takes part
(torch, torch_npu), `switch` a setting of the numerics (deterministic).
"""

ROLES: Final = ("baseline", "candidate", "replicate")

POINT_SCHEMA: Final = pa.schema(
    [
        pa.field("metric_name", pa.string(), nullable=False),  # as written in the log
        pa.field("step_axis", pa.string(), nullable=False),
        pa.field("attempt", pa.int32(), nullable=False),  # 1 for the first process that wrote the run
        pa.field("step", pa.int64(), nullable=False),
        pa.field("write_no", pa.int32(), nullable=False),  # 1, 2, ... within metric, axis, attempt, step
        pa.field("value", pa.float64()),  # NaN and infinities as such; null where the kind is unknown
        pa.field("value_kind", pa.string(), nullable=False),
        pa.field("raw_text", pa.string()),  # what the log said, where that was no finite number
        pa.field("wall_time", pa.float64()),  # seconds since 1970-01-01 UTC
        pa.field("source_file", pa.string(), nullable=False),  # relative to the run's log
        pa.field("source_position", pa.int64(), nullable=False),  # line (from 1) of a text, byte of a binary
    ]
)
"""One row for each write of a metric; sorted by metric_name, step_axis, attempt, step, write_no."""

ISSUE_SCHEMA: Final = pa.schema(
    [
        pa.field("source_file", pa.string(), nullable=False),
        pa.field("source_position", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),  # a short sentence
        pa.field("snippet", pa.string()),  # the first 200 characters of what could not be read
        pa.field("lost_points", pa.int64()),  # how many points were quarantined, where that is known
    ]
)
"""One row for each piece of a log that could not be read."""


def stable_id(*parts: str) -> int:
    """Return the identifier of a thing that is known by its name.

    The same name has the same identifier in every warehouse, so saved queries and exports agree. 48 bits
    keep the number exact in tools that read integers as doubles; a primary key notices the (improbable)
    collision.

    Args:
        parts: The parts of the natural key, in order.

    Returns:
        A positive integer below 2**48.
    """
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return int.from_bytes(digest[:6], "big") or 1
