"""Which readers there are, which one fits a log, and reading a run with it.

A new reader is one module here, one entry of `READERS`, and one fixture in tests/ingest/fixtures. The order
counts: the first reader that knows the content takes it, so formats with a signature come first and plain
tables last.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import pyarrow as pa

from pipelines.ingest import (
    clearml,
    console,
    huggingface,
    metadata,
    metric_map,
    mlflow,
    roll,
    slime,
    swanlab,
    tabular,
    tensorboard,
    trackio,
    trl_console,
    verl_jsonl,
    wandb,
)
from pipelines.ingest.base import ClosedLogError, LogError, ParseIssue, RunLog
from pipelines.ingest.points import backdate, sorted_together
from pipelines.ingest.reading import Reading, Unit
from pipelines.ingest.sources import text_of

READERS: tuple[ModuleType, ...] = (
    tensorboard,
    wandb,
    swanlab,
    mlflow,
    trackio,
    clearml,
    huggingface,
    metric_map,
    verl_jsonl,
    console,
    roll,
    slime,
    trl_console,
    tabular,
)

SIDECARS = frozenset({"run.yaml", "run.yml", "migration.yaml", "migration.yml"})
"""Files beside a log that say what the log can't; they are no logs."""


def detect(path: Path) -> ModuleType:
    """Return the reader that knows the content of a file or folder.

    Of a folder with logs of several formats it is the one that is asked first; `read_log` reads them all.

    Raises:
        LogError: If there is nothing at `path`, or no reader knows it.
    """
    return _logs(path)[0][0]


def log_files(path: Path | Sequence[Path]) -> list[Path]:
    """Return the files of a run that hold its log: what its content hash is made from.

    Args:
        path: A file, a folder, or the files that a pattern matched.

    Raises:
        LogError: As `detect`.
    """
    if not isinstance(path, Path):
        return [file for one in sorted(path) for file in log_files(one)]
    return [file for reader, place in _logs(path) for file in _files(reader, place)]


def read_log(path: Path | Sequence[Path], columns: Sequence[str] | None = None, run: str | None = None) -> RunLog:
    """Read a run.

    Args:
        path: A file, a folder, or several files of one run; these are read in the order of their names,
            later files may be later attempts.
        columns: Names of the columns of a table without a header.
        run: Name or identifier of the run, for a store that holds several.

    Returns:
        The run; `source_file` of its points is relative to the folder, or the name of the file. Of a folder with
        logs of several formats, each metric comes from the most precise one.

    Raises:
        LogError: If nothing of it can be read.
    """
    sources = sources_of(path)
    logs = [read_units(source.reader, source.units, columns, run) for source in sources]
    log = logs[0] if len(logs) == 1 else _blend(logs)
    if log.points.num_rows == 0 and not log.issues:
        raise no_point(path, log.log_format)
    return replace(log, metadata={**facts_beside(path), **log.metadata})


@dataclass(frozen=True)
class Source:
    """The files of a run that one reader takes, in the order in which they are read."""

    reader: ModuleType
    units: tuple[Unit, ...]


def sources_of(path: Path | Sequence[Path]) -> list[Source]:
    """Return what holds the log of a run: one entry for each reader that knows some of it.

    Raises:
        LogError: As `detect`.
    """
    paths = _paths(path)
    if not paths:
        raise LogError("no file matches the log of this run; check its path or pattern")
    found: dict[str, Source] = {}
    for one in paths:
        for reader, place in _logs(one):
            units = tuple(Unit(unit, _source(reader, paths, one, unit)) for unit in _units(reader, place))
            known = found.get(reader.NAME, Source(reader, ()))
            found[reader.NAME] = replace(known, units=known.units + units)
    return [replace(source, units=_distinct(source.units)) for source in found.values()]


def facts_beside(path: Path | Sequence[Path]) -> dict[str, str]:
    """Return what the files beside a log tell of the run."""
    return {key: value for one in _paths(path) if one.is_dir() for key, value in metadata.beside(one).items()}


