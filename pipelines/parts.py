"""The parts that a pass over a log leaves in the lake.

Here belong which parts are settled and which the next pass replaces, joining small ones, and renumbering what a later
pass showed to be another attempt. What a log holds belongs to `pipelines.ingest`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from pipelines.ingest.base import issues_table
from pipelines.ingest.draft import SLICE_POINTS
from pipelines.ingest.points import backdate
from pipelines.ingest.reading import Part, Progress, Unit, sealed
from warehouse import lake as lake_files


class Kept:
    """Tables of one kind: the names of those written, and those that wait until there are enough for a part."""

    def __init__(self, folder: Path, names: Iterable[str] = ()) -> None:
        self.folder = folder
        self.names = list(names)
        self.waiting: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        """Add a table; nothing is done for an empty one."""
        if table.num_rows:
            self.waiting.append(table)
        if sum(t.num_rows for t in self.waiting) >= SLICE_POINTS:
            self.flush()

    def flush(self) -> None:
        """Write what waits as one part."""
        if self.waiting:
            self.names.append(lake_files.write_part(self.folder, *self.waiting))
            self.waiting = []

    def take_over(self, other: "Kept") -> None:
        """Add all that another one holds, and empty it."""
        self.names += other.names
        other.names = []
        for table in other.waiting:
            self.add(table)
        other.waiting = []

    def join_small(self) -> None:
        """Join parts as long as the last one but one is not much larger: a log read in many passes has few parts."""
        while len(self.names) > 1:
            rows = [lake_files.part_rows(self.folder, name) for name in self.names[-2:]]
            if rows[0] > 2 * rows[1] or sum(rows) > SLICE_POINTS:
                return
            tables = [lake_files.read_part(self.folder, name) for name in self.names[-2:]]
            self.names[-2:] = [lake_files.write_part(self.folder, pa.concat_tables(tables))]

    def backdated(self, changes: Sequence[Any]) -> "Kept":
        """Return the same with the attempts of some points raised; parts that are concerned are written anew."""
        new = Kept(self.folder)
        for name in self.names:
            table = lake_files.read_part(self.folder, name)
            changed = _backdated(table, changes)
            new.names.append(name if changed is table else lake_files.write_part(self.folder, changed))
        new.waiting = [_backdated(table, changes) for table in self.waiting]
        return new


def _backdated(table: pa.Table, changes: Sequence[Any]) -> pa.Table:
    for change in changes:
        table = backdate(table, change) or table
    return table


@dataclass(frozen=True)
class Stored:
    """What the lake holds of a log.

    Attributes:
        points, issues: Names of the parts.
        state: What the next pass needs to go on from here, fit for JSON; None where it must read the log whole.
    """

    points: tuple[str, ...]
    issues: tuple[str, ...]
    state: dict[str, Any] | None


class Parts:
    """What a pass adds to the lake: what is settled, and what the next pass will read again."""

    def __init__(self, folder: Path, columns: list[str], before: Mapping[str, Any] | None) -> None:
        self._columns = columns
        self._progress = Progress.from_dict(before["progress"]) if before else None
        self._points = Kept(folder, before["points"] if before else ())
        self._issues = Kept(folder, before["issues"] if before else ())
        self._later_points, self._later_issues = Kept(folder), Kept(folder)
        self._changes: list[Any] = []

    def add(self, part: Part) -> None:
        """Take up the next part of the pass."""
        if part.backdated:
            self._later_points = self._later_points.backdated(part.backdated)
            self._changes += part.backdated
        self._later_points.add(part.points)
        self._later_issues.add(issues_table(part.issues))
        if part.progress is None:
            return
        self._progress = part.progress
        if self._changes:
            self._points, self._changes = self._points.backdated(self._changes), []
        self._points.take_over(self._later_points)
        self._issues.take_over(self._later_issues)

    def stored(self, reader: ModuleType, units: Sequence[Unit], run: str) -> "Stored":
        """Write what still waits, and return what the lake now holds of the log."""
        for kept in (self._points, self._issues):
            kept.flush()
            kept.join_small()
        seen = self._points.backdated(self._changes) if self._changes else self._points
        for kept in (self._later_points, self._later_issues):
            kept.flush()
        state = None
        if self._progress is not None:
            state = {
                "columns": self._columns,
                "points": self._points.names,
                "issues": self._issues.names,
                "progress": sealed(self._progress, reader, units, run).as_dict(),
            }
        points = (*seen.names, *self._later_points.names)
        return Stored(points, (*self._issues.names, *self._later_issues.names), state)
