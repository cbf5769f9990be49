"""What lies in landing: which folders are migrations, what their runs are called, and what nobody can read.

Here belongs looking at names and asking the readers. What a manifest says belongs to `pipelines.manifest`, taking
logs in to `pipelines.landing`.
"""

import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pipelines.ingest import huggingface, tensorboard, wandb
from pipelines.ingest.base import ClosedLogError, LogError
from pipelines.ingest.registry import SIDECARS, detect
from pipelines.intake import sentence
from pipelines.manifest import MANIFEST_NAME, Manifest, ManifestError, RunEntry, infer_manifest, read_manifest
from warehouse.settings import expanded

LOOSE = "landing"
"""The migration of the logs that lie in landing itself."""

_LOG_SUFFIXES = (".gz", ".jsonl", ".json", ".log", ".txt", ".csv", ".tsv", ".parquet", ".db", ".wandb")
# What lies beside logs and is none, by its name: nobody expects it to be read.
_NO_LOG = re.compile(
    r".*\.(?:md|rst|html|pdf|png|jpe?g|svg|gif|ya?ml|toml|ini|cfg|conf|env|lock|diff|patch|py|pyc|ipynb|sh|bash|sbatch|"
    r"slurm|sql|pt|pth|bin|safetensors|npy|npz|pkl|tmp|swp)|.*-(?:wal|shm)|(?:readme|license|notice|makefile|dockerfile)"
    r"(?:\..*)?|requirements.*\.txt|(?:wandb-metadata|wandb-summary|swanlab-metadata|env|config)\.json",
    re.IGNORECASE,
)
# A folder may be a whole home: so many files are looked at before it is said to hold what could be a log.
_LOOKED_AT = 1000
_SHOWN = 3
# Formats that tell of several logs that they are one run: event files of one folder, checkpoints, one run id.
_ONE_RUN = (tensorboard, huggingface, wandb)


@dataclass(frozen=True)
class Failure:
    """Something in landing that could not be taken in: whose it is, and the sentence that says why."""

    migration: str
    run: str
    message: str


@dataclass(frozen=True)
class Found:
    """What lies in landing.

    Attributes:
        manifests: The migrations.
        failures: What can't be used at all.
        notes: A sentence for each file or folder that was passed over and could be meant as a log. What lies beside
            the runs of a folder without a manifest is in `Manifest.unread`.
    """

    manifests: tuple[Manifest, ...] = ()
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Members:
    """The runs of a folder that has no manifest.

    Attributes:
        logs: Path of each log by run name.
        unread: A sentence for each file or folder that could be meant as a log, and that no reader knows, by the name
            that its run would have.
    """

    logs: dict[str, Path]
    unread: dict[str, str]


def find_manifests(landing: Path) -> Found:
    """Return the migrations that lie in `landing`, what lies there but can't be used, and what was passed over.

    A folder with a migration.yaml is what that file says; another folder is a migration whose members
    (folders or files that hold a log) are its runs; logs that lie loose in landing are one migration.
    """
    manifests: list[Manifest] = []
    failures: list[Failure] = []
    notes: list[str] = []
    if not landing.is_dir():
        return Found()
    try:
        folders = sorted(p for p in landing.iterdir() if p.is_dir() and not p.name.startswith("."))
    except OSError as error:
        return Found(failures=(Failure(landing.name, "", sentence(error, str(landing))),))
    for folder in [*folders, landing]:
        try:
            manifest, passed_over = _manifest_of(folder, is_root=folder == landing)
        except Exception as error:  # other migrations go on
            failures.append(Failure(folder.name, "", sentence(error, str(folder))))
            continue
        notes += passed_over
        if manifest is None:
            continue
        clash = next((m for m in manifests if m.migration == manifest.migration), None)
        if clash:
            message = f"{folder}: the migration {manifest.migration} is already declared in {clash.folder}."
            failures.append(Failure(manifest.migration, "", message))
            continue
        manifests.append(manifest)
    return Found(tuple(manifests), tuple(failures), tuple(notes))


def inferred_manifest(folder: Path, *, is_root: bool = False) -> Manifest | None:
    """Return the manifest of a folder that has none; None where no log lies there.

    Args:
        folder: A folder of landing.
        is_root: It is landing itself, whose folders are migrations of their own.

    Raises:
        ManifestError: If a name can't be used.
    """
    members = members_of(folder, files_only=is_root)
    return _inferred(folder, members, is_root=is_root) if members.logs else None


def members_of(folder: Path, *, files_only: bool = False) -> Members:
    """Return the runs of a folder that has no manifest: each file or folder in it that holds a log.

    Event files, checkpoints and sessions that are one run by the word of their tracker are one member.

    Args:
        folder: The folder.
        files_only: Folders in it are no runs.

    Raises:
        ManifestError: If two logs would have one name.
    """
    paths = sorted(p for p in folder.iterdir() if not p.name.startswith(".") and not (files_only and p.is_dir()))
    logs: dict[str, Path] = {}
    unread: dict[str, str] = {}
    readers = set()
    for path in paths:
        try:
            readers.add(detect(path).NAME)
        except (LogError, OSError) as error:
            could_be_log = _could_be_log(path)
            if not (could_be_log and isinstance(error, ClosedLogError)):  # taking that in says why it can't be opened
                if could_be_log:
                    name = run_name(path)
                    unread[path.name if name in unread else name] = _sentence(path, error)
                continue
        name = run_name(path)
        if name in logs:
            raise ManifestError(
                f"{folder}: {logs[name].name} and {path.name} would both be the run {name}; put the logs of one "
                f"run into a folder of their own, rename one, or name the runs in a {MANIFEST_NAME}."
            )
        logs[name] = path
    if not files_only and len(readers) == 1 and _is_one_run(folder, list(logs.values()), readers.pop()):
        return Members({run_name(folder): folder}, unread)
    return Members(logs, unread)


