"""The lake: immutable Parquet parts of each run, a list of them for each content, one JSON file for each migration.

    <migration>/migration.json          the runs, each with the hash of its log's content
    <migration>/<run>/<hash>.json       which parts hold that content, and how far the log was read for good
    <migration>/<run>/<name>.parquet    points or issues, sorted within each row group

A log that grew adds parts; the parts before stay. The lake is the ground truth: the warehouse can be rebuilt from it
alone. Who writes holds the migration's lock. Reading logs and loading the star do not belong here.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.contract import ISSUE_SCHEMA, POINT_SCHEMA

_MIGRATION_FILE = "migration.json"
_LOCK_FILE = ".lock"
_KEPT_VERSIONS = 2
_PARQUET_MAGIC = b"PAR1"


class LakeError(ValueError):
    """A file of the lake can't be used; the message names it and the remedy."""

    def __init__(self, path: Path, fault: str) -> None:
        super().__init__(
            f"{path}: this file of the lake {fault}; run again with the log in landing, from which it is made anew. "
            "Where the log is gone, delete the migration's folder in the lake."
        )


@dataclass(frozen=True)
class Component:
    """A piece of hardware or software: what kind it is, its name, its version ("" where unknown)."""

    kind: str
    name: str
    version: str = ""


@dataclass(frozen=True)
class RunRecord:
    """All that the lake knows of a run besides its points.

    Attributes:
        name: Name, unique in its migration.
        role: "baseline", "candidate" or "replicate".
        baseline: For a candidate: the run it is judged against; "" where none is known.
        replicate_of: For a replicate: the run whose stack it repeats; "" otherwise.
        how_paired: "declared" or "inferred".
        components: What the run ran on.
        recipe: model, dataset, algorithm, seed, data_order and whatever else the manifest states.
        source: Where the log lay.
        content_hash: SHA-256 over the log's files.
        log_format: Reader that read it.
        log_precision: How precisely the log keeps values; of several trackers' logs, the coarsest that is used.
        precisions: By name of the metric, how precisely it is kept, for those kept better than that.
        framework: Framework that wrote it, "" where unknown.
        status: finished, running, crashed or unknown.
        config_hash: Hash of the run's configuration, "" where the log holds none.
        reader_version: Version of the readers that made the Parquet file.
        found: Components that the log itself tells; what the manifest says of a kind wins.
    """

    name: str
    role: str
    source: str
    content_hash: str
    log_format: str
    log_precision: str
    baseline: str = ""
    replicate_of: str = ""
    how_paired: str = "declared"
    components: tuple[Component, ...] = ()
    recipe: dict[str, str] = field(default_factory=dict)
    framework: str = ""
    status: str = "unknown"
    config_hash: str = ""
    reader_version: str = "1"
    found: tuple[Component, ...] = ()
    precisions: dict[str, str] = field(default_factory=dict)


def all_components(run: RunRecord) -> tuple[Component, ...]:
    """Return what a run ran on: the manifest's word, and the log's for kinds that the manifest leaves out."""
    stated = {component.kind for component in run.components}
    return (*run.components, *(component for component in run.found if component.kind not in stated))


@dataclass(frozen=True)
class MigrationRecord:
    """A migration in the lake: its name and its runs in the order of the manifest."""

    name: str
    runs: tuple[RunRecord, ...]


@dataclass(frozen=True)
class RunContent:
    """What the lake holds of a run's log.

    Attributes:
        points: Names of the parts with its points.
        issues: Names of the parts with its parse issues.
        reading: What the readers need to go on where they stopped, as they gave it; None where the log must be read
            whole.
    """

    points: tuple[str, ...]
    issues: tuple[str, ...]
    reading: dict[str, Any] | None = None


def run_folder(lake: Path, migration: str, run: str) -> Path:
    """Return where the parts of a run lie."""
    return lake / migration / run


def write_part(folder: Path, *tables: pa.Table) -> str:
    """Write points or issues as a new part, which appears whole or not at all, and return its name.

    Args:
        folder: Of the run.
        tables: Of one schema; each becomes a row group.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{secrets.token_hex(8)}.parquet"
    draft = folder / f".{name}.{os.getpid()}"
    schema = tables[0].schema
    # Texts recur, values do not; the schema that Arrow would add makes codes of texts when they are read.
    texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_dictionary(f.type)]
    whole = {f.name: "DELTA_BINARY_PACKED" for f in schema if pa.types.is_int64(f.type)}
    options: dict[str, Any] = {"use_dictionary": texts, "column_encoding": whole, "write_statistics": False}
    with pq.ParquetWriter(draft, schema, compression="zstd", store_schema=False, **options) as file:
        for table in tables:
            file.write_table(table)
    _put(draft, folder / name)
    return name


def _put(draft: Path, target: Path) -> None:
    """Bring a written file to its place once all of it is on the disk, so that no crash leaves a part of it there."""
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    draft.replace(target)


@contextmanager
def only_writer(lake: Path, migration: str) -> Iterator[None]:
    """Wait until no other process writes this migration; until the end of the block none does."""
    folder = lake / migration
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK_FILE).open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # gone with the process, however it ends
        yield


def read_part(folder: Path, name: str) -> pa.Table:
    """Return a part as a table of `POINT_SCHEMA` or `ISSUE_SCHEMA`."""
    table = pq.read_table(folder / name)
    return table.cast(POINT_SCHEMA if "metric_name" in table.column_names else ISSUE_SCHEMA)


def part_rows(folder: Path, name: str) -> int:
    """Return how many rows a part has."""
    return pq.read_metadata(folder / name).num_rows


def write_content(lake: Path, migration: str, run: str, content_hash: str, content: RunContent) -> None:
    """Say which parts hold the content of a run; the parts must be there already."""
    _write_text(_content_path(lake, migration, run, content_hash), json.dumps(asdict(content), ensure_ascii=False))


def read_content(lake: Path, migration: str, run: str, content_hash: str) -> RunContent:
    """Return which parts hold the content of a run.

    Raises:
        LakeError: If the list or one of the parts is missing or damaged.
    """
    path = _content_path(lake, migration, run, content_hash)
    content = _content_at(path)
    _check_parts(path.parent, (*content.points, *content.issues))
    return content


def holds(lake: Path, migration: str, run: str, content_hash: str) -> bool:
    """Tell whether the lake has the content of a run with all its parts."""
    try:
        read_content(lake, migration, run, content_hash)
    except (LakeError, OSError):
        return False
    return True


def left_to_go_on(lake: Path, migration: str, run: str, content_hash: str) -> dict[str, Any]:
    """Return what a pass left for the next one; nothing where that can't be used any more."""
    path = _content_path(lake, migration, run, content_hash)
    try:
        content = _content_at(path)
        _check_parts(path.parent, _parts_to_go_on(content))
    except (LakeError, OSError):
        return {}
    return content.reading or {}


