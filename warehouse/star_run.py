"""Which runs, stacks and pairs the records of the lake make: plain data, no DuckDB."""

import hashlib
from dataclasses import dataclass
from itertools import combinations

from warehouse.contract import stable_id
from warehouse.lake import MigrationRecord, RunRecord


@dataclass(frozen=True)
class StarRun:
    """A run of the lake with its identifier, its migration and its replicate group."""

    run_id: int
    migration: str
    record: RunRecord
    stack: str


def runs_of(record: MigrationRecord) -> list[StarRun]:
    """Return the runs of a migration."""
    stacks = stacks_of(record)
    return [StarRun(stable_id(record.name, run.name), record.name, run, stacks[run.name]) for run in record.runs]


def stacks_of(record: MigrationRecord) -> dict[str, str]:
    """Return the replicate group of each run.

    Runs of a migration with the same components ran on one stack: those of the manifest or, where it states
    none, those that the log tells. A replicate that states none ran on the stack of the run that it repeats.
    A run of which nothing is known, and that repeats none, stands alone.
    """
    by_name = {run.name: run for run in record.runs}

    def stack_of(run: RunRecord, seen: frozenset[str]) -> str:
        target = by_name.get(run.replicate_of)
        components = run.components or (() if target else run.found)
        if components:
            text = "|".join(f"{c.kind}={c.name}@{c.version}" for c in components)
            return hashlib.sha256(text.encode()).hexdigest()[:12]
        if target is None or target.name in seen:
            return f"run:{run.name}"
        return stack_of(target, seen | {run.name})

    return {run.name: stack_of(run, frozenset()) for run in record.runs}


def pairs_of(record: MigrationRecord) -> list[dict]:
    """Return the pairs of a migration: each candidate with its baseline, and all replicates of a stack."""
    runs = {run.name: run for run in record.runs}
    stacks = stacks_of(record)
    pairs = [
        (runs[run.baseline], run, "migration")
        for run in record.runs
        if run.role == "candidate" and run.baseline in runs
    ]
    members = [run for run in record.runs if run.role in ("baseline", "replicate")]
    pairs += [(a, b, "replicate") for a, b in combinations(members, 2) if stacks[a.name] == stacks[b.name]]
    return [
        {
            "pair_id": stable_id(record.name, baseline.name, candidate.name),
            "migration": record.name,
            "pair_kind": kind,
            "how_paired": candidate.how_paired,
            "baseline_run_id": stable_id(record.name, baseline.name),
            "baseline_run_name": baseline.name,
            "candidate_run_id": stable_id(record.name, candidate.name),
            "candidate_run_name": candidate.name,
            "baseline_stack": stacks[baseline.name],
            "candidate_stack": stacks[candidate.name],
        }
        for baseline, candidate, kind in pairs
    ]
