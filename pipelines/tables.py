"""Tables on a terminal of any width, in which no name is cut or broken.

The words of a sentence wrap. What is too wide all the same stands a record a row, or leaves its last columns out where
the caller allows. What a program reads is written by `pipelines.render`.
"""

import os
import textwrap
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipelines.terminal import Terminal, visible

UNBOUNDED = 10_000
_GAP = 2
_PROSE = 30
_FEWEST = 2

Rows = Sequence[Sequence[Any]]


def number_text(value: Any) -> str:
    """Return a cell as a person wants to read it: six significant digits, nothing for null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ("; " if value and isinstance(value[0], dict) else ", ").join(number_text(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key} {number_text(item)}" for key, item in value.items())
    return str(value)


def _cell_text(value: Any) -> str:
    return visible(number_text(value))


def room_of(console: Console) -> int:
    """Return how many columns there are: no end of them in a pipe, where a long line hurts nobody."""
    return console.width if console.is_terminal or "COLUMNS" in os.environ else UNBOUNDED


def print_table(
    columns: Sequence[str], rows: Rows, console: Console, *, indent: int = 0, may_drop: bool = False
) -> tuple[str, ...]:
    """Print rows as a table where it fits, else as records.

    Args:
        columns: Names of the columns, the most telling first.
        rows: Their values, as `number_text` takes them, or coloured text.
        console: Where to.
        indent: Blanks before each line.
        may_drop: Whether the last columns may be left out before rows become records.

    Returns:
        The columns left out.
    """
    columns = [visible(name) for name in columns]
    room = room_of(console)
    shown = len(columns)
    least = _least_widths(columns, rows)
    while shown and _needed(least[:shown], indent) > room:
        shown -= 1
    if shown < len(columns) and (not may_drop or shown < _FEWEST):
        print_records(columns, rows, console, indent=indent)
        return ()
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for index, name in enumerate(columns[:shown]):
        values = [row[index] for row in rows]
        is_number = any(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        wraps = _is_prose([_cell_text(v) for v in values])
        table.add_column(name, justify="right" if is_number else "left", no_wrap=not wraps, min_width=least[index])
    for row in rows:
        table.add_row(*[value if isinstance(value, Text) else Text(_cell_text(value)) for value in row[:shown]])
    _print_wide(table, console, indent, room)
    return tuple(columns[shown:])


def print_shortened(columns: Sequence[str], rows: Rows, console: Console, *, indent: int = 0) -> None:
    """Print rows as a table with as many columns as there is room for, and name those left out."""
    left_out = print_table(columns, rows, console, indent=indent, may_drop=True)
    if left_out:
        console.print(f"{' ' * indent}No room for {', '.join(left_out)}.", style="dim")


def print_records(columns: Sequence[str], rows: Rows, console: Console, *, indent: int = 0) -> None:
    """Print a line for each column of each row; nothing between two blanks is ever broken."""
    columns = [visible(name) for name in columns]
    room = room_of(console)
    longest = max((cell_len(name) for name in columns), default=0)
    for number, row in enumerate(rows, start=1):
        if len(rows) > 1:
            console.print(f"{' ' * indent}── {number} ──", style="dim")
        for name, value in zip(columns, row, strict=True):
            start = f"{' ' * indent}{name}{' ' * (longest - cell_len(name) + _GAP)}"
            text = _cell_text(value)
            width = max(room - cell_len(start), 1)
            lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
            for index, line in enumerate(lines or [""]):
                before = start if index == 0 else " " * cell_len(start)
                console.print(before + line, soft_wrap=True)


def fits(columns: Sequence[str], rows: Rows, console: Console, *, indent: int = 0) -> bool:
    """Tell whether a table of these rows has room, with nothing left out."""
    return _needed(_least_widths(columns, rows), indent) <= room_of(console)


def _needed(least: Sequence[int], indent: int) -> int:
    """Return how wide a table is whose columns have these widths."""
    return indent + sum(least) + _GAP * (len(least) - 1)


def _least_widths(columns: Sequence[str], rows: Rows) -> list[int]:
    return [_least_width(name, [row[index] for row in rows]) for index, name in enumerate(columns)]


def _least_width(name: str, values: Sequence[Any]) -> int:
    texts = [_cell_text(value) for value in values]
    if _is_prose(texts):
        return max(_PROSE, cell_len(name), *(cell_len(word) for text in texts for word in text.split()))
    return max([cell_len(name), *(cell_len(text) for text in texts)])


def _is_prose(texts: Sequence[str]) -> bool:
    """Tell whether some cell is more than a name: long, with blanks at which it may wrap."""
    return any(cell_len(text) > _PROSE and " " in text for text in texts)


def _print_wide(table: Table, console: Console, indent: int, room: int) -> None:
    """Print a table at the width it has, whatever the console believes its own to be."""
    target = console if room == console.width else Terminal(file=console.file, width=room)
    target.print(Padding(table, (0, 0, 0, indent), expand=False))
