"""The manifest: which logs belong to a migration and what the logs can't say themselves.

Here belong reading, validating, inferring and writing a manifest. Reading logs does not.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from warehouse.contract import COMPONENT_KINDS, ROLES
from warehouse.lake import Component
from warehouse.settings import expanded

MANIFEST_NAME = "migration.yaml"
SIDECAR_NAME = "run.yaml"
UNPAIRED = "none"
"""What a candidate says for its baseline if it is judged against no run."""
BASELINE_WORDS = ("base", "baseline", "ref", "reference", "gpu", "cuda")
"""What tells in the name of a run that it is the baseline, where no manifest says it."""
# A name is that of a folder of the lake too: no separator, no leading dot, and no longer than file systems take.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=@-]{0,199}")
_MIGRATION_KEYS = ("migration", "recipe", "runs", "include")
_RUN_KEYS = ("name", "log", "role", "baseline", "of", "components", "recipe", "columns")
_SHOWN_CHARS = 80
_RECIPE_KEYS = ("model", "dataset", "algorithm", "seed", "data_order")
_MARKED = re.compile(rf"(?:^|[^a-z])(?:{'|'.join(BASELINE_WORDS)})(?:[^a-z]|$)", re.I)


class ManifestError(Exception):
    """A manifest can't be used; the message names the file, the place, the fault and the remedy."""


@dataclass(frozen=True)
class RunEntry:
    """One run of a manifest.

    Attributes:
        name: Name, unique in the manifest.
        log: Path or glob of the log, as written.
        role: "baseline", "candidate" or "replicate".
        baseline: For a candidate: the run it is judged against, "" where none is known. As written in a file, "none"
            is no run, and "" the only baseline there is.
        of: For a replicate: the run whose stack it repeats.
        components: What it ran on.
        recipe: What differs from the recipe of the migration.
        columns: Names of the columns of a table without header; () for a log that needs none.
    """

    name: str
    log: str
    role: str
    baseline: str = ""
    of: str = ""
    components: tuple[Component, ...] = ()
    recipe: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Manifest:
    """The runs of one migration.

    Attributes:
        migration: Its name.
        folder: The folder against which relative logs are resolved.
        recipe: model, dataset, algorithm, seed, data_order.
        runs: The runs, in order.
        how_paired: "declared", or "inferred" where there is no manifest file.
        unread: Where there is none: a sentence, by the name that a run would have, for what nobody can read.
    """

    migration: str
    folder: Path
    recipe: Mapping[str, str]
    runs: tuple[RunEntry, ...]
    how_paired: str = "declared"
    unread: Mapping[str, str] = field(default_factory=dict)


def read_manifest(path: Path) -> Manifest:
    """Read and validate a manifest file.

    Args:
        path: The file, usually called migration.yaml.

    Raises:
        ManifestError: If it is not valid.
    """
    return _read(path, ())


def checked_name(place: str, value: Any) -> str:
    """Return the name of a migration or a run.

    Args:
        place: What it names and where it stands, for the sentence.
        value: What is written there.

    Raises:
        ManifestError: If it can't be used: a name is a folder of the lake too.
    """
    if value is None or value == "":
        raise ManifestError(f"{place} is missing; give it a name.")
    name = str(value)
    if not _NAME.fullmatch(name):
        shown = name if name.isprintable() and len(name) <= _SHOWN_CHARS else f"{name[:_SHOWN_CHARS]!r}"
        raise ManifestError(
            f"{place} `{shown}` can't be used as a name; use letters, digits and . _ + = @ - only, "
            "no dot or sign at the beginning, and at most 200 characters."
        )
    if name.lower() == "migration.json":
        raise ManifestError(f"{place} `{name}` is the name of a file of the lake; choose another.")
    return name


def declared_migration(path: Path) -> str:
    """Return the name of the migration that a manifest file is about, valid or not; "" where nobody can tell."""
    try:
        data = _load_yaml(path)
        if isinstance(data, dict) and "include" in data:
            return read_manifest(path).migration
    except ManifestError:
        return ""
    return str(data.get("migration") or "") if isinstance(data, dict) else ""


def infer_manifest(folder: Path, members: Mapping[str, Path], unread: Mapping[str, str] | None = None) -> Manifest:
    """Make a manifest for a folder that has none, taking each member as a run.

    The baseline is the only member whose name says so by one of `BASELINE_WORDS`; where that is not exactly one, no
    pairs are made.

    Args:
        folder: The folder; its name becomes the migration's.
        members: Path of each log by run name.
        unread: A sentence for what may be a log and can't be read, by the name that the run would have.

    Raises:
        ManifestError: If a name can't be used.
    """
    migration = checked_name(f"{folder}: folder name", folder.name)
    names = sorted(members)
    marked = [name for name in names if _MARKED.search(name)]
    baseline = marked[0] if len(marked) == 1 and len(names) > 1 else ""
    runs = []
    for name in names:
        checked_name(f"{folder}: run name", name)
        role = "baseline" if name == baseline else "candidate"
        entry = RunEntry(name, str(members[name]), role, baseline="" if name == baseline else baseline)
        sidecar = members[name] / SIDECAR_NAME
        runs.append(_with_sidecar(sidecar, entry) if sidecar.is_file() else entry)
    has_baseline = any(run.role == "baseline" for run in runs)
    linked = _with_links(folder, tuple(runs)) if has_baseline else tuple(_settled(run) for run in runs)
    return Manifest(migration, folder, {}, linked, "inferred", unread or {})


