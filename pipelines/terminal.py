"""What the commands share: where they print, their common options, the mistakes of a user."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from warehouse.settings import HOME_VARIABLE

# A pipe has no width of its own: a table in it shall not fold at 80 columns.
out = Console(highlight=False, width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160)
err = Console(stderr=True, highlight=False)

Home = Annotated[Path | None, typer.Option("--home", help="Home folder of the warehouse.", envvar=HOME_VARIABLE)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


class UserError(Exception):
    """Something the user can mend; the message is one sentence that says how."""
