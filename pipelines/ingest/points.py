"""Collecting the points of a run in the order of writing, and finding its attempts.

Here belong the column builder that every reader fills, the rule that tells a restart from a rewound
step, and the assembly of one `RunLog` from the files of a run. A format's own rules do not belong here.
"""

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.ingest.arrow_columns import coded_texts, numbers
from pipelines.ingest.base import SNIPPET_CHARS, ParseIssue, RunLog
from pipelines.ingest.redaction import redact
from pipelines.ingest.text_number import json_token
from warehouse.contract import DEFAULT_STEP_AXIS, LOG_PRECISIONS, POINT_SCHEMA, VALUE_KINDS

_KIND = {name: code for code, name in enumerate(VALUE_KINDS)}
_NO_TIME = float("nan")


@dataclass
class Draft:
    """What a reader has found so far, one entry a point, in the order of writing.

    Columns are flat arrays, names and axes are coded by their first appearance: two million points take
    some 80 MB.
    """

    log_precision: str = "float64"
    framework: str = ""
    status: str = "unknown"
    metadata: dict[str, Any] = field(default_factory=dict)
    issues: list[ParseIssue] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    axes: dict[str, int] = field(default_factory=lambda: {DEFAULT_STEP_AXIS: 0})
    files: dict[str, int] = field(default_factory=dict)
    name: array = field(default_factory=lambda: array("i"))
    axis: array = field(default_factory=lambda: array("i"))
    file: array = field(default_factory=lambda: array("i"))
    step: array = field(default_factory=lambda: array("q"))
    value: array = field(default_factory=lambda: array("d"))
    position: array = field(default_factory=lambda: array("q"))
    wall_time: array = field(default_factory=lambda: array("d"))
    raw: dict[int, str] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=dict)
    process_starts: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.value)

    def code(self, name: str) -> int:
        """Return the code of a metric name."""
        return self.names.setdefault(name, len(self.names))

    def add(
        self,
        name: str,
        step: int,
        value: float | None,
        raw: str | None,
        place: tuple[str, int],
        *,
        axis: str = DEFAULT_STEP_AXIS,
        wall_time: float | None = None,
        kind: str | None = None,
    ) -> None:
        """Append one write of a metric.

        Args:
            name: The metric as the log names it.
            step: Its step on `axis`.
            value: The double; None where the log only says that it was no finite number.
            raw: What the log said, where that was no finite number.
            place: File and position.
            axis: The step axis.
            wall_time: Seconds since 1970 UTC.
            kind: One of `VALUE_KINDS`, where the value does not tell it.
        """
        at = len(self.value)
        if value is None:
            kind, value = kind or "nonfinite_unknown", _NO_TIME
        if kind is not None:
            self.kinds[at] = kind
        if raw is not None:
            self.raw[at] = raw
        self.name.append(self.code(name))
        self.axis.append(self.axes.setdefault(axis, len(self.axes)))
        self.file.append(self.files.setdefault(place[0], len(self.files)))
        self.step.append(step)
        self.value.append(value)
        self.position.append(place[1])
        self.wall_time.append(_NO_TIME if wall_time is None else wall_time)

    def add_row(
        self,
        codes: array,
        values: array,
        step: int,
        place: tuple[str, int],
        axis: str,
        wall_time: float | None,
    ) -> None:
        """Append values that share step, place and time, as JSON spells them; the fast way in."""
        if not math.isfinite(sum(values)):
            first = len(self.value)
            self.raw.update((first + at, json_token(v)) for at, v in enumerate(values) if not math.isfinite(v))
        count = len(values)
        self.name.extend(codes)
        self.value.extend(values)
        self.axis.extend(array("i", (self.axes.setdefault(axis, len(self.axes)),)) * count)
        self.file.extend(array("i", (self.files.setdefault(place[0], len(self.files)),)) * count)
        self.step.extend(array("q", (step,)) * count)
        self.position.extend(array("q", (place[1],)) * count)
        self.wall_time.extend(array("d", (_NO_TIME if wall_time is None else wall_time,)) * count)

    def mark_process(self) -> None:
        """Note that what follows was written by another process than what came before."""
        self.process_starts.append(len(self.value))

    def issue(self, place: tuple[str, int], reason: str, snippet: str = "", lost: int | None = None) -> None:
        """Quarantine a piece of the log."""
        self.issues.append(
            ParseIssue(place[0], place[1], _sound(reason), _sound(redact(snippet[:400])[:SNIPPET_CHARS]), lost)
        )


