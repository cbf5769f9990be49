"""What the commands share: how they print, their common options, the mistakes of a user, the sentence for each failure.

What a command prints of a result does not belong here.
"""

import codecs
import errno
import io
import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from warehouse.settings import HOME_VARIABLE

# Control characters, and those that change the direction of a text or part of it into lines.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_REMEDIES = {
    errno.ENOENT: "check the path, and make its folder first",
    errno.ENOTDIR: "a file lies where a folder is needed: choose another path, or move that file away",
    errno.EEXIST: "a file lies where a folder is needed: choose another path, or move that file away",
    errno.EISDIR: "a folder lies there: name a file in it",
    errno.EACCES: "take a path that you may use, or ask for the right to it",
    errno.EPERM: "take a path that you may use, or ask for the right to it",
    errno.EROFS: "take a path on a disk that can be written to",
    errno.ENOSPC: "make room there, then try again; what was stored before is still whole",
    errno.EDQUOT: "make room there, then try again; what was stored before is still whole",
    errno.ENAMETOOLONG: "choose a shorter name",
}
_ESCAPING = "firstdrift_escaping"

Home = Annotated[Path | None, typer.Option("--home", help="Home folder of the warehouse.", envvar=HOME_VARIABLE)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


class UserError(Exception):
    """Something the user can mend; the message is one sentence that says how."""


class Terminal(Console):
    """A console that prints texts of logs as they are, neither as markup nor as commands to a terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Turn a string, a cell of a table for example, into text."""
        return super().render_str(visible(text), **options)


def visible(text: str) -> str:
    """Return a text of one line, in which control characters are written out as in a string of Python."""
    return _UNSEEN.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def styled(*parts: str | tuple[str, str]) -> Text:
    """Return a line of which some parts have a style, each given with it: ("loss", "bold")."""
    return Text.assemble(*(visible(p) if isinstance(p, str) else (visible(p[0]), p[1]) for p in parts))


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()  # None where it was closed before the start


# A pipe has no width of its own: a table in it shall not fold at 80 columns.
out = Terminal(width=None if _is_terminal() or "COLUMNS" in os.environ else 160)
err = Terminal(stderr=True)


def ready_streams() -> None:
    """Let standard output take every character, whatever encoding it has, by the escapes that JSON reads too.

    Raises:
        UserError: If standard output was closed; a file of the warehouse could get its number and what is printed.
    """
    codecs.register_error(_ESCAPING, _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ESCAPING)
    if sys.stdout is None:
        raise UserError("Standard output is closed; send it to /dev/null where nobody reads it.")


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2)), error.end


def drop_output() -> None:
    """Send what is still to be printed nowhere: what reads standard output has closed it, or its disk is full."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def failure_sentence(error: OSError) -> str:
    """Return what the system could not do as one sentence: which file, what is wrong, what to do."""
    if error.errno is None or not error.strerror:  # one of our own, or of a library
        return str(error)
    what = error.strerror[:1].lower() + error.strerror[1:]
    remedy = _REMEDIES.get(error.errno)
    place = f"{error.filename}: " if error.filename else "A file or standard output can't be written: "
    return f"{place}{what}{f'; {remedy}' if remedy else ''}."
