"""What a person means by a name: whole, its last part, or the name that another framework gives to it.

Which names there are is asked of the published file by the callers; spelling of the catalogue's own metrics belongs to
`warehouse.catalog`.
"""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

import duckdb

_LISTED = 10
_NEAREST = 4


def meant_name(con: duckdb.DuckDBPyConnection, text: str, known: Collection[str]) -> str | None:
    """Return the one of the known names that a text means; None where it means none.

    Args:
        con: A read-only connection to the published file, for the names under which frameworks log a metric.
        text: A name, its last parts, or such a name of a framework.
        known: The names there are.

    Raises:
        ValueError: If the text may mean several.
    """
    if text in known:
        return text
    aliases = con.execute(
        "select distinct metric, name = $text from dim_metric_alias where name = $text or ends_with(name, $tail)",
        {"text": text, "tail": f"/{text}"},
    ).fetchall()
    by_trust = (
        {name for name, is_whole in aliases if is_whole},
        {name for name in known if name.endswith(f"/{text}")},
        {name for name, _ in aliases},
    )
    for names in by_trust:
        found = sorted(names & set(known))
        if len(found) > 1:
            raise ValueError(f"{text} may mean {', '.join(found)}; name one of them.")
        if found:
            return found[0]
    return None


def listed_names(names: Sequence[str], text: str = "") -> str:
    """Return the names as a sentence lists them: all of a few, of many those nearest to `text`, of numbers the ends."""
    if not names:
        return "none yet"
    if all(name.removeprefix("-").isdigit() for name in names) and len(names) > 1:
        numbers = [int(name) for name in names]
        return f"{min(numbers)} to {max(numbers)}"
    if len(names) <= _LISTED:
        return ", ".join(names)
    near = get_close_matches(text, names, _NEAREST, 0.0)
    return f"{len(names)}, the nearest: {', '.join(near)}"
