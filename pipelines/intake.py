"""Taking one run into the lake: all of its log, or only what was added since the last pass.

Here belong the content of a log by hash, and what is stored of a run that one or several trackers logged. Which parts
a pass leaves belongs to `parts`, what a log holds to `pipelines.ingest`.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.ingest.attempts import late_beginnings
from pipelines.ingest.base import LogError
from pipelines.ingest.draft import CannotResumeError
from pipelines.ingest.reading import Facts, Progress, Reading, Unit, joined, resumable
from pipelines.ingest.registry import Source, facts_beside, log_files, no_point, sources_of
from pipelines.manifest import ManifestError, RunEntry
from pipelines.parts import Parts, Stored
from warehouse import lake as lake_files
from warehouse.contract import LOG_PRECISIONS
from warehouse.lake import RunContent

if TYPE_CHECKING:
    from pipelines.chosen_parts import ChosenParts

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
        precisions: How precisely each metric is kept, for those kept better than `log_precision` says.
        issue_count, point_count: Of the whole log, whatever was read in this pass.
        disagreement_count: How often the logs of several trackers differ about a metric, or one lacks points of it.
        late_beginnings: The step axes whose first steps are not in the log, with the lowest step of each.
        error: Why nothing could be read.
    """

    run: str
    log_format: str = ""
    log_precision: str = ""
    precisions: Mapping[str, str] = field(default_factory=dict)
    framework: str = ""
    status: str = "unknown"
    metadata: Mapping[str, str] = field(default_factory=dict)
    issue_count: int = 0
    point_count: int = 0
    disagreement_count: int = 0
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
        digest.update(os.fsencode(file.name) + b"\0" + bytes.fromhex(content))
    return digest.hexdigest()


def content_hash(paths: Iterable[Path], columns: Sequence[str] = ()) -> str:
    """Return the hash of a log as it is now."""
    return hash_of(fingerprints(paths), columns)


def take_in(job: Job, lake: Path) -> Outcome:
    """Read the run and write it to the lake; what the lake held of it before stays as it is.

    Whatever is wrong with a run is told in its outcome: the others have to go on.
    """
    try:
        before = lake_files.left_to_go_on(lake, job.migration, job.entry.name, job.known_hash) if job.known_hash else {}
        try:
            return _take_in(job, lake, before)
        except LogError:
            raise
        except Exception:
            if not before:
                raise
            # What an earlier pass left may be damaged, or of another version: the log itself is still there.
            return _take_in(job, lake, {})
    except Exception as error:
        return Outcome(job.entry.name, error=sentence(error, f"{job.paths[0]}: run {job.entry.name}"))


def sentence(error: Exception, subject: str) -> str:
    """Return why something failed as one sentence that every terminal can show.

    Args:
        error: What was raised.
        subject: The file, and what is wanted of it.
    """
    text = str(error)
    if isinstance(error, OSError):
        place = "" if error.filename is None else f" ({error.filename})"
        text = f"{subject}: {error.strerror or error}{place}; make it accessible, or move it away"
    elif not isinstance(error, LogError | ManifestError | lake_files.LakeError):
        text = f"{subject}: this can't be read ({type(error).__name__}: {text}); leave it out, and report the fault"
    return text.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True)
class _Log:
    """What one reader found in the files of a run."""

    source: Source
    reading: Reading
    stored: Stored

    @property
    def log_format(self) -> str:
        return self.source.reader.NAME

    @property
    def facts(self) -> Facts:
        facts = self.reading.facts
        return replace(facts, log_precision=facts.log_precision or "float64", framework=self.reading.framework)


def _take_in(job: Job, lake: Path, before: Mapping[str, Any]) -> Outcome:
    run = job.entry.name
    folder = lake_files.run_folder(lake, job.migration, run)
    read = [_read(job, source, folder, before.get("logs", {})) for source in sources_of(job.paths)]
    # The most precise one first; of equally precise ones, in the order of the readers.
    logs = sorted(read, key=lambda log: LOG_PRECISIONS.index(log.facts.log_precision))
    issues = tuple(part for log in logs for part in log.stored.issues)
    used, points, disagreements, precisions, choice = logs, logs[0].stored.points, (), {}, None
    if len(logs) > 1:
        chosen = _chosen(logs, folder, before.get("choice"))
        used = [log for log in logs if log.log_format in chosen.used]
        points, precisions, choice = chosen.points, chosen.precisions, chosen.state
        disagreements = chosen.issues
    counts = [sum(lake_files.part_rows(folder, name) for name in names) for names in (points, issues, disagreements)]
    if counts[:2] == [0, 0]:
        raise no_point(job.paths, logs[0].log_format)
    states = {log.log_format: log.stored.state for log in logs if log.stored.state is not None}
    content = RunContent(points, (*issues, *disagreements), {"logs": states, "choice": choice} if states else None)
    lake_files.write_content(lake, job.migration, run, job.content_hash, content)
    facts = joined([log.facts for log in logs], [log.facts for log in used])
    return Outcome(
        run=run,
        log_format=logs[0].log_format,
        log_precision=facts.log_precision,
        precisions=precisions,
        framework=facts.framework,
        status=facts.status,
        metadata={key: str(value) for key, value in {**facts_beside(job.paths), **facts.metadata}.items()},
        point_count=counts[0],
        issue_count=counts[1],
        disagreement_count=counts[2],
        late_beginnings=late_beginnings([log.reading.beginnings for log in used]),
    )


def _chosen(logs: Sequence[_Log], folder: Path, before: Mapping[str, Any] | None) -> "ChosenParts":
    from pipelines.chosen_parts import choose_parts  # polars is not needed for one log

    return choose_parts(folder, [(log.log_format, log.facts.log_precision, log.stored.points) for log in logs], before)


def _read(job: Job, source: Source, folder: Path, states: Mapping[str, Any]) -> _Log:
    units = [_sized(unit, job.files) for unit in source.units]
    state = states.get(source.reader.NAME)
    if state is not None:
        progress = Progress.from_dict(state["progress"])
        fits = state["columns"] == list(job.entry.columns)
        state = state if fits and resumable(source.reader, units, progress, job.entry.name) else None
    try:
        return _read_from(job, source, units, folder, state)
    except CannotResumeError:
        return _read_from(job, source, units, folder, None)


def _sized(unit: Unit, files: Fingerprints) -> Unit:
    size, digest = files.get(unit.path, (None, ""))
    return replace(unit, size=size, digest=digest)


def _read_from(job: Job, source: Source, units: Sequence[Unit], folder: Path, state: Mapping[str, Any] | None) -> _Log:
    progress = Progress.from_dict(state["progress"]) if state else None
    parts = Parts(folder, list(job.entry.columns), state)
    reading = Reading(source.reader, units, progress, job.entry.columns or None, job.entry.name)
    for part in reading.parts():
        parts.add(part)
    return _Log(source, reading, parts.stored(source.reader, units, job.entry.name))