def write_runs(path: Path, migration: str, entries: Sequence[RunEntry], recipe: Mapping[str, str]) -> Manifest:
    """Add runs to a manifest file, or replace the runs of these names; the file is made where absent.

    Nothing is written unless the whole manifest is valid afterwards, except that a baseline, and runs that others
    name, may be still to be added.

    Args:
        path: The file.
        migration: The migration that it declares.
        entries: The runs; the baseline of a candidate that is judged against none is `UNPAIRED`.
        recipe: What to add to the recipe of the migration.

    Returns:
        The manifest as it is now, links between runs filled in as far as they are known.

    Raises:
        ManifestError: If the file there is not valid or includes another, or an entry is not valid.
    """
    data: dict[str, Any] = _load_mapping(path) if path.exists() else {"migration": migration}
    if "include" in data:
        raise ManifestError(f"{path} includes the manifest in {_target(path, data)}; change it there.")
    if data.get("runs"):
        _manifest(path, data, is_draft=True)  # before anything is taken from it
    if data.get("migration") != migration:
        raise ManifestError(f"{path} declares the migration {data.get('migration')}, not {migration}; name that one.")
    if recipe:
        data["recipe"] = {**_recipe(path, "recipe", data.get("recipe")), **recipe}
    by_name = {run["name"]: run for run in data.get("runs") or []}
    data["runs"] = list((by_name | {entry.name: _raw(entry) for entry in entries}).values())
    manifest = _manifest(path, data, is_draft=True)
    _save(path, data)
    return manifest


def write_include(path: Path, source: Path) -> None:
    """Make a manifest file that includes another.

    Args:
        path: The file; one that includes another manifest already is replaced.
        source: The manifest to include.

    Raises:
        ManifestError: If the file there declares runs of its own.
    """
    if path.exists() and "include" not in _load_mapping(path):
        raise ManifestError(f"{path} declares runs of its own; move it away first, or give one migration another name.")
    _save(path, {"include": str(source.absolute())})


def _raw(entry: RunEntry) -> dict[str, Any]:
    raw: dict[str, Any] = {"name": entry.name, "log": entry.log, "role": entry.role}
    if entry.baseline:
        raw["baseline"] = entry.baseline
    if entry.of:
        raw["of"] = entry.of
    if entry.components:
        raw["components"] = {
            c.kind: {"name": c.name, "version": c.version} if c.version else {"name": c.name} for c in entry.components
        }
    if entry.recipe:
        raw["recipe"] = dict(entry.recipe)
    if entry.columns:
        raw["columns"] = list(entry.columns)
    return raw


