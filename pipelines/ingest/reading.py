"""Reading a run part by part, from its beginning or from where an earlier pass stopped.

Here belong the order of the files, what is carried from part to part and from pass to pass, and the proof that what was
read before is still there unchanged. Where parts are kept belongs to the caller.

A pass yields parts. A part with a `Progress` says that it and all parts before it are settled: a later pass may begin
there. What comes behind the last one is provisional (a torn last line, a file that can only be read whole) and is read
again by the next pass.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from pipelines.ingest.attempts import Backdated, Numbering
from pipelines.ingest.base import ParseIssue
from pipelines.ingest.draft import BEGIN, Draft, LogFile, Mark
from pipelines.ingest.points import framework_of, table_of
from warehouse.contract import LOG_PRECISIONS

_HASH_PIECE = 1 << 20


@dataclass(frozen=True)
class Unit:
    """What a reader takes at a time: a file, or the folder of a store that is one.

    Attributes:
        path: Where it lies.
        source: How it is named in points and issues.
        size: Bytes it had when its digest was made; None for what is read as it is found.
        digest: SHA-256 of that many bytes, in hexadecimal; empty where it was not made.
    """

    path: Path
    source: str
    size: int | None = None
    digest: str = ""


@dataclass(frozen=True)
class Facts:
    """What the files of a run tell besides points; the fields are those of `RunLog`."""

    log_precision: str = ""
    framework: str = ""
    status: str = "unknown"
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def and_those_of(self, draft: Draft) -> "Facts":
        """Return the facts of these files and of the next one."""
        known = [p for p in (self.log_precision, draft.log_precision if draft.points else "") if p]
        return Facts(
            max(known, key=LOG_PRECISIONS.index, default=""),
            self.framework or draft.framework,
            draft.status,
            {**self.metadata, **draft.metadata},
        )


def joined(logs: Sequence[Facts], used: Sequence[Facts]) -> Facts:
    """Return what several logs of one run tell.

    Args:
        logs: All of them; where they contradict each other, the earlier one is believed.
        used: Those that points are taken from: the coarsest of them says how precise the run is kept.
    """
    return Facts(
        log_precision=max((facts.log_precision for facts in used), key=LOG_PRECISIONS.index, default="float64"),
        framework=next((facts.framework for facts in logs if facts.framework), ""),
        status=next((facts.status for facts in logs if facts.status != "unknown"), "unknown"),
        metadata={key: value for facts in reversed(logs) for key, value in facts.metadata.items()},
    )


@dataclass(frozen=True)
class Progress:
    """How far a run has been read for good.

    Attributes:
        log_format: The reader's name.
        done: Source and digest of the files that were read to their end.
        source: The file that was being read.
        mark: How far.
        proof: What the part of the file before the mark is recognised by.
        facts: Facts of the files that are done.
        numbering: What is remembered of the points, as `Numbering.as_dict` gives it.
    """

    log_format: str
    done: tuple[tuple[str, str], ...]
    source: str
    mark: Mark
    facts: Facts
    numbering: Mapping[str, Any]
    proof: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return all of it, fit for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Progress":
        """Return what `as_dict` gave."""
        done = tuple((source, digest) for source, digest in data["done"])
        return cls(**{**data, "done": done, "mark": Mark(**data["mark"]), "facts": Facts(**data["facts"])})


@dataclass(frozen=True)
class Part:
    """Some points of a run.

    Attributes:
        points: A table of `CODED_SCHEMA`.
        issues: What could not be read.
        backdated: What changes in the parts before this one.
        progress: If given, all up to here is settled.
    """

    points: pa.Table
    issues: Sequence[ParseIssue] = ()
    backdated: Sequence[Backdated] = ()
    progress: Progress | None = None


class Reading:
    """One pass over the files of a run.

    Attributes:
        facts: What the files tell; complete when all parts have been yielded.
    """

    def __init__(
        self,
        reader: ModuleType,
        units: Sequence[Unit],
        progress: Progress | None = None,
        columns: Sequence[str] | None = None,
        run: str | None = None,
    ) -> None:
        self._reader, self._units = reader, units
        self._columns, self._run = columns, run
        self._first = len(progress.done) if progress else 0
        self._mark = progress.mark if progress else BEGIN
        self._settled = progress.facts if progress else Facts()
        self._numbering = Numbering.from_dict(progress.numbering) if progress else Numbering()
        self.facts = self._settled

    @property
    def log_format(self) -> str:
        """The reader's name."""
        return self._reader.NAME

    @property
    def framework(self) -> str:
        """The framework that the files name, or that the names of the metrics tell."""
        return self.facts.framework or framework_of(self._numbering.names)

    @property
    def beginnings(self) -> dict[str, tuple[int, ...]]:
        """The two lowest steps of each step axis."""
        return self._numbering.beginnings

    def parts(self) -> Iterator[Part]:
        """Yield the parts that are not settled yet.

        Raises:
            LogError: If a file can't be read at all.
            CannotResumeError: If the files contradict what an earlier pass took for granted.
        """
        for at in range(self._first, len(self._units)):
            unit = self._units[at]
            log = LogFile(unit.path, unit.source, self._mark, unit.size, self._columns, self._run)
            draft = None
            for draft in self._reader.scan(log):
                part, mark = self._part(draft), draft.mark
                yield replace(part, progress=self._progress(at, mark)) if mark else part
            assert draft is not None, "a reader yields its draft at least once"
            rest = self._part(draft)
            self.facts = self._settled.and_those_of(draft)
            if at + 1 < len(self._units):  # only the last file may grow
                self._settled, self._mark = self.facts, BEGIN
                rest = replace(rest, progress=self._progress(at + 1, BEGIN))
            yield rest

    def _part(self, draft: Draft) -> Part:
        batch = draft.take()
        numbered = self._numbering.number(batch, draft)
        names, axes = list(self._numbering.names), list(self._numbering.axes)
        return Part(table_of(batch, numbered, names, axes, list(draft.files)), batch.issues, numbered.backdated)

    def _progress(self, at: int, mark: Mark) -> Progress:
        done = tuple((unit.source, unit.digest) for unit in self._units[:at])
        return Progress(self._reader.NAME, done, self._units[at].source, mark, self._settled, self._numbering.as_dict())