def _content_at(path: Path) -> RunContent:
    before = (f"{path.stem}.parquet", f"{path.stem}.issues.parquet")
    if not path.exists() and (path.parent / before[0]).exists():
        # a lake of the time when a run was one file of points and one of issues
        return RunContent(before[:1], before[1:])
    try:
        data = json.loads(path.read_bytes())
        content = RunContent(tuple(data["points"]), tuple(data["issues"]), data["reading"])
        _parts_to_go_on(content)
    except FileNotFoundError:
        raise LakeError(path, "is missing") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LakeError(path, f"is damaged ({error})") from None
    return content


def _check_parts(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        try:
            with (folder / name).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - 8))
                end = file.read()
        except FileNotFoundError:
            raise LakeError(folder / name, "is missing") from None
        if end[4:] != _PARQUET_MAGIC or int.from_bytes(end[:4], "little") + 12 > size:
            raise LakeError(folder / name, "is cut off")


def write_run(lake: Path, migration: str, run: str, content_hash: str, points: pa.Table, issues: pa.Table) -> None:
    """Write a run that was read at once."""
    folder = run_folder(lake, migration, run)
    content = RunContent((write_part(folder, points),), (write_part(folder, issues),))
    write_content(lake, migration, run, content_hash, content)


def _content_path(lake: Path, migration: str, run: str, content_hash: str) -> Path:
    return run_folder(lake, migration, run) / f"{content_hash[:16]}.json"


def _write_text(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    # Half of a surrogate pair becomes the escape that JSON has for it.
    draft.write_bytes(text.encode("utf-8", "backslashreplace"))
    _put(draft, target)


def write_migration(lake: Path, record: MigrationRecord) -> bool:
    """Make `record` the current state of its migration.

    Returns:
        Whether anything differs from what was there.
    """
    target = lake / record.name / _MIGRATION_FILE
    text = json.dumps(asdict(record), indent=1, sort_keys=True, ensure_ascii=False)
    text = text.encode("utf-8", "replace").decode()  # it goes to the star, which has no halves of surrogate pairs
    if target.exists() and target.read_bytes() == text.encode():
        return False
    _write_text(target, text)
    for run in record.runs:
        _prune(_content_path(lake, record.name, run.name, run.content_hash))
    return True


def _prune(current: Path) -> None:
    """Delete all parts of a run but those of its current and its newest earlier content."""
    earlier = sorted((p for p in current.parent.glob("*.json") if p != current), key=lambda p: p.stat().st_mtime)
    for path in earlier[: max(0, len(earlier) - (_KEPT_VERSIONS - 1))]:
        path.unlink(missing_ok=True)
    needed: set[str] = set()
    for path in {current, *current.parent.glob("*.json")}:
        try:
            content = _content_at(path)
        except LakeError:
            if path == current:  # what it needs is not known: nothing is deleted
                return
            continue
        needed.update(content.points, content.issues, _parts_to_go_on(content))
    for path in current.parent.glob("*.parquet"):
        if path.name not in needed:
            path.unlink(missing_ok=True)


def _parts_to_go_on(content: RunContent) -> list[str]:
    logs: dict[str, Any] = (content.reading or {}).get("logs", {})
    return [name for state in logs.values() for name in (*state["points"], *state["issues"])]


def read_migration(lake: Path, name: str) -> MigrationRecord | None:
    """Return the current state of a migration; None where the lake has none of that name.

    Raises:
        LakeError: If the file is damaged.
    """
    path = lake / name / _MIGRATION_FILE
    if not path.exists():
        return None
    try:
        data: dict[str, Any] = json.loads(path.read_bytes())
        return MigrationRecord(data["name"], tuple(_run_record(run) for run in data["runs"]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LakeError(path, f"is damaged ({error})") from None


def _run_record(data: dict[str, Any]) -> RunRecord:
    """Return a run from its JSON; what a later version may have added is left out."""
    names = {known.name for known in fields(RunRecord)}
    known: dict[str, Any] = {k: v for k, v in data.items() if k in names}
    for key in ("components", "found"):
        known[key] = tuple(Component(**c) for c in data.get(key, ()))
    return RunRecord(**known)


def read_migrations(lake: Path) -> Iterator[MigrationRecord]:
    """Yield every migration of the lake, in the order of names."""
    for path in sorted(lake.glob(f"*/{_MIGRATION_FILE}")):
        record = read_migration(lake, path.parent.name)
        if record is not None:
            yield record
