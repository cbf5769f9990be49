"""Pairs that nobody declared: proposing them with the reason, and declaring them in a manifest.

A proposal is made from what the lake knows of the runs; nothing is paired until somebody says so.
"""

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from rich.console import Console

from pipelines.landing import find_manifests
from pipelines.manifest import MANIFEST_NAME, RunEntry, write_run_entry
from warehouse.lake import MigrationRecord, RunRecord, all_components, read_migrations
from warehouse.settings import Settings

_RECIPE = ("model", "dataset", "algorithm", "seed", "data_order")


@dataclass(frozen=True)
class Proposal:
    """Two runs that look like a migration.

    Attributes:
        migration: Where they lie.
        runs: Their names, in the order of names.
        reason: Why they look like a pair.
        moved: What differs in hardware or software.
        also_differs: What else differs: such a pair compares more than the migrated components.
    """

    migration: str
    runs: tuple[str, str]
    reason: str
    moved: tuple[str, ...]
    also_differs: tuple[str, ...]


def propose_pairs(settings: Settings) -> list[Proposal]:
    """Return the pairs of runs on one recipe and different components that nobody has declared."""
    return [
        proposal
        for record in read_migrations(settings.lake)
        for a, b in combinations(sorted(record.runs, key=lambda run: run.name), 2)
        if (proposal := _proposal(record, a, b)) is not None
    ]


def _proposal(record: MigrationRecord, a: RunRecord, b: RunRecord) -> Proposal | None:
    declared = {(r.baseline, r.name) for r in record.runs if r.how_paired == "declared" and r.baseline}
    if (a.name, b.name) in declared or (b.name, a.name) in declared or "replicate" in (a.role, b.role):
        return None
    shared = [key for key in _RECIPE if a.recipe.get(key) and a.recipe.get(key) == b.recipe.get(key)]
    clashing = [key for key in _RECIPE if a.recipe.get(key, "") != b.recipe.get(key, "")]
    moved = _moved(a, b)
    if not shared or not moved or any(a.recipe.get(key) and b.recipe.get(key) for key in clashing if key != "seed"):
        return None
    reason = "one recipe (" + ", ".join(f"{key} {a.recipe[key]}" for key in shared) + ") on different components"
    differs = [f"{key}: {a.recipe.get(key) or 'not stated'}, {b.recipe.get(key) or 'not stated'}" for key in clashing]
    if a.config_hash and b.config_hash and a.config_hash != b.config_hash:
        differs.append("the logged configurations differ")
    return Proposal(record.name, (a.name, b.name), reason, moved, tuple(differs))


def _moved(a: RunRecord, b: RunRecord) -> tuple[str, ...]:
    def by_kind(run: RunRecord) -> dict[str, str]:
        found: dict[str, list[str]] = {}
        for c in all_components(run):
            found.setdefault(c.kind, []).append(f"{c.name} {c.version}".strip())
        return {kind: ", ".join(sorted(names)) for kind, names in found.items()}

    left, right = by_kind(a), by_kind(b)
    return tuple(
        f"{kind}: {left.get(kind, 'not stated')} to {right.get(kind, 'not stated')}"
        for kind in sorted(left.keys() | right.keys())
        if left.get(kind) != right.get(kind)
    )


def declare_pair(settings: Settings, migration: str, baseline: str, candidate: str) -> Path:
    """Write down that `candidate` is judged against `baseline`.

    Args:
        settings: The warehouse.
        migration: The migration that holds both runs.
        baseline: Name of the baseline run.
        candidate: Name of the candidate run.

    Returns:
        The manifest.

    Raises:
        ValueError: If there is no such migration or run, or its manifest lies elsewhere.
        ManifestError: If the manifest there is not valid.
    """
    manifests, _ = find_manifests(settings.landing)
    manifest = next((m for m in manifests if m.migration == migration), None)
    if manifest is None:
        known = ", ".join(m.migration for m in manifests) or "none"
        raise ValueError(f"There is no migration {migration} in {settings.landing}; there are: {known}.")
    path = settings.landing / migration / MANIFEST_NAME
    if manifest.how_paired == "declared" and not path.is_file():
        raise ValueError(f"{migration} is declared in {manifest.folder / MANIFEST_NAME}; change it there.")
    if path.is_file() and manifest.folder != path.parent:
        raise ValueError(f"{path} includes the manifest in {manifest.folder}; change it there.")
    entries = {run.name: run for run in manifest.runs}
    for name in (baseline, candidate):
        if name not in entries:
            raise ValueError(f"{migration} has no run {name}; it has {', '.join(entries)}.")
    if baseline == candidate:
        raise ValueError(f"{baseline} can't be judged against itself; name two runs.")
    _write(path, migration, entries[baseline], "baseline", "")
    _write(path, migration, entries[candidate], "candidate", baseline)
    for name, entry in entries.items():  # a manifest names every run, or the others would leave the warehouse
        if manifest.how_paired == "inferred" and name not in (baseline, candidate):
            _write(path, migration, entry, "candidate", baseline)
    return path


def _write(path: Path, migration: str, entry: RunEntry, role: str, baseline: str) -> None:
    written = RunEntry(entry.name, entry.log, role, baseline, "", entry.components, entry.recipe, entry.columns)
    write_run_entry(path, migration, written, {})


def print_proposals(proposals: list[Proposal], console: Console) -> None:
    """Print proposals for a person, each with the command that declares it."""
    if not proposals:
        console.print("No pair to propose: every run is declared, or no two share a recipe and differ in components.")
    for proposal in proposals:
        a, b = proposal.runs
        console.print(f"[bold]{proposal.migration}[/bold]: {a} and {b}: {proposal.reason}")
        for text in proposal.moved:
            console.print(f"  {text}", markup=False)
        for text in proposal.also_differs:
            console.print(f"  differs too: {text}", style="yellow", markup=False)
        console.print(f"  firstdrift pair {proposal.migration} {a} {b}", style="dim", markup=False)
