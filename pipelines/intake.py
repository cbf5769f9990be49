"""Taking one run into the lake: all of its log, or only what was added since the last pass.

Here belong the content of a log by hash, and the parts that a pass leaves in the lake. What a log holds belongs to
`pipelines.ingest`.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.ingest.base import LogError, issues_table
from pipelines.ingest.draft import SLICE_POINTS, CannotResumeError
from pipelines.ingest.points import backdate
from pipelines.ingest.reading import Part, Progress, Reading, Unit, resumable, sealed
from pipelines.ingest.registry import Source, facts_beside, log_files, no_point, read_log, sources_of
from pipelines.manifest import RunEntry
from warehouse import lake as lake_files
from warehouse.lake import RunContent

Fingerprints = Mapping[Path, tuple[int, str]]
"""Bytes and SHA-256 of each file of a log."""


@dataclass(frozen=True)
class Job:
    """A run whose log may have to be read.

    Attributes:
        migration: The run's migration.
        entry: What the manifest says of the run.
        paths: Its files or folders.
        files: What its files held when the pass began.
        content_hash: Hash over `files`.
        known_hash: Hash of the content that the lake holds of it, read by readers of this version; "" for none.
    """

    migration: str
    entry: RunEntry
    paths: tuple[Path, ...]
    files: Fingerprints
    content_hash: str
    known_hash: str

    @property
    def must_read(self) -> bool:
        """Whether the lake does not hold this content."""
        return self.content_hash != self.known_hash


@dataclass(frozen=True)
class Outcome:
    """What reading a run gave; the points are in the lake.

    Attributes:
        run: Its name.
        log_format, log_precision, framework, status, metadata: As in `RunLog`.
        issue_count, point_count: Of the whole log, whatever was read in this pass.
        late_beginnings: The step axes whose first steps are not in the log, with the lowest step of each.
        error: Why nothing could be read.
    """

    run: str
    log_format: str = ""
    log_precision: str = ""
    framework: str = ""
    status: str = "unknown"
    metadata: Mapping[str, str] = field(default_factory=dict)
    issue_count: int = 0
    point_count: int = 0
    late_beginnings: Mapping[str, int] = field(default_factory=dict)
    error: str = ""


def fingerprints(paths: Iterable[Path]) -> Fingerprints:
    """Return what the files of a log hold; the log of a SQLite file that is being written counts as one of them.

    Raises:
        LogError: If no reader knows what lies at a path.
    """
    found: dict[Path, tuple[int, str]] = {}
    for path in paths:
        for file in log_files(path):
            for one in (file, file.with_name(f"{file.name}-wal")):
                if one == file or one.is_file():
                    found[one] = _fingerprint(one)
    return found


def _fingerprint(file: Path) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
            size += len(piece)
    return size, digest.hexdigest()


def hash_of(files: Fingerprints, columns: Sequence[str] = ()) -> str:
    """Return the SHA-256 over names and bytes of the files of a log."""
    digest = hashlib.sha256("\x1f".join(columns).encode())
    for file, (_, content) in files.items():
        digest.update(file.name.encode() + b"\0" + bytes.fromhex(content))
    return digest.hexdigest()


def content_hash(paths: Iterable[Path], columns: Sequence[str] = ()) -> str:
    """Return the hash of a log as it is now."""
    return hash_of(fingerprints(paths), columns)


def take_in(job: Job, lake: Path) -> Outcome:
    """Read the run and write it to the lake; what the lake held of it before stays as it is."""
    try:
        sources = sources_of(job.paths)
        if len(sources) > 1:
            return _take_in_blended(job, lake)
        return _take_in_parts(job, lake, sources[0])
    except (LogError, OSError) as error:
        return Outcome(job.entry.name, error=str(error))


def _take_in_blended(job: Job, lake: Path) -> Outcome:
    """Read a run that several trackers logged: what is kept of each metric is known when all is read."""
    log = read_log(job.paths, columns=job.entry.columns or None, run=job.entry.name)
    lake_files.write_run(lake, job.migration, job.entry.name, job.content_hash, log.points, issues_table(log.issues))
    return Outcome(
        run=job.entry.name,
        log_format=log.log_format,
        log_precision=log.log_precision,
        framework=log.framework,
        status=log.status,
        metadata={key: str(value) for key, value in log.metadata.items()},
        issue_count=len(log.issues),
        point_count=log.points.num_rows,
    )


def _take_in_parts(job: Job, lake: Path, source: Source) -> Outcome:
    run = job.entry.name
    units = [_sized(unit, job.files) for unit in source.units]
    folder = lake_files.run_folder(lake, job.migration, run)
    before = _before(job, lake, source, units)
    try:
        reading, parts = _read(job, source, units, folder, before)
    except CannotResumeError:
        reading, parts = _read(job, source, units, folder, None)
    content, counts = parts.content(source, units, run)
    if counts == (0, 0):
        raise no_point(job.paths, source.reader.NAME)
    lake_files.write_content(lake, job.migration, run, job.content_hash, content)
    facts = reading.facts
    metadata = {**facts_beside(job.paths), **facts.metadata}
    return Outcome(
        run=run,
        log_format=source.reader.NAME,
        log_precision=facts.log_precision or "float64",
        framework=reading.framework,
        status=facts.status,
        metadata={key: str(value) for key, value in metadata.items()},
        point_count=counts[0],
        issue_count=counts[1],
        late_beginnings=reading.late_beginnings,
    )


def _sized(unit: Unit, files: Fingerprints) -> Unit:
    size, digest = files.get(unit.path, (None, ""))
    return replace(unit, size=size, digest=digest)


def _before(job: Job, lake: Path, source: Source, units: Sequence[Unit]) -> dict[str, Any] | None:
    """Return what an earlier pass left to go on from, if that is still there unchanged."""
    if not job.known_hash:
        return None
    known = lake_files.read_content(lake, job.migration, job.entry.name, job.known_hash).reading
    if known is None or known["columns"] != list(job.entry.columns):
        return None
    progress = Progress.from_dict(known["progress"])
    return known if resumable(source.reader, units, progress, job.entry.name) else None


def _read(
    job: Job, source: Source, units: Sequence[Unit], folder: Path, before: dict[str, Any] | None
) -> "tuple[Reading, _Parts]":
    progress = Progress.from_dict(before["progress"]) if before else None
    parts = _Parts(folder, list(job.entry.columns), before)
    reading = Reading(source.reader, units, progress, job.entry.columns or None, job.entry.name)
    for part in reading.parts():
        parts.add(part)
    return reading, parts


class _Kept:
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

    def take_over(self, other: "_Kept") -> None:
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

    def backdated(self, changes: Sequence[Any]) -> "_Kept":
        """Return the same with the attempts of some points raised; parts that are concerned are written anew."""
        new = _Kept(self.folder)
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


class _Parts:
    """What a pass adds to the lake: what is settled, and what the next pass will read again."""

    def __init__(self, folder: Path, columns: list[str], before: dict[str, Any] | None) -> None:
        self._columns = columns
        self._progress = Progress.from_dict(before["progress"]) if before else None
        self._points = _Kept(folder, before["points"] if before else ())
        self._issues = _Kept(folder, before["issues"] if before else ())
        self._later_points, self._later_issues = _Kept(folder), _Kept(folder)
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

    def content(self, source: Source, units: Sequence[Unit], run: str) -> tuple[RunContent, tuple[int, int]]:
        """Write what still waits; return what the lake now holds of the run, and how many points and issues."""
        for kept in (self._points, self._issues):
            kept.flush()
            kept.join_small()
        seen = self._points.backdated(self._changes) if self._changes else self._points
        for kept in (self._later_points, self._later_issues):
            kept.flush()
        points = (*seen.names, *self._later_points.names)
        issues = (*self._issues.names, *self._later_issues.names)
        reading = None
        if self._progress is not None:
            progress = sealed(self._progress, source.reader, units, run)
            reading = {
                "columns": self._columns,
                "points": self._points.names,
                "issues": self._issues.names,
                "progress": progress.as_dict(),
            }
        folder = self._points.folder
        counts = [sum(lake_files.part_rows(folder, name) for name in names) for names in (points, issues)]
        return RunContent(points, issues, reading), (counts[0], counts[1])
