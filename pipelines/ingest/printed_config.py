"""The configuration that verl prints into its console log before the first step.

Here belongs how the printed dictionary is put together again from lines of one process among those of others. Which
of its entries are kept belongs to `metadata`.
"""

import ast
from dataclasses import dataclass, field
from typing import Any

from pipelines.ingest.draft import LogFile
from pipelines.ingest.sources import lines_before, text_of

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

    @classmethod
    def resumed(cls, log: LogFile) -> "PrintedConfig":
        """Return it as it was at the mark of a file.

        What has been printed up to there may hold anything and is stored nowhere, so it is read again.
        """
        known = log.since.state.get("config")
        config = cls(done=known == "done")
        if known == "begun":
            for body in lines_before(log):
                config.feed(body)
        return config

    def state(self) -> dict[str, str]:
        """Return what must be stored to go on: no line of the dictionary."""
        if self.done:
            return {"config": "done"}
        return {"config": "begun"} if self._prefix is not None else {}

    def feed(self, body: bytes) -> bool:
        """Look at the next line of the log, and tell whether it completes the dictionary."""
        if self._prefix is None:
            begin = body.find(_BEGIN)
            if begin < 0:
                return False
            self._prefix = body[:begin]
        elif not body.startswith(self._prefix):
            return False  # another process wrote in between
        text = text_of(body[len(self._prefix) :])
        self._parts.append(text)
        self._depth += text.count("{") - text.count("}")
        if self._depth <= 0 or len(self._parts) > _MOST_LINES:
            self.done = True
            self.found = _evaluate("\n".join(self._parts))
        return self.done


def _evaluate(text: str) -> dict[str, Any]:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
