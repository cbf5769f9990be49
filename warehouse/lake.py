"""The lake: one immutable Parquet file for each run and content, and one JSON file for each migration.

The lake is the ground truth: the warehouse can be rebuilt from it alone. Reading logs and loading the
star do not belong here.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_MIGRATION_FILE = "migration.json"
_KEPT_VERSIONS = 2


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
        log_precision: How precisely the log keeps values.
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


def all_components(run: RunRecord) -> tuple[Component, ...]:
    """Return what a run ran on: the manifest's word, and the log's for kinds that the manifest leaves out."""
    stated = {component.kind for component in run.components}
    return (*run.components, *(component for component in run.found if component.kind not in stated))


@dataclass(frozen=True)
class MigrationRecord:
    """A migration in the lake: its name and its runs in the order of the manifest."""

    name: str
    runs: tuple[RunRecord, ...]


def points_path(lake: Path, migration: str, run: str, content_hash: str) -> Path:
    """Return where the points of a run with this content lie."""
    return lake / migration / run / f"{content_hash[:16]}.parquet"


def issues_path(lake: Path, migration: str, run: str, content_hash: str) -> Path:
    """Return where the parse issues of a run with this content lie."""
    return lake / migration / run / f"{content_hash[:16]}.issues.parquet"


def write_run(lake: Path, migration: str, run: str, content_hash: str, points: pa.Table, issues: pa.Table) -> None:
    """Write the points and issues of a run; each file appears whole or not at all."""
    target = points_path(lake, migration, run, content_hash)
    target.parent.mkdir(parents=True, exist_ok=True)
    # The points come last: their file is the sign that both are there.
    _write_whole(issues, issues_path(lake, migration, run, content_hash))
    _write_whole(points, target)


def _write_whole(table: pa.Table, target: Path) -> None:
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    pq.write_table(table, draft, compression="zstd")
    draft.replace(target)


def write_migration(lake: Path, record: MigrationRecord) -> bool:
    """Make `record` the current state of its migration.

    Returns:
        Whether anything differs from what was there.
    """
    target = lake / record.name / _MIGRATION_FILE
    text = json.dumps(asdict(record), indent=1, sort_keys=True, ensure_ascii=False)
    if target.exists() and target.read_text(encoding="utf-8") == text:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(target)
    for run in record.runs:
        _prune(points_path(lake, record.name, run.name, run.content_hash))
    return True


def _prune(current: Path) -> None:
    """Delete all but the current and the newest earlier content of a run."""
    versions = [p for p in current.parent.glob("*.parquet") if not p.name.endswith(".issues.parquet")]
    earlier = sorted((p for p in versions if p != current), key=lambda p: p.stat().st_mtime)
    for path in earlier[: max(0, len(earlier) - (_KEPT_VERSIONS - 1))]:
        path.with_suffix(".issues.parquet").unlink(missing_ok=True)
        path.unlink(missing_ok=True)


def read_migration(lake: Path, name: str) -> MigrationRecord | None:
    """Return the current state of a migration; None where the lake has none of that name."""
    path = lake / name / _MIGRATION_FILE
    if not path.exists():
        return None
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    runs = tuple(
        RunRecord(**{**run, **{k: tuple(Component(**c) for c in run.get(k, ())) for k in ("components", "found")}})
        for run in data["runs"]
    )
    return MigrationRecord(data["name"], runs)


def read_migrations(lake: Path) -> Iterator[MigrationRecord]:
    """Yield every migration of the lake, in the order of names."""
    for path in sorted(lake.glob(f"*/{_MIGRATION_FILE}")):
        record = read_migration(lake, path.parent.name)
        if record is not None:
            yield record
