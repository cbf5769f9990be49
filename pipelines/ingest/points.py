"""Tables of points: one numbered batch of a file as Arrow columns, and the framework that its names tell.

What a reader finds belongs to `draft`, the numbers to `attempts`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from pipelines.ingest.arrow_columns import codes_of_texts, numbers
from pipelines.ingest.attempts import Backdated, Numbered
from pipelines.ingest.draft import Batch
from warehouse.contract import POINT_SCHEMA, VALUE_KINDS

_KIND = {name: code for code, name in enumerate(VALUE_KINDS)}
_KEY = ("metric_name", "step_axis", "attempt", "step", "write_no")
_CODED = pa.dictionary(pa.int32(), pa.string())

CODED_SCHEMA = pa.schema([f.with_type(_CODED) if f.type == pa.string() else f for f in POINT_SCHEMA])
"""`POINT_SCHEMA` with its texts as codes: what a batch is made into, and what Parquet takes fastest."""


def table_of(
    batch: Batch, numbered: Numbered, names: Sequence[str], axes: Sequence[str], files: Sequence[str]
) -> pa.Table:
    """Return a batch as a table of `CODED_SCHEMA`, sorted like `POINT_SCHEMA` wants.

    Args:
        batch: The points.
        numbered: Their numbers and order.
        names: Texts of the run's codes of metrics.
        axes: Texts of the run's codes of step axes.
        files: Texts of the batch's codes of files.
    """
    order = numbered.order

    def sort(column: np.ndarray) -> np.ndarray:
        is_constant = len(column) == 0 or (column == column[0]).all()
        return column if is_constant else column[order]

    kinds = _kind_codes(batch.value, batch.kinds)
    unknown = kinds == _KIND["nonfinite_unknown"] if batch.kinds else None
    without_time = np.isnan(batch.wall_time)
    columns = [
        codes_of_texts(sort(numbered.name), names),
        codes_of_texts(sort(numbered.axis), axes),
        numbers(sort(numbered.attempt), pa.int32()),
        numbers(sort(batch.step), pa.int64()),
        numbers(sort(numbered.write_no), pa.int32()),
        numbers(sort(batch.value), pa.float64(), None if unknown is None else sort(unknown)),
        codes_of_texts(sort(kinds), VALUE_KINDS),
        _raw_texts(batch.raw, order),
        numbers(sort(batch.wall_time), pa.float64(), sort(without_time) if without_time.any() else None),
        codes_of_texts(sort(batch.file), files),
        numbers(sort(batch.position), pa.int64()),
    ]
    return pa.table(columns, schema=CODED_SCHEMA)


def sorted_together(tables: Sequence[pa.Table]) -> pa.Table:
    """Return several tables as one of `POINT_SCHEMA`, sorted."""
    if not tables:
        return POINT_SCHEMA.empty_table()
    if len(tables) == 1:
        return tables[0].cast(POINT_SCHEMA)
    whole = pa.concat_tables([table.cast(POINT_SCHEMA) for table in tables])
    return whole.sort_by([(column, "ascending") for column in _KEY])


def backdate(table: pa.Table, change: Backdated) -> pa.Table | None:
    """Return the table with the attempts of the named points raised by one; None where it holds none of them."""
    axis, file = (np.array(table.column(name).to_pylist(), dtype=object) for name in ("step_axis", "source_file"))
    concerned = (axis == change.axis) & (file == change.source_file)
    concerned &= table.column("source_position").to_numpy() >= change.position
    if not concerned.any():
        return None
    raised = table.column("attempt").to_numpy() + concerned.astype(np.int32)
    at = table.schema.get_field_index("attempt")
    return table.set_column(at, table.schema.field(at), numbers(raised, pa.int32()))


def _raw_texts(raw: Mapping[int, str], order: np.ndarray) -> pa.Array:
    if not raw:
        return pa.nulls(len(order), _CODED)
    texts = {text: code for code, text in enumerate(dict.fromkeys(raw.values()))}
    codes = np.full(len(order), -1, dtype=np.int32)
    codes[np.fromiter(raw, dtype=np.int64, count=len(raw))] = [texts[text] for text in raw.values()]
    codes = codes[order]
    return codes_of_texts(np.maximum(codes, 0), list(texts), codes < 0)


def _kind_codes(value: np.ndarray, given: Mapping[int, str]) -> np.ndarray:
    kinds = np.zeros(len(value), dtype=np.int32)
    if not np.isfinite(value).all():
        kinds[np.isnan(value)] = _KIND["nan"]
        kinds[np.isposinf(value)] = _KIND["pos_inf"]
        kinds[np.isneginf(value)] = _KIND["neg_inf"]
    for at, kind in given.items():
        kinds[at] = _KIND[kind]
    return kinds


_FRAMEWORK_MARKS = (
    ("xtuner", ("train_metrics/worker_", "rollout_is/mismatch/", "mismatch/mismatch_logprob_abs_diff")),
    ("nemo_rl", ("timing/train/", "train/gen_kl_error", "train/token_mult_prob_error")),
    ("roll", ("time/step_total", "time/step_generate", "token/response_length/")),
    ("areal", ("ppo_actor/", "timeperf/")),
    ("slime", ("train/lr-pg_", "rollout/raw_reward", "perf/actor_train_time")),
    ("openrlhf", ("train/actor_grad_norm", "train/actor_lr")),
    ("verl", ("actor/", "critic/", "timing_s/", "val-core/", "rollout_corr/")),
    ("trl", ("completions/mean_length", "train/completions/mean_length")),
    ("megatron", ("lm loss", "iteration-time")),
)


def framework_of(names: Mapping[str, int] | Sequence[str]) -> str:
    """Return the framework whose names these are, or an empty string.

    The first framework of which any mark begins any name; marks are ordered from the most telling.
    """
    for framework, marks in _FRAMEWORK_MARKS:
        if any(name.startswith(marks) for name in names):
            return framework
    return ""
