"""What a reader fills: the points of one file in the order of writing, and how far the file has been read.

Here belong the column builder, the mark from which a file that grew is read on, and what a reader is told of its file.
Finding attempts belongs to `attempts`, tables to `points`.
"""

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipelines.ingest.base import SNIPPET_CHARS, ParseIssue
from pipelines.ingest.redaction import outline, redact
from pipelines.ingest.text_number import json_token
from pipelines.ingest.wall_time import seconds_of
from warehouse.contract import DEFAULT_STEP_AXIS

SLICE_POINTS = 1 << 18
"""How many points are held before they are given away: bounds the memory of reading."""

_NO_TIME = float("nan")


class CannotResumeError(Exception):
    """What an earlier pass took for granted of a log does not hold any more: it must be read whole."""


@dataclass(frozen=True)
class Mark:
    """A place in a file up to which it has been read for good, with what its reader must know to go on from there.

    Attributes:
        offset: Bytes before it; the last row id of a SQLite store.
        line: Lines before it, of a text file.
        state: The reader's own facts, fit for JSON. They are stored in the lake, so nothing of the log that is no
            metric may be among them: a reader that needs more notes where in the file it lies.
        points: Points before it.
        log_precision, framework, status, metadata: As the file told them up to here.
    """

    offset: int = 0
    line: int = 0
    state: Mapping[str, Any] = field(default_factory=dict)
    points: int = 0
    log_precision: str = ""
    framework: str = ""
    status: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


BEGIN = Mark()


@dataclass(frozen=True)
class LogFile:
    """What a reader is to read of one file.

    Attributes:
        path: The file; the folder for the stores that are one.
        source: How it is named in points and issues.
        since: Where to go on; the beginning by default.
        stop: How many bytes it had when the pass began: what is added later is left to the next pass. None: all.
        columns: Names of the columns of a table without a header.
        run: Name or identifier of the run, in a store that holds several.
    """

    path: Path
    source: str
    since: Mark = BEGIN
    stop: int | None = None
    columns: Sequence[str] | None = None
    run: str | None = None

    @classmethod
    def of(cls, path: Path) -> "LogFile":
        """Return a whole file under its own name."""
        return cls(path, path.name)

    def draft(self, *, log_precision: str = "float64", framework: str = "") -> "Draft":
        """Return an empty draft that knows what the file told up to the mark.

        Args:
            log_precision: What the format keeps, unless the file showed otherwise.
            framework: What the format says of it.
        """
        since = self.since
        return Draft(
            log_precision=since.log_precision or log_precision,
            framework=since.framework or framework,
            status=since.status or "unknown",
            metadata=dict(since.metadata),
            points=since.points,
        )


class Batch(NamedTuple):
    """Points in the order of writing; all arrays have the shape (n,).

    Attributes:
        name, axis, file: Codes in the tables of the draft.
        step, value, position: As the log says.
        wall_time: Seconds since 1970 UTC; NaN where there is no time.
        raw: What the log said, by index, where that was no finite number.
        kinds: The kind, by index, where the value does not tell it.
        process_starts: Where another process begins to write; n, if it begins behind the last point.
        issues: What could not be read.
    """

    name: np.ndarray
    axis: np.ndarray
    file: np.ndarray
    step: np.ndarray
    value: np.ndarray
    position: np.ndarray
    wall_time: np.ndarray
    raw: dict[int, str]
    kinds: dict[int, str]
    process_starts: list[int]
    issues: list[ParseIssue]