def no_point(path: Path | Sequence[Path], log_format: str) -> LogError:
    """Return the error of a log that holds nothing."""
    return LogError(f"{_paths(path)[0]}: the log ({log_format}) holds no point yet")


def _paths(path: Path | Sequence[Path]) -> list[Path]:
    return [path] if isinstance(path, Path) else sorted(path)


def read_units(
    reader: ModuleType, units: Sequence[Unit], columns: Sequence[str] | None = None, run: str | None = None
) -> RunLog:
    """Return all that a reader finds in its files, whatever other readers would make of them."""
    reading = Reading(reader, units, None, columns, run)
    tables: list[pa.Table] = []
    issues: list[ParseIssue] = []
    for part in reading.parts():
        for change in part.backdated:
            tables = [backdate(table, change) or table for table in tables]
        tables.append(part.points)
        issues += part.issues
    facts = reading.facts
    return RunLog(
        log_format=reading.log_format,
        points=sorted_together([table for table in tables if table.num_rows]),
        log_precision=facts.log_precision or "float64",
        framework=reading.framework,
        metadata=dict(facts.metadata),
        issues=tuple(issues),
        status=facts.status,
    )


def _blend(logs: Sequence[RunLog]) -> RunLog:
    from pipelines.ingest.blend import blend  # polars is not needed for one log

    return blend(logs)


def _logs(path: Path) -> list[tuple[ModuleType, Path]]:
    """Return the readers that know what lies at a path, each with what it reads.

    Raises:
        LogError: If there is none, or something can't be opened.
    """
    try:
        return _logs_of(path)
    except PermissionError as error:
        raise ClosedLogError.of(Path(error.filename or path), error) from None


def _logs_of(path: Path) -> list[tuple[ModuleType, Path]]:
    if not path.exists():
        raise LogError(f"{path}: there is no such file or folder")
    if path.is_file():
        known = _known(path)
        if known is None:
            raise LogError(
                f"{path}: no reader knows this content (looked for {', '.join(r.NAME for r in READERS)}); "
                "is it the log of metrics, and does it hold at least one step?"
            )
        return [(known, path)]
    files = _plain_files(path)
    by_file = {reader.NAME for file in files if (reader := _known(file)) is not None}
    found, refusals = [], []
    for reader in READERS:
        try:
            if reader.NAME in by_file or reader.sniff(path):
                found.append((reader, path))
        except LogError as error:  # several runs of that format lie below; another log may still be meant
            refusals.append(error)
    if found:
        return found
    if refusals:
        raise refusals[0]
    raise LogError(f"{path}: none of the {len(files)} files in this folder is a log that a reader knows")


def _plain_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file() and p.name not in SIDECARS and not p.name.startswith("."))


def _known(file: Path) -> ModuleType | None:
    return next((reader for reader in READERS if reader.sniff(file)), None)


def _files(reader: ModuleType, path: Path) -> list[Path]:
    if hasattr(reader, "files"):
        found: list[Path] = reader.files(path)
        if found:
            return found
    return [path] if path.is_file() else [file for file in _plain_files(path) if _known(file) is reader]


def _source(reader: ModuleType, paths: Sequence[Path], one: Path, file: Path) -> str:
    """Return how a file of a log is named: relative to the run's folder."""
    name = _label(reader, file.relative_to(one) if one.is_dir() else Path(file.name))
    if one.is_dir() and len(paths) > 1:
        name = f"{one.name}/{name}"
    return text_of(os.fsencode(name))


def _label(reader: ModuleType, file: Path) -> str:
    return reader.label(file) if hasattr(reader, "label") else file.as_posix()


def _distinct(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """Number units of one name."""
    seen: dict[str, int] = {}
    out = []
    for unit in units:
        count = seen[unit.source] = seen.get(unit.source, 0) + 1
        out.append(unit if count == 1 else replace(unit, source=f"{unit.source} ({count})"))
    return tuple(out)


def _units(reader: ModuleType, path: Path) -> list[Path]:
    return reader.units(path) if hasattr(reader, "units") and reader.sniff(path) else _files(reader, path)