def _save(path: Path, data: Mapping[str, Any]) -> None:
    """Write a manifest, which appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        draft.write_text(yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True), encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _read(path: Path, includers: tuple[Path, ...]) -> Manifest:
    data = _load_mapping(path)
    _check_keys(path, "the manifest", data, _MIGRATION_KEYS)
    if "include" not in data:
        return _manifest(path, data)
    if len(data) > 1:
        raise ManifestError(f"{path}: include stands alone; move the other keys into the included manifest.")
    target = _target(path, data)
    manifest = target / MANIFEST_NAME if target.is_dir() else target
    if not manifest.is_file():
        raise ManifestError(f"{path}: includes {target}, where no {MANIFEST_NAME} lies.")
    chain = (*includers, path.resolve())
    if manifest.resolve() in chain:
        raise ManifestError(f"{path}: includes {target}, which leads back to it; name the one that lists the runs.")
    return _read(manifest, chain)


def _target(path: Path, data: Mapping[str, Any]) -> Path:
    try:
        return path.parent / expanded(Path(str(data["include"])))
    except OSError as error:
        raise ManifestError(f"{path}: includes {error}") from error


def _manifest(path: Path, data: Mapping[str, Any], *, is_draft: bool = False) -> Manifest:
    _check_keys(path, "the manifest", data, _MIGRATION_KEYS)
    migration = checked_name(f"{path}: migration", data.get("migration"))
    recipe = _recipe(path, "recipe", data.get("recipe"))
    entries = data.get("runs")
    if not isinstance(entries, list) or not entries:
        raise ManifestError(f"{path}: runs is missing or empty; list at least a baseline and a candidate.")
    runs = tuple(_run_entry(path, number, entry) for number, entry in enumerate(entries, start=1))
    return Manifest(migration, path.parent, recipe, _with_links(path, runs, is_draft=is_draft))


def _load_mapping(path: Path) -> dict[str, Any]:
    data = _load_yaml(path)
    if not isinstance(data, dict):
        raise ManifestError(f"{path}: a manifest is a mapping with the keys migration and runs.")
    return data


def _load_yaml(path: Path) -> Any:
    try:
        # Every scalar stays text: a version 1.10 is not the number 1.1, a run called no is not false.
        return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: can't be read ({error}).") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else "somewhere"
        raise ManifestError(f"{path}, {place}: this is not YAML ({getattr(error, 'problem', error)}).") from error


def _check_keys(path: Path, place: str, data: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in data:
        if key not in known:
            raise ManifestError(f"{path}: {place} has the unknown key `{key}`; known are {', '.join(known)}.")


def _recipe(path: Path, place: str, value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ManifestError(f"{path}: {place} is a mapping of {', '.join(_RECIPE_KEYS)}.")
    _check_keys(path, place, value, _RECIPE_KEYS)
    return {key: str(item) for key, item in value.items() if item}


def _components(path: Path, place: str, value: Any) -> tuple[Component, ...]:
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise ManifestError(f"{path}: components of {place} is a mapping of kind to name and version.")
    _check_keys(path, f"components of {place}", value, COMPONENT_KINDS)
    found = []
    for kind, item in value.items():
        if isinstance(item, dict):
            _check_keys(path, f"{kind} of {place}", item, ("name", "version"))
            if not item.get("name"):
                raise ManifestError(f"{path}: {kind} of {place} has no name.")
            found.append(Component(kind, str(item["name"]), str(item.get("version") or "")))
        else:
            name, _, version = str(item).partition("@")
            found.append(Component(kind, name.strip(), version.strip()))
    return tuple(sorted(found, key=lambda c: (COMPONENT_KINDS.index(c.kind), c.name)))


def _run_entry(path: Path, number: int, data: Any) -> RunEntry:
    if not isinstance(data, dict):
        raise ManifestError(f"{path}: run {number} is a mapping with name, log and role.")
    place = f"run {data.get('name') or number}"
    _check_keys(path, place, data, _RUN_KEYS)
    name = checked_name(f"{path}: name of run {number}", data.get("name"))
    if name == UNPAIRED:
        raise ManifestError(f"{path}: run {number} can't be called {name}: `baseline: {name}` means no baseline.")
    if not data.get("log"):
        raise ManifestError(f"{path}: {place} has no log; give the path or glob of its log.")
    role = data.get("role")
    if role not in ROLES:
        raise ManifestError(f"{path}: {place} has the role `{role}`; it must be one of {', '.join(ROLES)}.")
    columns = data.get("columns") or []
    if not isinstance(columns, list):
        raise ManifestError(f"{path}: columns of {place} is a list of names, [step, loss] for example.")
    return RunEntry(
        name=name,
        log=str(data["log"]),
        role=role,
        baseline=str(data.get("baseline") or ""),
        of=str(data.get("of") or ""),
        components=_components(path, place, data.get("components")),
        recipe=_recipe(path, f"recipe of {place}", data.get("recipe")),
        columns=tuple(str(c) for c in columns),
    )


def _with_sidecar(path: Path, entry: RunEntry) -> RunEntry:
    data = _load_yaml(path) or {}
    if not isinstance(data, dict):
        raise ManifestError(f"{path}: a sidecar is a mapping of {', '.join(_RUN_KEYS)}.")
    merged = {"name": entry.name, "log": entry.log, "role": entry.role, "baseline": entry.baseline, **data}
    return _run_entry(path, 1, {key: value for key, value in merged.items() if value})


def _with_links(path: Path, runs: tuple[RunEntry, ...], *, is_draft: bool = False) -> tuple[RunEntry, ...]:
    """Check the references between runs, and fill in the only baseline where a candidate names none.

    In a draft, runs may be missing that are still to be added.
    """
    names = [run.name for run in runs]
    for name in names:
        if names.count(name) > 1:
            raise ManifestError(f"{path}: two runs are called {name}; names must differ.")
    baselines = [run.name for run in runs if run.role == "baseline"]
    if not baselines and not is_draft:
        raise ManifestError(f"{path}: no run has the role baseline; say which one the others are judged against.")
    return tuple(_with_link(path, run, None if is_draft else names, baselines) for run in runs)


def _with_link(path: Path, run: RunEntry, names: list[str] | None, baselines: list[str]) -> RunEntry:
    key, target = ("of", run.of) if run.role == "replicate" else ("baseline", run.baseline)
    if run.role == "baseline" or (key, target) == ("baseline", UNPAIRED):
        return _settled(run)
    if not target:
        if len(baselines) > 1:
            raise ManifestError(f"{path}: run {run.name} needs `{key}:`, since there are several baselines.")
        if not baselines or (run.role == "replicate" and run.components):
            return run
        return replace(run, **{key: baselines[0]})
    if target == run.name:
        raise ManifestError(f"{path}: run {run.name} names itself in `{key}:`.")
    if names is not None and target not in names:
        raise ManifestError(f"{path}: run {run.name} names `{key}: {target}`, but there is no run of that name.")
    return run


def _settled(run: RunEntry) -> RunEntry:
    """Return a run as it is known inside: a baseline of none is none."""
    return replace(run, baseline="") if run.baseline == UNPAIRED else run
