"""Writing down in landing what people declare: a run, a folder with a manifest, a pair.

Here belongs which file it goes into and what else that file must say. The form of a manifest belongs to
`pipelines.manifest`.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.discovery import LOOSE, find_manifests, inferred_manifest, resolve_log
from pipelines.manifest import (
    MANIFEST_NAME,
    UNPAIRED,
    Manifest,
    ManifestError,
    RunEntry,
    checked_name,
    declared_migration,
    read_manifest,
    write_include,
    write_runs,
)


@dataclass(frozen=True)
class Declared:
    """What was written.

    Attributes:
        path: The manifest in landing.
        migration: Its migration.
        runs: The runs that it names now.
        unpaired: Those of them that are in no pair.
        missing: Names that runs refer to and that are still to be added; "baseline" where there is none yet.
    """

    path: Path
    migration: str
    runs: tuple[str, ...]
    unpaired: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def add_run(landing: Path, migration: str, entry: RunEntry, recipe: dict[str, str]) -> Declared:
    """Add a run to a migration, or replace the run of that name.

    Args:
        landing: The landing folder.
        migration: The migration, new or not.
        entry: The run, with the absolute path or pattern of its log.
        recipe: What to add to the recipe of the migration.

    Raises:
        ManifestError: If a name can't be used, or the manifest would not be valid.
    """
    checked_name("The migration", migration)
    checked_name("The run", entry.name)
    path = _file_of(landing, migration)
    entry = _beside(entry, path.parent)
    # A manifest names every run of its folder, or the others would leave the warehouse.
    lying = [run for run in _inferred_runs(path, landing) if run.log != entry.log]
    return _declared(path, write_runs(path, migration, [*lying, entry], recipe))


def add_folder(landing: Path, folder: Path) -> Declared:
    """Add a folder that holds a manifest; what it says is read anew whenever logs are taken in.

    Args:
        landing: The landing folder.
        folder: The folder, or the manifest itself.

    Raises:
        ManifestError: If there is no manifest or it is not valid, or a log that it names is not there.
    """
    source = manifest_in(folder)
    if not source.is_file():
        raise ManifestError(
            f"{folder}: no {MANIFEST_NAME} lies there; name the runs one by one: firstdrift add MIGRATION RUN LOG."
        )
    manifest = read_manifest(source)
    absent = [f"{run.name} ({run.log})" for run in manifest.runs if not _has_log(manifest, run)]
    if absent:
        raise ManifestError(
            f"{source}: there is no log of {', '.join(absent)}; give paths or globs relative to the manifest."
        )
    if source.resolve().is_relative_to(landing.resolve()):
        raise ManifestError(f"{source} lies in landing already: `firstdrift run` takes it in as it is.")
    path = _file_of(landing, manifest.migration)
    if not path.is_file() and _inferred_runs(path, landing):
        raise ManifestError(
            f"{path.parent} holds logs of its own, which would leave the warehouse; move them away, or give the "
            f"migration in {source} another name."
        )
    write_include(path, source)
    return _declared(path, manifest)


def manifest_in(folder: Path) -> Path:
    """Return the manifest of a folder; a file is one itself."""
    return folder / MANIFEST_NAME if folder.is_dir() else folder


def declare_pair(landing: Path, migration: str, baseline: str, candidate: str) -> Declared:
    """Write down that `candidate` is judged against `baseline`; every other run stays what it was.

    Args:
        landing: The landing folder.
        migration: The migration that holds both runs.
        baseline: Name of the baseline run.
        candidate: Name of the candidate run.

    Raises:
        ManifestError: If there is no such migration or run, or its manifest is not valid or lies elsewhere.
    """
    checked_name("The migration", migration)
    path = _file_of(landing, migration)
    runs = read_manifest(path).runs if path.is_file() else tuple(_inferred_runs(path, landing))
    if not runs:
        known = ", ".join(m.migration for m in find_manifests(landing).manifests) or "none"
        raise ManifestError(f"There is no migration {migration} in {landing}; there are: {known}.")
    names = [run.name for run in runs]
    for name in (baseline, candidate):
        if name not in names:
            raise ManifestError(f"{migration} has no run {name}; it has {', '.join(names)}.")
    if baseline == candidate:
        raise ManifestError(f"{baseline} can't be judged against itself; name two runs.")
    paired = [_in_pair(run, baseline, candidate) for run in runs]
    if not any(run.role == "baseline" for run in paired):
        paired = [_as_baseline(run) if run.name == baseline else run for run in paired]
    return _declared(path, write_runs(path, migration, paired, {}))


def _in_pair(run: RunEntry, baseline: str, candidate: str) -> RunEntry:
    if run.name == candidate:
        return replace(run, role="candidate", baseline=baseline, of="")
    # A replicate goes on telling what equal runs differ by, and a run that is judged itself goes on being judged.
    if run.name == baseline and run.role != "replicate" and run.baseline in ("", UNPAIRED, candidate):
        return _as_baseline(run)
    return _pinned(run)


def _as_baseline(run: RunEntry) -> RunEntry:
    return replace(run, role="baseline", baseline="", of="")


def _pinned(run: RunEntry) -> RunEntry:
    """Return a run that says itself that it is in no pair, whatever baselines the manifest gets."""
    return replace(run, baseline=UNPAIRED) if run.role == "candidate" and not run.baseline else run


def _file_of(landing: Path, migration: str) -> Path:
    """Return the manifest file that declares a migration, or in which it is to be declared."""
    own = landing / migration / MANIFEST_NAME
    others = sorted(p for p in landing.glob(f"*/{MANIFEST_NAME}") if not p.parent.name.startswith("."))
    for path in (own, landing / MANIFEST_NAME, *others):
        if path.is_file() and declared_migration(path) == migration:
            return path
    if migration == LOOSE and not own.parent.is_dir():
        return landing / MANIFEST_NAME
    return own


def _inferred_runs(path: Path, landing: Path) -> list[RunEntry]:
    """Return the runs that lie where a manifest is to be written, as they are without it."""
    if path.is_file() or not path.parent.is_dir():
        return []
    manifest = inferred_manifest(path.parent, is_root=path.parent == landing)
    return [_pinned(_beside(run, path.parent)) for run in manifest.runs] if manifest else []


def _beside(run: RunEntry, folder: Path) -> RunEntry:
    """Return a run whose log is named relative to the manifest where it lies below it."""
    log = Path(run.log)
    is_below = log.is_absolute() and log.is_relative_to(folder.absolute())
    return replace(run, log=log.relative_to(folder.absolute()).as_posix()) if is_below else run


def _has_log(manifest: Manifest, run: RunEntry) -> bool:
    try:
        return bool(resolve_log(manifest, run))
    except ManifestError:
        return False


def _declared(path: Path, manifest: Manifest) -> Declared:
    names = [run.name for run in manifest.runs]
    named = {run.baseline or run.of for run in manifest.runs} - {""}
    unpaired = [r.name for r in manifest.runs if r.role == "candidate" and not r.baseline and r.name not in named]
    missing = sorted(named - set(names))
    if not any(run.role == "baseline" for run in manifest.runs):
        missing.insert(0, "baseline")
    return Declared(path, manifest.migration, tuple(names), tuple(unpaired), tuple(missing))
