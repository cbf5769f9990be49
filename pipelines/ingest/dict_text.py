"""Dictionaries of metrics as Python prints them into console logs.

Here belongs the splitting of `{'a': 0.5, 'b': np.float64(nan)}` into names and numbers. Which lines hold one, and
what its step is, belongs to the readers.
"""

import re
from collections.abc import Iterator

from pipelines.ingest.text_number import Number, from_text

_ITEM = re.compile(
    r"""\s*(?P<quote>['"])(?P<name>(?:(?!(?P=quote)).)*)(?P=quote)\s*:\s*
    (?P<value>'[^']*'|"[^"]*"|[\w.]+\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|[^,{}\[\]()'"]+?)\s*(?P<end>[,}]|$)""",
    re.VERBOSE,
)


def items(text: str) -> Iterator[tuple[str, Number | None, str]]:
    """Yield name, number and written value of each entry of a printed dictionary.

    The number is None for what is no number. Reading stops at the closing brace. What can't be understood is
    yielded as an entry without a name, and ends the dictionary.

    Args:
        text: From the opening brace on.
    """
    at = 1
    while at < len(text) and not text[at:].lstrip().startswith("}"):
        match = _ITEM.match(text, at)
        if match is None or match["end"] == "":
            yield "", None, text[at : at + 80].strip()
            return
        written = match["value"]
        bare = written[1:-1] if written[:1] in "'\"" else written
        yield match["name"], from_text(bare), written
        at = match.end()
        if match["end"] == "}":
            return


def is_container(written: str) -> bool:
    """Tell whether a written value is a list or an object, or plain text: no metric, and no damage either."""
    return written[:1] in "[{'\""
