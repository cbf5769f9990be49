"""From landing to the lake: read the logs that changed, write them down.

Here belongs the way from a manifest to the records of its runs. Finding the manifests belongs to
`pipelines.discovery`, reading one run to `pipelines.intake`, formats to `pipelines.ingest`, the star to
`warehouse.load`.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from pipelines.discovery import Failure, resolve_log
from pipelines.intake import Job, Outcome, fingerprints, hash_of, sentence, take_in
from pipelines.manifest import MANIFEST_NAME, Manifest
from pipelines.run_facts import TOLD, components_of, conflicts, recipe_of, source_of
from warehouse import lake as lake_files
from warehouse.lake import LakeError, MigrationRecord, RunRecord
from warehouse.wording import counted

# Part of the test whether a stored log must be read again: raise it when a reader's result or its state changes.
READER_VERSION = "4"
_PARALLEL_FROM = 64


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


def ingest_migration(manifest: Manifest, lake: Path, report: Callable[[str], None] | None = None) -> IngestResult:
    """Take the logs of one migration into the lake; only logs whose content changed are read.

    Args:
        manifest: The migration.
        lake: The lake's folder.
        report: Called with the name of each run when it is done.
    """
    try:
        with lake_files.only_writer(lake, manifest.migration):
            return _ingest(manifest, lake, report)
    except Exception as error:  # other migrations go on
        failure = Failure(manifest.migration, "", sentence(error, f"migration {manifest.migration}"))
        return IngestResult(manifest.migration, (), (), 0, 0, (failure,), (), False)


def _ingest(manifest: Manifest, lake: Path, report: Callable[[str], None] | None) -> IngestResult:
    known = {run.name: run for run in _stored(manifest, lake)}
    jobs, failures = _jobs(manifest, known, lake)
    outcomes = list(_read_all([job for job in jobs if job.must_read], lake, report))
    fresh = {o.run: o for o in outcomes}
    failures += [Failure(manifest.migration, o.run, o.error) for o in outcomes if o.error]
    lost = _lost(manifest, known)
    failures += [Failure(manifest.migration, name, text) for name, text in lost.items()]
    failed = {f.run for f in failures}
    records = [known[name] for name in lost]  # what was stored stays
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
        notes=(
            *_notes(manifest),
            *(text for name, text in manifest.unread.items() if name not in lost),
            *(text for record in records for text in conflicts(record)),
            *(text for outcome in read for text in _late_beginnings(outcome)),
            *(_disagreement(manifest, outcome) for outcome in read if outcome.disagreement_count),
        ),
        is_changed=is_changed,
    )


def _lost(manifest: Manifest, known: dict[str, RunRecord]) -> dict[str, str]:
    """Return the sentences about logs that were read once and that nobody can read any more."""
    named = {run.name for run in manifest.runs}
    return {name: text for name, text in manifest.unread.items() if name in known and name not in named}


def _stored(manifest: Manifest, lake: Path) -> tuple[RunRecord, ...]:
    try:
        record = lake_files.read_migration(lake, manifest.migration)
    except LakeError:  # all that can be had is made anew from the logs
        return ()
    return record.runs if record else ()


def _jobs(manifest: Manifest, known: dict[str, RunRecord], lake: Path) -> tuple[list[Job], list[Failure]]:
    jobs: list[Job] = []
    failures: list[Failure] = []
    for entry in manifest.runs:
        try:
            paths = resolve_log(manifest, entry)
            files = fingerprints(paths)
            digest = hash_of(files, entry.columns)
        except Exception as error:  # other runs go on
            message = sentence(error, f"{manifest.folder}: run {entry.name}")
            failures.append(Failure(manifest.migration, entry.name, message))
            continue
        old = known.get(entry.name)
        readable = old if old is not None and old.reader_version == READER_VERSION else None
        if readable and not lake_files.holds(lake, manifest.migration, entry.name, readable.content_hash):
            readable = None
        job = Job(
            migration=manifest.migration,
            entry=entry,
            paths=tuple(paths),
            files=files,
            content_hash=digest,
            known_hash=readable.content_hash if readable else "",
        )
        jobs.append(job)
    return jobs, failures


def _read_all(jobs: list[Job], lake: Path, report: Callable[[str], None] | None) -> Iterable[Outcome]:
    if len(jobs) < _PARALLEL_FROM:
        for job in jobs:
            outcome = take_in(job, lake)
            if report:
                report(job.entry.name)
            yield outcome
        return
    # spawn: a forked copy of a process with DuckDB or Dagster threads in it can hang.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for outcome in pool.map(take_in, jobs, [lake] * len(jobs), chunksize=8):
            if report:
                report(outcome.run)
            yield outcome


def _record(manifest: Manifest, job: Job, fresh: Outcome | None, known: RunRecord | None) -> RunRecord:
    """Return what the lake is to know of a run: the manifest's word, and the log's as read now or before."""
    entry = job.entry
    if fresh is not None:
        metadata = fresh.metadata
        read = RunRecord(
            name=entry.name,
            role=entry.role,
            source=source_of(entry.log, manifest.folder),
            content_hash=job.content_hash,
            log_format=fresh.log_format,
            log_precision=fresh.log_precision,
            precisions=dict(fresh.precisions),
            framework=fresh.framework,
            status=fresh.status,
            config_hash=metadata.get("config_hash", ""),
            recipe={key: metadata[key] for key in TOLD if key in metadata},
            found=components_of(metadata),
            reader_version=READER_VERSION,
        )
    else:
        assert known is not None, "a run that is not read again is known"
        read = known
    told = {key: value for key, value in read.recipe.items() if key in TOLD}
    return replace(
        read,
        role=entry.role,
        source=source_of(entry.log, manifest.folder),
        baseline=entry.baseline,
        replicate_of=entry.of,
        how_paired=manifest.how_paired,
        components=entry.components,
        recipe={**told, **recipe_of({**manifest.recipe, **entry.recipe})},
    )


def _disagreement(manifest: Manifest, outcome: Outcome) -> str:
    places = counted(outcome.disagreement_count, "place")
    return (
        f"{manifest.migration}/{outcome.run}: its logs differ in {places}; `firstdrift query trackers_disagree` "
        "names the metrics."
    )


def _late_beginnings(outcome: Outcome) -> list[str]:
    return [
        f"{outcome.run}: the log begins at step {step} of the axis {axis}: what came before is not in it."
        for axis, step in outcome.late_beginnings.items()
    ]


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
