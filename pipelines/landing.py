"""From landing to the lake: find the migrations, read the logs that changed, write them down.

Here belongs the way from a manifest to Parquet files. Formats belong to `pipelines.ingest`, the star to
`warehouse.load`.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path

from pipelines.ingest.base import LogError, issues_table
from pipelines.ingest.registry import detect, log_files, read_log
from pipelines.manifest import MANIFEST_NAME, Manifest, ManifestError, RunEntry, infer_manifest, read_manifest
from warehouse import lake as lake_files
from warehouse.lake import Component, MigrationRecord, RunRecord

# Part of the test whether a stored log must be read again: raise it when a reader's result changes.
READER_VERSION = "1"
_LOOSE = "landing"
_PARALLEL_FROM = 64


@dataclass(frozen=True)
class Failure:
    """Something in landing that could not be taken in: whose it is, and the sentence that says why."""

    migration: str
    run: str
    message: str


@dataclass(frozen=True)
class IngestResult:
    """What taking in one migration did.

    Attributes:
        migration: Its name.
        read_runs: Runs whose log was read.
        kept_runs: Runs whose log had not changed.
        issue_count: Pieces of the read logs that could not be read.
        point_count: Points of the read logs.
        failures: What could not be taken in; stored runs stay as they were.
        notes: Things to know, for example that pairs were inferred.
        is_changed: The lake differs from before.
    """

    migration: str
    read_runs: tuple[str, ...]
    kept_runs: tuple[str, ...]
    issue_count: int
    point_count: int
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    is_changed: bool


def find_manifests(landing: Path) -> tuple[list[Manifest], list[Failure]]:
    """Return the migrations that lie in `landing`, and what lies there but can't be used.

    A folder with a migration.yaml is what that file says; another folder is a migration whose members
    (folders or files that hold a log) are its runs; logs that lie loose in landing are one migration.
    """
    manifests: list[Manifest] = []
    failures: list[Failure] = []
    if not landing.is_dir():
        return [], []
    candidates = sorted(p for p in landing.iterdir() if p.is_dir() and not p.name.startswith("."))
    for folder in [*candidates, landing]:
        try:
            manifest = _manifest_of(folder, is_root=folder == landing)
        except ManifestError as error:
            failures.append(Failure(folder.name, "", str(error)))
            continue
        if manifest is None:
            continue
        clash = next((m for m in manifests if m.migration == manifest.migration), None)
        if clash:
            message = f"{folder}: the migration {manifest.migration} is already declared in {clash.folder}."
            failures.append(Failure(manifest.migration, "", message))
            continue
        manifests.append(manifest)
    return manifests, failures


def _manifest_of(folder: Path, *, is_root: bool) -> Manifest | None:
    path = folder / MANIFEST_NAME
    if path.is_file():
        return read_manifest(path)
    entries = sorted(p for p in folder.iterdir() if not p.name.startswith("."))
    members = {_run_name(p): p for p in entries if (p.is_file() if is_root else True) and _is_log(p)}
    if not members:
        return None
    return infer_manifest(Path(_LOOSE) if is_root else folder, members)


def _is_log(path: Path) -> bool:
    try:
        detect(path)
    except (LogError, OSError):
        return False
    return True


def _run_name(path: Path) -> str:
    name = path.name
    if path.is_file():
        for suffix in (".gz", ".jsonl", ".json", ".log", ".txt", ".csv", ".tsv", ".parquet", ".db", ".wandb"):
            name = name.removesuffix(suffix)
    return name.replace(" ", "_")


def ingest_migration(manifest: Manifest, lake: Path, report: Callable[[str], None] | None = None) -> IngestResult:
    """Take the logs of one migration into the lake; only logs whose content changed are read.

    Args:
        manifest: The migration.
        lake: The lake's folder.
        report: Called with the name of each run when it is done.
    """
    known = {run.name: run for run in (lake_files.read_migration(lake, manifest.migration) or _none(manifest)).runs}
    jobs, failures = _jobs(manifest, known)
    outcomes = list(_read_all([job for job in jobs if job.must_read], lake, report))
    fresh = {o.run: o for o in outcomes}
    failures += [Failure(manifest.migration, o.run, o.error) for o in outcomes if o.error]
    failed = {f.run for f in failures}
    records = []
    for entry in manifest.runs:
        if entry.name in failed:
            if entry.name in known:  # what was stored stays
                records.append(known[entry.name])
            continue
        job = next(j for j in jobs if j.entry.name == entry.name)
        records.append(_record(manifest, job, fresh.get(entry.name), known.get(entry.name)))
    is_changed = bool(records) and lake_files.write_migration(lake, MigrationRecord(manifest.migration, tuple(records)))
    read = [o for o in outcomes if not o.error]
    return IngestResult(
        migration=manifest.migration,
        read_runs=tuple(o.run for o in read),
        kept_runs=tuple(j.entry.name for j in jobs if not j.must_read),
        issue_count=sum(o.issue_count for o in read),
        point_count=sum(o.point_count for o in read),
        failures=tuple(failures),
        notes=(*_notes(manifest), *(sentence for record in records for sentence in conflicts(record))),
        is_changed=is_changed,
    )


@dataclass(frozen=True)
class _Job:
    migration: str
    entry: RunEntry
    files: tuple[Path, ...]
    content_hash: str
    must_read: bool


@dataclass(frozen=True)
class _Outcome:
    run: str
    log_format: str = ""
    log_precision: str = ""
    framework: str = ""
    status: str = "unknown"
    metadata: Mapping[str, str] = field(default_factory=dict)
    issue_count: int = 0
    point_count: int = 0
    error: str = ""


def _none(manifest: Manifest) -> MigrationRecord:
    return MigrationRecord(manifest.migration, ())


def _jobs(manifest: Manifest, known: dict[str, RunRecord]) -> tuple[list[_Job], list[Failure]]:
    jobs: list[_Job] = []
    failures: list[Failure] = []
    for entry in manifest.runs:
        try:
            paths = resolve_log(manifest, entry)
            digest = content_hash(paths, entry.columns)
        except (ManifestError, LogError, OSError) as error:
            failures.append(Failure(manifest.migration, entry.name, str(error)))
            continue
        old = known.get(entry.name)
        same = old is not None and old.content_hash == digest and old.reader_version == READER_VERSION
        jobs.append(_Job(manifest.migration, entry, tuple(paths), digest, not same))
    return jobs, failures


def resolve_log(manifest: Manifest, entry: RunEntry) -> list[Path]:
    """Return the files or folders that the log of a run names.

    Raises:
        ManifestError: If there is none.
    """
    pattern = Path(entry.log).expanduser()
    path = pattern if pattern.is_absolute() else manifest.folder / pattern
    if path.exists():
        return [path]
    root = Path(path.anchor) if path.is_absolute() else Path()
    found = sorted(root.glob(str(path.relative_to(root)))) if any(c in entry.log for c in "*?[") else []
    if not found:
        raise ManifestError(
            f"{manifest.folder / MANIFEST_NAME}: run {entry.name} names the log {entry.log}, but there is no such "
            "file; give a path or glob relative to the manifest."
        )
    return found


def content_hash(paths: Iterable[Path], columns: tuple[str, ...] = ()) -> str:
    """Return the SHA-256 over names and bytes of the files of a log."""
    digest = hashlib.sha256("\x1f".join(columns).encode())
    for path in paths:
        for file in log_files(path):
            digest.update(file.name.encode() + b"\0")
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _read_all(jobs: list[_Job], lake: Path, report: Callable[[str], None] | None) -> Iterable[_Outcome]:
    if len(jobs) < _PARALLEL_FROM:
        for job in jobs:
            outcome = _read_one(job, lake)
            if report:
                report(job.entry.name)
            yield outcome
        return
    # spawn: a forked copy of a process with DuckDB or Dagster threads in it can hang.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for outcome in pool.map(_read_one, jobs, [lake] * len(jobs), chunksize=8):
            if report:
                report(outcome.run)
            yield outcome


def _read_one(job: _Job, lake: Path) -> _Outcome:
    try:
        log = read_log(list(job.files), columns=job.entry.columns or None, run=job.entry.name)
    except (LogError, OSError) as error:
        return _Outcome(job.entry.name, error=str(error))
    lake_files.write_run(lake, job.migration, job.entry.name, job.content_hash, log.points, issues_table(log.issues))
    return _Outcome(
        run=job.entry.name,
        log_format=log.log_format,
        log_precision=log.log_precision,
        framework=log.framework,
        status=log.status,
        metadata={key: str(value) for key, value in log.metadata.items()},
        issue_count=len(log.issues),
        point_count=log.points.num_rows,
    )


def _record(manifest: Manifest, job: _Job, fresh: _Outcome | None, known: RunRecord | None) -> RunRecord:
    """Return what the lake is to know of a run: the manifest's word, and the log's as read now or before."""
    entry = job.entry
    if fresh is not None:
        metadata = fresh.metadata
        read = RunRecord(
            name=entry.name,
            role=entry.role,
            source=entry.log,
            content_hash=job.content_hash,
            log_format=fresh.log_format,
            log_precision=fresh.log_precision,
            framework=fresh.framework,
            status=fresh.status,
            config_hash=metadata.get("config_hash", ""),
            recipe={key: metadata[key] for key in _TOLD if key in metadata},
            found=components_of(metadata),
            reader_version=READER_VERSION,
        )
    else:
        assert known is not None, "a run that is not read again is known"
        read = known
    told = {key: value for key, value in read.recipe.items() if key in _TOLD}
    return replace(
        read,
        role=entry.role,
        source=entry.log,
        baseline=entry.baseline,
        replicate_of=entry.of,
        how_paired=manifest.how_paired,
        components=entry.components,
        recipe={**told, **manifest.recipe, **entry.recipe},
    )


# Facts of the recipe that a log may tell.
_TOLD = ("model", "seed")
# How the facts that logs tell are named as components: kind, and name where the fact is a version.
_COMPONENTS: Mapping[str, tuple[str, str]] = {
    "accelerator": ("hardware", ""),
    "driver": ("driver", "driver"),
    "cuda": ("compute_stack", "CUDA"),
    "cann": ("compute_stack", "CANN"),
    "rocm": ("compute_stack", "ROCm"),
    "verl": ("framework", "verl"),
    "trl": ("framework", "trl"),
    "rollout_engine": ("rollout_engine", ""),
    "vllm": ("rollout_engine", "vllm"),
    "sglang": ("rollout_engine", "sglang"),
    "vllm_ascend": ("library", "vllm_ascend"),
    "attention_kernel": ("attention_kernel", ""),
    "collectives": ("collectives", ""),
    "precision": ("precision", ""),
    "torch": ("library", "torch"),
    "torch_npu": ("library", "torch_npu"),
    "transformers": ("library", "transformers"),
    "deterministic": ("switch", "deterministic"),
}


def components_of(metadata: Mapping[str, str]) -> tuple[Component, ...]:
    """Return the components that the facts of a log name, one for each fact that is one."""
    found = []
    for key, value in sorted(metadata.items()):
        kind, name = _COMPONENTS.get(key, ("", ""))
        # An engine whose version is told needs no second row with its bare name.
        if kind and not (not name and value in metadata):
            found.append(Component(kind, name or value, value if name else ""))
    return tuple(found)


def conflicts(run: RunRecord) -> list[str]:
    """Return a sentence for each kind of component on which manifest and log disagree."""
    sentences = []
    for stated in run.components:
        told = [c for c in run.found if c.kind == stated.kind]
        if told and not any(_agree(stated, c) for c in told):
            names = ", ".join(f"{c.name} {c.version}".strip() for c in told)
            says = f"{stated.name} {stated.version}".strip()
            sentences.append(f"{run.name}: the manifest says {stated.kind} {says}, the log {names}; the manifest wins.")
    return sentences


def _agree(stated: Component, told: Component) -> bool:
    a, b = stated.name.casefold(), told.name.casefold()
    same_version = not stated.version or not told.version or stated.version == told.version
    return (a in b or b in a) and same_version


def _notes(manifest: Manifest) -> tuple[str, ...]:
    if manifest.how_paired != "inferred":
        return ()
    baselines = [run.name for run in manifest.runs if run.role == "baseline"]
    if baselines:
        return (f"{manifest.migration}: no manifest; inferred from the names that {baselines[0]} is the baseline.",)
    return (
        f"{manifest.migration}: no manifest, and the names don't tell which run is the baseline; no pair was made. "
        f"Say it in {MANIFEST_NAME}, or with `firstdrift add`.",
    )