def _sound(text: str) -> str:
    """Return a text that UTF-8 can encode."""
    return text.encode("utf-8", "replace").decode()


def attempts(name: np.ndarray, step: np.ndarray, file: np.ndarray) -> np.ndarray:
    """Number the attempts of a run on one step axis.

    A new attempt begins where a metric is written again at a step that it had already reached, and the
    axis as a whole has moved back too: a late evaluation row, or a second row of the same step, is no
    restart. A later file that repeats steps is a later attempt from its first point on.

    Args:
        name: Codes of the metrics, shape (n,), in the order of writing.
        step: Steps, shape (n,).
        file: Numbers of the files, or of the processes that wrote, shape (n,).

    Returns:
        The attempt of each point, from 1; shape (n,).
    """
    count = len(step)
    if count == 0:
        return np.zeros(0, dtype=np.int32)
    index = np.arange(count)
    order = _stable_order(name)
    previous = np.full(count, -1)
    same = name[order][1:] == name[order][:-1]
    previous[order[1:][same]] = order[:-1][same]
    new_file = np.r_[True, file[1:] != file[:-1]]
    new_block = np.r_[True, step[1:] != step[:-1]] | new_file
    block = np.maximum.accumulate(np.where(new_block, index, 0))
    begin = np.maximum.accumulate(np.where(new_file, index, 0))
    repeated = (previous >= 0) & (step <= step[previous]) & (previous < block)

    starts, seen, highest = [0], 0, step[0]
    for at in np.flatnonzero(repeated):
        before = previous[at]
        if before < starts[-1]:
            continue
        highest = max(highest, step[seen : at + 1].max())
        seen = at
        other_file = file[before] != file[at]
        if step[at] < highest or other_file:
            starts.append(int(max(begin[at] if other_file else block[at], starts[-1] + 1)))
            seen, highest = starts[-1], step[starts[-1]]
    return np.searchsorted(np.asarray(starts), index, side="right").astype(np.int32)


def merge(drafts: Sequence[Draft]) -> Draft:
    """Join the files of one run, in order, into one draft."""
    if len(drafts) == 1:
        return drafts[0]
    whole = Draft(
        log_precision=_coarsest([d.log_precision for d in drafts if len(d)]),
        framework=next((d.framework for d in drafts if d.framework), ""),
        status=drafts[-1].status if drafts else "unknown",
    )
    for draft in drafts:
        whole.metadata.update(draft.metadata)
        whole.issues.extend(draft.issues)
        offset = len(whole)
        for column in ("step", "value", "position", "wall_time"):
            getattr(whole, column).extend(getattr(draft, column))
        for column, table in (("name", "names"), ("axis", "axes"), ("file", "files")):
            known: dict[str, int] = getattr(whole, table)
            codes = [known.setdefault(text, len(known)) for text in getattr(draft, table)]
            mapped = np.asarray(codes, dtype=np.int32)[np.frombuffer(getattr(draft, column), dtype=np.int32)]
            getattr(whole, column).frombytes(mapped.tobytes())
        whole.process_starts.extend(at + offset for at in draft.process_starts)
        whole.raw.update({at + offset: raw for at, raw in draft.raw.items()})
        whole.kinds.update({at + offset: kind for at, kind in draft.kinds.items()})
    return whole


def _coarsest(precisions: Sequence[str]) -> str:
    return max(precisions, key=LOG_PRECISIONS.index, default="float64")


def assemble(log_format: str, drafts: Sequence[Draft]) -> RunLog:
    """Return the run that the drafts of its files tell, in the order in which they were written."""
    draft = merge(drafts)
    return RunLog(
        log_format=log_format,
        points=_table(draft),
        log_precision=draft.log_precision,
        framework=draft.framework or framework_of(draft.names),
        metadata=dict(draft.metadata),
        issues=tuple(draft.issues),
        status=draft.status,
    )


def _attempts_by_axis(name: np.ndarray, axis: np.ndarray, step: np.ndarray, file: np.ndarray) -> np.ndarray:
    out = np.ones(len(step), dtype=np.int32)
    for code in np.unique(axis):
        rows = np.flatnonzero(axis == code)
        out[rows] = attempts(name[rows], step[rows], file[rows])
    return out