def resumable(reader: ModuleType, units: Sequence[Unit], progress: Progress | None, run: str | None) -> bool:
    """Tell whether what an earlier pass read is still there unchanged, so that only what was added must be read.

    The files before the last one read must be the same byte by byte; the last one may have grown, and files may have
    been added behind it.
    """
    if progress is None or progress.log_format != reader.NAME or len(units) <= len(progress.done):
        return False
    if any((u.source, u.digest) != known or not u.digest for u, known in zip(units, progress.done, strict=False)):
        return False
    unit = units[len(progress.done)]
    if unit.source != progress.source or unit.size is None:
        return False
    return progress.mark.offset == 0 or prove(reader, unit, progress.mark, run) == progress.proof


def prove(reader: ModuleType, unit: Unit, mark: Mark, run: str | None) -> str:
    """Return what the part of a unit before a mark is recognised by: its hash, unless the reader knows better."""
    if hasattr(reader, "proof"):
        return reader.proof(LogFile(unit.path, unit.source, mark, unit.size, None, run))
    if unit.size is not None and mark.offset > unit.size:
        return ""
    if mark.offset == unit.size:
        return unit.digest
    digest, left = hashlib.sha256(), mark.offset
    with unit.path.open("rb") as file:
        while left and (piece := file.read(min(_HASH_PIECE, left))):
            digest.update(piece)
            left -= len(piece)
    return digest.hexdigest() if not left else ""


def sealed(progress: Progress, reader: ModuleType, units: Sequence[Unit], run: str | None) -> Progress:
    """Return progress with the proof of the file that it stopped in; reading may have made it on the way."""
    if progress.mark.offset == 0:
        return progress
    proof = progress.mark.state.get("proof", "")
    return replace(progress, proof=proof or prove(reader, units[len(progress.done)], progress.mark, run))
