"""Which readers there are, which one fits a log, and reading a run with it.

A new reader is one module here, one entry of `READERS`, and one fixture in tests/ingest/fixtures. The order
counts: the first reader that knows the content takes it, so formats with a signature come first and plain
tables last.
"""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from pipelines.ingest import (
    clearml,
    console,
    huggingface,
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
from pipelines.ingest.base import LogError, RunLog
from pipelines.ingest.points import Draft, assemble

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

    Raises:
        LogError: If there is nothing at `path`, or no reader knows it, or its files are of several formats.
    """
    if not path.exists():
        raise LogError(f"{path}: there is no such file or folder")
    for reader in READERS:
        if reader.sniff(path):
            return reader
    if path.is_dir():
        return _detect_files(path, _plain_files(path))
    raise LogError(
        f"{path}: no reader knows this content (looked for {', '.join(r.NAME for r in READERS)}); "
        "is it the log of metrics, and does it hold at least one step?"
    )


def log_files(path: Path | Sequence[Path]) -> list[Path]:
    """Return the files of a run that hold its log: what its content hash is made from.

    Args:
        path: A file, a folder, or the files that a pattern matched.

    Raises:
        LogError: As `detect`.
    """
    if not isinstance(path, Path):
        return [file for one in sorted(path) for file in log_files(one)]
    return _files(detect(path), path)


def read_log(path: Path | Sequence[Path], columns: Sequence[str] | None = None, run: str | None = None) -> RunLog:
    """Read a run.

    Args:
        path: A file, a folder, or several files of one run; these are read in the order of their names,
            later files may be later attempts.
        columns: Names of the columns of a table without a header.
        run: Name or identifier of the run, for a store that holds several.

    Returns:
        The run; `source_file` of its points is relative to the folder, or the name of the file.

    Raises:
        LogError: If nothing of it can be read.
    """
    paths = [path] if isinstance(path, Path) else sorted(path)
    if not paths:
        raise LogError("no file matches the log of this run; check its path or pattern")
    readers = {reader.NAME: reader for reader in map(detect, paths)}
    if len(readers) > 1:
        raise LogError(f"{paths[0]} and its fellows are of several formats: {', '.join(sorted(readers))}; name one")
    (reader,) = readers.values()
    options = {"columns": columns, "run": run}
    drafts = [_scan(reader, unit, _source(paths, one, unit), options) for one in paths for unit in _units(reader, one)]
    log = assemble(reader.NAME, drafts)
    if log.points.num_rows == 0 and not log.issues:
        raise LogError(f"{paths[0]}: the log ({reader.NAME}) holds no point yet")
    return log


def _plain_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file() and p.name not in SIDECARS and not p.name.startswith("."))


def _detect_files(folder: Path, found: Sequence[Path]) -> ModuleType:
    readers = {reader.NAME: reader for file in found for reader in READERS if _known(file) is reader}
    if not readers:
        raise LogError(f"{folder}: none of the {len(found)} files in this folder is a log that a reader knows")
    if len(readers) > 1:
        raise LogError(
            f"{folder}: the files are of several formats ({', '.join(sorted(readers))}); name one file or pattern"
        )
    return next(iter(readers.values()))


def _known(file: Path) -> ModuleType | None:
    return next((reader for reader in READERS if reader.sniff(file)), None)


def _files(reader: ModuleType, path: Path) -> list[Path]:
    if hasattr(reader, "files"):
        found: list[Path] = reader.files(path)
        if found:
            return found
    return [path] if path.is_file() else [file for file in _plain_files(path) if reader.sniff(file)]


def _source(paths: Sequence[Path], one: Path, file: Path) -> str:
    if one.is_dir():
        name = file.relative_to(one).as_posix()
        return name if len(paths) == 1 else f"{one.name}/{name}"
    return file.name


def _units(reader: ModuleType, path: Path) -> list[Path]:
    return reader.units(path) if hasattr(reader, "units") and reader.sniff(path) else _files(reader, path)


def _scan(reader: ModuleType, unit: Path, source: str, options: Mapping[str, object]) -> Draft:
    """Scan with the options that the reader knows and that were given."""
    known = inspect.signature(reader.scan).parameters
    return reader.scan(unit, source, **{k: v for k, v in options.items() if v is not None and k in known})