@dataclass
class Draft:
    """What a reader has found so far.

    A row is what shares step, axis, file, position and time: those columns have one entry a row, names and values one
    a point. Names, axes and files are coded by their first appearance.
    """

    log_precision: str = "float64"
    framework: str = ""
    status: str = "unknown"
    metadata: dict[str, Any] = field(default_factory=dict)
    points: int = 0
    mark: Mark | None = None
    issues: list[ParseIssue] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    axes: dict[str, int] = field(default_factory=lambda: {DEFAULT_STEP_AXIS: 0})
    files: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        # New arrays: the memory of the old ones has been given away.
        self.name, self.value = array("i"), array("d")
        self.count, self.axis, self.file = array("i"), array("i"), array("i")
        self.step, self.position, self.wall_time = array("q"), array("q"), array("d")
        self.raw: dict[int, str] = {}
        self.kinds: dict[int, str] = {}
        self.process_starts: list[int] = []
        self.issues = []

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
            wall_time: Since 1970 UTC, in seconds or in the finer unit that its size tells.
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
        self.value.append(value)
        self._add_place(1, step, place, axis, wall_time)

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
        if values:
            self.name.extend(codes)
            self.value.extend(values)
            self._add_place(len(values), step, place, axis, wall_time)

    def _add_place(self, count: int, step: int, place: tuple[str, int], axis: str, wall_time: float | None) -> None:
        self.count.append(count)
        self.axis.append(self.axes.setdefault(axis, len(self.axes)))
        self.file.append(self.files.setdefault(place[0], len(self.files)))
        self.step.append(step)
        self.position.append(place[1])
        self.wall_time.append(_NO_TIME if wall_time is None else wall_time)

    def add_columns(
        self,
        name: np.ndarray,
        step: np.ndarray,
        value: np.ndarray,
        position: np.ndarray,
        wall_time: np.ndarray,
        source: str,
        axis: np.ndarray | None = None,
    ) -> None:
        """Append points given as columns of shape (n,); names and axes are codes, the axis is `step` by default."""
        count = len(value)
        file = self.files.setdefault(source, len(self.files))
        self.name.frombytes(name.astype(np.int32).tobytes())
        self.value.frombytes(value.tobytes())
        self.count.frombytes(np.ones(count, dtype=np.int32).tobytes())
        self.axis.frombytes(bytes(4 * count) if axis is None else axis.astype(np.int32).tobytes())
        self.file.frombytes(np.full(count, file, dtype=np.int32).tobytes())
        self.step.frombytes(step.tobytes())
        self.position.frombytes(position.tobytes())
        self.wall_time.frombytes(wall_time.tobytes())

    def mark_process(self) -> None:
        """Note that what follows was written by another process than what came before."""
        self.process_starts.append(len(self.value))

    def issue(self, place: tuple[str, int], reason: str, snippet: str = "", lost: int | None = None) -> None:
        """Quarantine a piece of the log."""
        self.issues.append(
            ParseIssue(place[0], place[1], _sound(redact(reason)), _sound(outline(snippet[:400])[:SNIPPET_CHARS]), lost)
        )

    def settle(self, offset: int, line: int = 0, state: Mapping[str, Any] | None = None) -> "Draft":
        """Note that all found so far is there for good, and that reading can go on from `offset`; return the draft."""
        self.mark = Mark(
            offset,
            line,
            dict(state or {}),
            self.points + len(self),
            self.log_precision,
            self.framework,
            self.status,
            dict(self.metadata),
        )
        return self

    def take(self) -> Batch:
        """Return what was found since the last time."""
        count = np.frombuffer(self.count, dtype=np.int32)
        single = len(count) == len(self.value)

        def column(rows: array, kind: type) -> np.ndarray:
            by_row = np.frombuffer(rows, dtype=kind)
            return by_row if single else np.repeat(by_row, count)

        batch = Batch(
            np.frombuffer(self.name, dtype=np.int32),
            column(self.axis, np.int32),
            column(self.file, np.int32),
            column(self.step, np.int64),
            np.frombuffer(self.value, dtype=np.float64),
            column(self.position, np.int64),
            seconds_of(column(self.wall_time, np.float64)),
            self.raw,
            self.kinds,
            self.process_starts,
            self.issues,
        )
        self.points += len(self)
        self._clear()
        return batch


def _sound(text: str) -> str:
    """Return a text that UTF-8 can encode."""
    return text.encode("utf-8", "replace").decode()
