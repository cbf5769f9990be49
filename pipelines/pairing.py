"""Pairs that nobody declared: proposing them with the reason.

A proposal is made from what the lake knows of the runs; nothing is paired until somebody says so. Writing that down
belongs to `pipelines.declaring`.
"""

from dataclasses import dataclass
from itertools import combinations

from rich.console import Console

from pipelines.terminal import styled
from warehouse.lake import MigrationRecord, RunRecord, all_components, read_migrations
from warehouse.settings import Settings
from warehouse.wording import counted

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
    moved = _moved(a, b)
    if not moved or not _is_one_recipe(a, b):
        return None
    shared = _shared(a, b)
    clashing = [key for key in _RECIPE if a.recipe.get(key, "") != b.recipe.get(key, "")]
    reason = "one recipe (" + ", ".join(f"{key} {a.recipe[key]}" for key in shared) + ") on different components"
    differs = [f"{key}: {a.recipe.get(key) or 'not stated'}, {b.recipe.get(key) or 'not stated'}" for key in clashing]
    if a.config_hash and b.config_hash and a.config_hash != b.config_hash:
        differs.append("the logged configurations differ")
    return Proposal(record.name, (a.name, b.name), reason, moved, tuple(differs))


def _shared(a: RunRecord, b: RunRecord) -> list[str]:
    return [key for key in _RECIPE if a.recipe.get(key) and a.recipe.get(key) == b.recipe.get(key)]


def _is_one_recipe(a: RunRecord, b: RunRecord) -> bool:
    """Tell whether two runs share some of the recipe and contradict each other in none of it but the seed."""
    stated = [key for key in _RECIPE if key != "seed" and a.recipe.get(key) and b.recipe.get(key)]
    return bool(_shared(a, b)) and all(a.recipe[key] == b.recipe[key] for key in stated)


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


@dataclass(frozen=True)
class NoProposal:
    """Why nothing is proposed in one migration: how many of its runs are in no pair, and what they lack."""

    migration: str
    unpaired: int
    reason: str


def explain_silence(settings: Settings) -> list[NoProposal]:
    """Say for each migration why no pair of its runs is proposed; to be asked where `propose_pairs` has none."""
    return [_silence(record) for record in read_migrations(settings.lake)]


def _silence(record: MigrationRecord) -> NoProposal:
    baselines = {run.baseline for run in record.runs if run.baseline}
    alone = [r for r in record.runs if not r.baseline and r.role != "replicate" and r.name not in baselines]
    if not alone:
        return NoProposal(record.name, 0, "every run is in a pair or a replicate")
    stated = [run for run in alone if any(run.recipe.get(key) for key in _RECIPE)]
    if not stated:
        return NoProposal(record.name, len(alone), f"no recipe is stated ({', '.join(_RECIPE)})")
    if not any(_is_one_recipe(a, b) for a in stated for b in record.runs if a is not b):
        return NoProposal(record.name, len(alone), "no other run has the same recipe")
    return NoProposal(record.name, len(alone), "no component is stated that differs between runs on one recipe")


def print_proposals(proposals: list[Proposal], silence: list[NoProposal], console: Console) -> None:
    """Print proposals for a person, each with the command that declares it, or why there is none."""
    if not proposals and not silence:
        console.print("No pair to propose: nothing has been taken in yet. `firstdrift run` does it.")
    for why in silence if not proposals else ():
        alone = f"{counted(why.unpaired, 'run')} in no pair, and " if why.unpaired else ""
        console.print(f"{why.migration}: no pair to propose: {alone}{why.reason}.")
    if not proposals and any(why.unpaired for why in silence):
        console.print("Declare one by name: firstdrift pair MIGRATION BASELINE CANDIDATE.")
    for proposal in proposals:
        a, b = proposal.runs
        console.print(styled((proposal.migration, "bold"), f": {a} and {b}: {proposal.reason}"))
        for text in proposal.moved:
            console.print(f"  {text}")
        for text in proposal.also_differs:
            console.print(f"  differs too: {text}", style="yellow")
        console.print(f"  firstdrift pair {proposal.migration} {a} {b}", style="dim")