def _sessions(file: np.ndarray, process_starts: Sequence[int]) -> np.ndarray:
    """Number the stretches that one process wrote into one file."""
    new = np.r_[False, file[1:] != file[:-1]]
    new[[at for at in process_starts if at < len(new)]] = True
    return np.cumsum(new)


def _ranks(texts: Sequence[str]) -> np.ndarray:
    order = sorted(range(len(texts)), key=texts.__getitem__)
    ranks = np.empty(len(texts), dtype=np.int32)
    ranks[order] = np.arange(len(texts))
    return ranks


def _stable_order(codes: np.ndarray) -> np.ndarray:
    """Return the order of small codes, equal ones as they stand; codes of 16 bits are sorted in linear time."""
    small = codes.astype(np.uint16) if len(codes) and codes.min() >= 0 and codes.max() < 1 << 16 else codes
    return np.argsort(small, kind="stable")


def _order(keys: Sequence[np.ndarray]) -> np.ndarray:
    """Return the order by metric, axis, attempt and step, equal points as they were written."""
    name, axis, attempt, step = keys
    group = (name.astype(np.int64) * (int(axis.max()) + 1) + axis) * (int(attempt.max()) + 1) + attempt
    order = _stable_order(group)
    sorted_group, sorted_step = group[order], step[order]
    backwards = (sorted_step[1:] < sorted_step[:-1]) & (sorted_group[1:] == sorted_group[:-1])
    return np.lexsort(list(keys)[::-1]) if backwards.any() else order


def _raw_texts(raw: Mapping[int, str], order: np.ndarray) -> pa.Array:
    texts = {text: code for code, text in enumerate(dict.fromkeys(raw.values()))}
    codes = np.full(len(order), -1, dtype=np.int32)
    codes[list(raw)] = [texts[text] for text in raw.values()]
    codes = codes[order]
    return coded_texts(np.maximum(codes, 0), list(texts) or [""], codes < 0)


def _kind_codes(value: np.ndarray, given: Mapping[int, str]) -> np.ndarray:
    kinds = np.zeros(len(value), dtype=np.int32)
    kinds[np.isnan(value)] = _KIND["nan"]
    kinds[np.isposinf(value)] = _KIND["pos_inf"]
    kinds[np.isneginf(value)] = _KIND["neg_inf"]
    for at, kind in given.items():
        kinds[at] = _KIND[kind]
    return kinds


def _table(draft: Draft) -> pa.Table:
    count = len(draft)
    if count == 0:
        return POINT_SCHEMA.empty_table()
    name, axis, file = (np.frombuffer(c, dtype=np.int32) for c in (draft.name, draft.axis, draft.file))
    step, position = (np.frombuffer(c, dtype=np.int64) for c in (draft.step, draft.position))
    value, wall = (np.frombuffer(c, dtype=np.float64) for c in (draft.value, draft.wall_time))
    attempt = _attempts_by_axis(name, axis, step, _sessions(file, draft.process_starts))
    kinds = _kind_codes(value, draft.kinds)
    names, axes = list(draft.names), list(draft.axes)
    keys = [_ranks(names)[name], _ranks(axes)[axis], attempt, step]
    order = _order(keys)
    same = np.ones(count - 1, dtype=bool)
    for key in keys:
        same &= key[order][1:] == key[order][:-1]
    index = np.arange(count)
    write_no = index - np.maximum.accumulate(np.where(np.r_[True, ~same], index, 0)) + 1
    columns = [
        coded_texts(name[order], names),
        coded_texts(axis[order], axes),
        numbers(attempt[order], pa.int32()),
        numbers(step[order], pa.int64()),
        numbers(write_no.astype(np.int32), pa.int32()),
        numbers(value[order], pa.float64(), (kinds == _KIND["nonfinite_unknown"])[order]),
        coded_texts(kinds[order], VALUE_KINDS),
        _raw_texts(draft.raw, order),
        numbers(wall[order], pa.float64(), np.isnan(wall[order])),
        coded_texts(file[order], list(draft.files)),
        numbers(position[order], pa.int64()),
    ]
    return pa.table(columns, schema=POINT_SCHEMA)


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