def resolve_log(manifest: Manifest, entry: RunEntry) -> list[Path]:
    """Return the files or folders that the log of a run names.

    Raises:
        ManifestError: If there is none.
    """
    try:
        pattern = expanded(Path(entry.log))
        path = pattern if pattern.is_absolute() else manifest.folder / pattern
        if path.exists():
            return [path]
        root = Path(path.anchor) if path.is_absolute() else Path()
        found = sorted(root.glob(str(path.relative_to(root)))) if any(c in entry.log for c in "*?[") else []
    except (FileNotFoundError, ValueError, re.error) as error:
        raise ManifestError(
            f"{manifest.folder / MANIFEST_NAME}: run {entry.name} names the log {entry.log!r}, which is no path and no "
            f"pattern ({error}); give a path or glob relative to the manifest."
        ) from None
    if not found:
        raise ManifestError(
            f"{manifest.folder / MANIFEST_NAME}: run {entry.name} names the log {entry.log}, but there is no such "
            "file; give a path or glob relative to the manifest."
        )
    return found


def run_name(path: Path) -> str:
    """Return what the run of a log is called that nobody named."""
    name = path.name
    if path.is_file():
        for suffix in _LOG_SUFFIXES:
            name = name.removesuffix(suffix)
    return name.replace(" ", "_")


def _manifest_of(folder: Path, *, is_root: bool) -> tuple[Manifest | None, list[str]]:
    path = folder / MANIFEST_NAME
    if path.is_file():
        manifest = read_manifest(path)
        return manifest, _unnamed(manifest) if manifest.folder == folder and not is_root else []
    members = members_of(folder, files_only=is_root)
    if members.logs:
        return _inferred(folder, members, is_root=is_root), []
    if is_root:
        return None, list(members.unread.values())
    if members.unread:
        names = sorted(p.name for p in folder.iterdir() if not p.name.startswith(".") and _could_be_log(p))
        names = names[:_SHOWN] + ["..."] * (len(names) > _SHOWN)
        raise ManifestError(
            f"{folder}: no reader knows anything that lies there ({', '.join(names)}); is it cut off, or no log? "
            f"`firstdrift inspect {folder}` tells more."
        )
    return None, [] if any(folder.iterdir()) else [f"{folder}: the folder is empty; nothing was taken in."]


def _unnamed(manifest: Manifest) -> list[str]:
    """Return a sentence for each log that lies beside a manifest and belongs to none of its runs."""
    named: list[Path] = []
    for run in manifest.runs:
        try:
            named += resolve_log(manifest, run)
        except ManifestError:  # told when the run is to be read
            continue
    paths = sorted(p for p in manifest.folder.iterdir() if not p.name.startswith("."))
    return [
        f"{path}: not taken in, since {MANIFEST_NAME} beside it names no run with this log."
        for path in paths
        if not any(path.is_relative_to(log) or log.is_relative_to(path) for log in named)
        and _could_be_log(path)
        and _is_log(path)
    ]


def _is_log(path: Path) -> bool:
    try:
        detect(path)
    except (LogError, OSError):
        return False
    return True


def _inferred(folder: Path, members: Members, *, is_root: bool) -> Manifest:
    return infer_manifest(Path(LOOSE) if is_root else folder, members.logs, members.unread)


def _is_one_run(folder: Path, logs: list[Path], reader_name: str) -> bool:
    reader = {r.NAME: r for r in _ONE_RUN}.get(reader_name)
    if reader is None or len(logs) < 2:
        return False
    try:
        files = reader.files(folder)
    except LogError:  # logs of several runs
        return False
    return bool(files) and all(
        log.is_file() or log.name.startswith("checkpoint-") or any(file.is_relative_to(log) for file in files)
        for log in logs
    )


def _could_be_log(path: Path) -> bool:
    """Tell whether somebody may think that a file, or one in a folder, is a log; an empty folder may become one."""
    if path.is_dir():
        files = list(islice((p for p in path.rglob("*") if p.is_file()), _LOOKED_AT))
        return not files or any(_could_be_log(file) for file in files)
    return not (path.name.startswith(".") or path.name in SIDECARS or _NO_LOG.fullmatch(path.name))


def _sentence(path: Path, error: LogError | OSError) -> str:
    if isinstance(error, OSError):
        return f"{path}: not taken in, since it can't be read ({error.strerror or error})."
    if path.is_file():
        is_empty = path.stat().st_size == 0
        return f"{path}: not taken in, {'the file is empty' if is_empty else 'no reader knows its content'}."
    if path.is_dir() and not any(path.iterdir()):
        return f"{path}: not taken in, the folder is empty."
    if path.is_dir() and not any(p.is_file() for p in path.iterdir()):
        return f"{path}: not taken in, no log lies in it; if one lies deeper, name it in a {MANIFEST_NAME}."
    return f"{path}: not taken in, {str(error).removeprefix(f'{path}: ')}."
