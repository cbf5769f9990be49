"""The configuration that verl prints into its console log before the first step.

Here belongs how the printed dictionary is put together again from lines of one process among those of others. Which
of its entries are kept belongs to `metadata`.
"""

import ast
from dataclasses import dataclass, field
from typing import Any

from pipelines.ingest.sources import text_of

_BEGIN = b"{'actor_rollout_ref':"
_MOST_LINES = 3000


@dataclass
class PrintedConfig:
    """Collects the lines of the dictionary while the log is read.

    Attributes:
        found: The configuration; empty as long as it is not complete, or if it can't be understood.
        done: Whether no more lines are wanted.
    """

    found: dict[str, Any] = field(default_factory=dict)
    done: bool = False
    _prefix: bytes | None = None
    _parts: list[str] = field(default_factory=list)
    _depth: int = 0

    def feed(self, body: bytes) -> None:
        """Look at the next line of the log."""
        if self._prefix is None:
            begin = body.find(_BEGIN)
            if begin < 0:
                return
            self._prefix = body[:begin]
        elif not body.startswith(self._prefix):
            return  # another process wrote in between
        text = text_of(body[len(self._prefix) :])
        self._parts.append(text)
        self._depth += text.count("{") - text.count("}")
        if self._depth <= 0 or len(self._parts) > _MOST_LINES:
            self.done = True
            self.found = _evaluate("\n".join(self._parts))


def _evaluate(text: str) -> dict[str, Any]:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
