"""Numbers as logs spell them.

Here belongs the reading of one written or decoded value: non-finite spellings, NumPy wrappers, booleans,
integers too long for a double. Where a value stands in a file does not belong here.
"""

import re
from array import array
from collections.abc import Container, Mapping
from typing import Any, NamedTuple

EXACT_INTEGER_LIMIT = 2**53
"""Integers beyond this are rounded by a double."""

STEP_LIMIT = EXACT_INTEGER_LIMIT
"""No step is as far from zero as this: differences, sums and doubles of two of them can all be had."""

STEP_FAULT = f"is no whole number between -{STEP_LIMIT} and {STEP_LIMIT}"

_MOST_RAW = 80

_NON_FINITE = {
    "nan": float("nan"),
    "+nan": float("nan"),
    "-nan": float("nan"),
    "inf": float("inf"),
    "+inf": float("inf"),
    "-inf": float("-inf"),
    "infinity": float("inf"),
    "+infinity": float("inf"),
    "-infinity": float("-inf"),
}
_TOKENS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WRAPPED = re.compile(r"(?:np|numpy|torch)?\.?(?:float\d+|int\d+|uint\d+|bool_?|tensor)\(([^,()]*)(?:,[^()]*)?\)")
_WORDS = {"true": 1.0, "false": 0.0}
_NOTHING = {"null", "none"}


class Number(NamedTuple):
    """A value of a log.

    Attributes:
        value: The double; None where the log only says that it was no finite number.
        raw: What the log said, where the double alone does not tell it; else None.
    """

    value: float | None
    raw: str | None


def from_text(text: str) -> Number | None:
    """Return the number that `text` spells, or None where it spells none.

    Args:
        text: For instance `0.25`, `-inf`, `np.float64(nan)`, `None`.
    """
    text = text.strip()
    wrapped = _WRAPPED.fullmatch(text)
    core = wrapped[1].strip() if wrapped else text
    if _NUMBER.fullmatch(core):
        return _finite(core, text)
    lower = core.lower()
    if lower in _NON_FINITE:
        return Number(_NON_FINITE[lower], text)
    if lower in _WORDS:
        return Number(_WORDS[lower], None)
    return Number(None, text) if lower in _NOTHING else None


def _finite(core: str, text: str) -> Number:
    value = float(core)
    if not _is_finite(value):
        return Number(value, text[:_MOST_RAW])
    whole = _whole(core) if abs(value) >= EXACT_INTEGER_LIMIT else None
    return Number(value, text[:_MOST_RAW] if whole is not None and whole != int(value) else None)


def _whole(core: str) -> int | None:
    """Return the integer that the digits of a finite double spell; None where it is not spelt with digits alone."""
    digits = core.lstrip("+-")
    if not digits.isdigit():
        return None
    # Python refuses integers of some thousand digits, leading zeros included.
    return int(digits.lstrip("0") or "0") * (-1 if core.startswith("-") else 1)


def from_json(value: Any) -> Number | None:
    """Return the number of a decoded JSON value, or None where it is none (text, list, object).

    A null is a number that was not finite and that the log can't tell. Numbers in quotes are read.
    """
    if isinstance(value, float):
        return Number(value, None if _is_finite(value) else json_token(value))
    if isinstance(value, int):
        return _from_int(value)
    if value is None:
        return Number(None, "null")
    return from_text(value) if isinstance(value, str) else None


def plain_values(row: Mapping[str, Any], without: Container[str] = ()) -> array | None:
    """Return the values of a decoded JSON row as doubles where all are numbers that a double can hold.

    Args:
        row: Value by name.
        without: Names to leave out.

    Returns:
        The doubles in the order of the row; None where any value needs a closer look.
    """
    values = [v for k, v in row.items() if k not in without] if without else row.values()
    try:
        doubles = array("d", values)
    except TypeError:
        return _with_tokens(list(values))
    except OverflowError:
        return None
    if not doubles or (max(doubles) < EXACT_INTEGER_LIMIT and min(doubles) > -EXACT_INTEGER_LIMIT):
        return doubles
    return _without_large(doubles)


def _with_tokens(values: list[Any]) -> array | None:
    """Return the doubles where what is no number is one of JSON's tokens for those that are not finite, in quotes."""
    texts = [at for at, v in enumerate(values) if v.__class__ is str]
    tokens = [(at, _TOKENS[values[at]]) for at in texts if values[at] in _TOKENS]
    if len(tokens) < len(texts):
        return None
    for at, _ in tokens:
        values[at] = 0.0
    try:
        doubles = array("d", values)
    except (TypeError, OverflowError):
        return None
    if not (max(doubles) < EXACT_INTEGER_LIMIT and min(doubles) > -EXACT_INTEGER_LIMIT):
        return None
    for at, token in tokens:
        doubles[at] = token
    return doubles


def _without_large(values: array) -> array | None:
    """Return the values unless a finite one is too large: where there are infinities, or a NaN comes first."""
    large = any(abs(v) >= EXACT_INTEGER_LIMIT and _is_finite(v) for v in values)
    return None if large else values


def _from_int(value: int) -> Number:
    try:
        double = float(value)
    except OverflowError:
        return Number(float("inf") if value > 0 else float("-inf"), str(value)[:_MOST_RAW])
    return Number(double, None if abs(value) < EXACT_INTEGER_LIMIT or int(double) == value else str(value))


def written(value: Any) -> str:
    """Return a decoded value as text, for a message; nothing where it is nested more deeply than Python can print."""
    try:
        return str(value)
    except (RecursionError, ValueError):
        return ""


def _is_finite(value: float) -> bool:
    return value - value == 0.0


def json_token(value: float) -> str:
    """Return the JSON token of a non-finite double."""
    if value != value:
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def whole_step(value: Any) -> int | None:
    """Return a step as an integer, or None where it is no whole number within `STEP_LIMIT`."""
    if isinstance(value, str):
        number = from_text(value)
        value = None if number is None or isinstance(number.raw, str) else number.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not -STEP_LIMIT < value < STEP_LIMIT or value != int(value):
        return None
    return int(value)
