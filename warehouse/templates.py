"""Names with placeholders: `eval/{dataset}_Pass@{k}` stands for a family of metric names.

Here belong matching, filling and the spelling that ignores separators. What a family means does not
belong here.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

PLACEHOLDER: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
NUMERIC_PLACEHOLDERS: Final = ("k", "k2", "n", "i", "worker", "layer")
"""Placeholders that stand for digits; every other one stands for any text."""

_SEPARATORS = re.compile(r"[^0-9a-z]+")


@lru_cache(maxsize=4096)
def pattern(template: str, any_separator: bool = False) -> re.Pattern[str]:
    """Return the regular expression of a template; numeric placeholders take digits, others any text.

    Args:
        template: A name with placeholders in braces.
        any_separator: Let `_at_` and `_` stand for `@`, and any separator for any other.
    """
    parts, end, seen = [], 0, set()
    for hole in PLACEHOLDER.finditer(template):
        parts.append(_literal(template[end : hole.start()], any_separator))
        name = hole[1]
        if name in seen:
            parts.append(f"(?P={name})")
        else:
            parts.append(rf"(?P<{name}>{r'[0-9]+' if name in NUMERIC_PLACEHOLDERS else '.+?'})")
        seen.add(name)
        end = hole.end()
    parts.append(_literal(template[end:], any_separator))
    return re.compile("".join(parts))


def match(template: str, name: str, *, any_separator: bool = False) -> dict[str, str] | None:
    """Return what the placeholders of `template` stand for in `name`, or None where it does not fit."""
    matched = pattern(template, any_separator).fullmatch(name)
    return matched.groupdict() if matched else None


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return `template` with the known placeholders filled in."""
    return PLACEHOLDER.sub(lambda hole: values.get(hole[1], hole[0]), template)


def template_key(template: str) -> str:
    """Return a template without the names of its placeholders, so that equal families look equal."""
    return PLACEHOLDER.sub("{}", template)


def spelling(name: str) -> str:
    """Return a name in the one spelling that all rewritings of its separators share.

    MLflow writes `@` as `_at_`, others write every separator as `_`.
    """
    return _SEPARATORS.sub("_", name.casefold().replace("_at_", "_").replace("@", "_"))


def _literal(text: str, any_separator: bool) -> str:
    if not any_separator:
        return re.escape(text)
    out = []
    for char in text:
        if char == "@":
            out.append("(?:@|_at_|_)")
        elif char.isalnum():
            out.append(re.escape(char))
        else:
            out.append("[^0-9A-Za-z]")
    return "".join(out)
