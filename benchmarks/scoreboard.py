"""The scoreboard: false alarms, power, onset error, interval coverage and who was first, on simulated runs.

Beside the shipped models stand a fixed threshold, a k-of-m rule, ruptures' PELT and Apache Otava, on the same series.
`make scoreboard` runs it whole, `python -m benchmarks.scoreboard --migrations 20` gives a quick look without Otava.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.peers import deltas_of, fixed_threshold, k_of_m, otava, pelt
from benchmarks.simulator import Array, Cell, Replicates, metric_name, open_star, simulate
from warehouse.project import Project, load_project
from warehouse.schema import macro_files, schema_files
from warehouse.settings import project_folder

TARGET = metric_name(0)
CellName = tuple[Replicates, float, int, float]
CELLS: tuple[CellName, ...] = (
    *(("both", phi, tail, wander) for phi in (0.0, 0.3, 0.6) for tail in (0, 3) for wander in (0.005, 0.01)),
    ("both", 0.0, 0, 0.0),
    ("both", 0.0, 0, 0.03),
    ("both", 0.3, 0, 0.03),
    ("both", 0.6, 3, 0.03),
    *(("baseline", phi, tail, 0.01) for phi in (0.0, 0.3, 0.6) for tail in (0, 3)),
    *(("none", phi, tail, 0.01) for phi in (0.0, 0.3, 0.6) for tail in (0, 3)),
    ("none", 0.6, 3, 0.03),
)
"""Replicates, autocorrelation, degrees of freedom of the tails (0: normal), wander in sigma a step."""


@dataclass(frozen=True)
class Score:
    """What one method did on one cell.

    Attributes:
        false_pairs: Share of faultless pairs with any drift.
        false_series: Share of faultless series with drift.
        power: Share of faulty pairs whose verdict is drift, with the faulty metric among the drifted.
        onset_error: Median distance between the onset found and the true one, in steps.
        coverage: Share of intervals that hold the true onset.
        first: Share of the drifted faulty pairs in which the faulty metric is named first.
    """

    false_pairs: float
    false_series: float
    power: float
    onset_error: float
    coverage: float
    first: float


def models_of_verdicts(project: Project) -> list[str]:
    """Return the models that a verdict on a pair is made of, in the order in which they are built."""
    by_name = {m.name: m for m in project.models}
    needed: set[str] = set()
    stack = ["mart_pair_verdict"]
    while stack:
        name = stack.pop()
        if name in by_name and name not in needed:
            needed.add(name)
            stack.extend(by_name[name].depends_on)
    return [m.name for m in project.models if m.name in needed]


def build(con: duckdb.DuckDBPyConnection, project: Project) -> None:
    """Build the models of verdicts as plain tables."""
    for name in models_of_verdicts(project):
        con.execute(f"create or replace table {name} as\n{project.model(name).sql}")


def score_models(con: duckdb.DuckDBPyConnection, cell: Cell) -> Score:
    """Judge the verdicts in a star against the truth of its cell."""
    con.execute(
        f"""
        create or replace temp table truth as
        select pair_id, replace(candidate_run_name, 'candidate_', '')::integer
            >= {cell.candidates - cell.faulty_candidates} as is_faulty
        from dim_migration
        """
    )
    false_pairs, false_series = _row(
        con,
        """
        with pairs as (
            select pair_id, bool_or(is_drift) as any_drift, avg(is_drift::integer) as share
            from int_drift_test inner join truth using (pair_id)
            where not is_faulty group by pair_id
        )
        select avg(any_drift::integer), avg(share) from pairs
        """,
    )
    power, error, coverage, first = _row(
        con,
        f"""
        select avg((tests.is_drift and verdicts.verdict = 'drift')::integer),
            median(abs(onsets.onset_step - {cell.onset})) filter (where tests.is_drift),
            avg(({cell.onset} between onsets.onset_step_low and onsets.onset_step_high)::integer)
                filter (where tests.is_drift),
            avg((verdicts.first_metric = tests.metric)::integer) filter (where tests.is_drift)
        from int_drift_test as tests
        inner join truth using (pair_id)
        left join int_onset as onsets using (pair_id, metric_id, step_axis)
        inner join mart_pair_verdict as verdicts using (pair_id)
        where truth.is_faulty and tests.metric = '{TARGET}'
        """,
    )
    return Score(
        *(float("nan") if v is None else float(v) for v in (false_pairs, false_series, power, error, coverage, first))
    )


def _row(con: duckdb.DuckDBPyConnection, sql: str) -> tuple:
    row = con.execute(sql).fetchone()
    assert row is not None
    return row


def score_rule(onsets: Array, cell: Cell) -> Score:
    """Judge the onsets of a rule, one for each pair and metric, 0 for none."""
    by_migration = onsets.reshape(-1, cell.candidates, onsets.shape[-1])
    healthy = by_migration[:, : cell.candidates - cell.faulty_candidates] > 0
    faulty = by_migration[:, cell.candidates - cell.faulty_candidates :]
    target = faulty[..., 0]
    hit = target > 0
    earliest = np.where(faulty > 0, faulty, cell.steps + 1).min(axis=-1)
    return Score(
        false_pairs=float(healthy.any(axis=-1).mean()),
        false_series=float(healthy.mean()),
        power=float(hit.mean()),
        onset_error=float(np.median(np.abs(target[hit] - cell.onset))) if hit.any() else float("nan"),
        coverage=float("nan"),
        first=float((target[hit] == earliest[hit]).mean()) if hit.any() else float("nan"),
    )


def run(migrations: int, seed: int, cells: tuple[CellName, ...], otava_python: Path | None) -> Iterator[str]:
    """Yield the lines of the scoreboard."""
    project = load_project(project_folder("models"), schema_files(), macro_files())
    yield "replicates AR   tail wander | method           false pairs series  power |error| coverage  first  seconds"
    for replicates, autocorrelation, tail, wander in cells:
        cell = Cell(
            migrations=migrations, candidates=6, autocorrelation=autocorrelation, tail=tail, wander=wander, shift=2.0
        )
        head = f"{replicates:<10} {autocorrelation:.1f} {'t' + str(tail) if tail else 'n':>5} {wander:6.3f}"
        values = simulate(cell, seed)
        started = time.perf_counter()
        con = open_star(cell, values, replicates)
        build(con, project)
        score = score_models(con, cell)
        con.close()
        yield _line(head, "firstdrift", score, time.perf_counter() - started)
        if replicates == "both":
            yield from (_line(head, *peer) for peer in _peers(cell, values, otava_python))


def _peers(cell: Cell, values: Array, otava_python: Path | None) -> Iterator[tuple[str, Score, float]]:
    """Yield name, score and seconds of each rule; the slow ones see a sixth of the metrics of two migrations."""
    delta = deltas_of(cell, values)
    few = delta[: 2 * cell.candidates, ::6]
    rules: list[tuple[str, Callable[[Array], Array], Array]] = [
        ("3 sigma", fixed_threshold, delta),
        ("4 of 5 > 3 sigma", k_of_m, delta),
        ("PELT (sample)", pelt, few),
    ]
    if otava_python is not None:
        rules.append(("Otava (sample)", partial(otava, python=otava_python), few))
    for name, rule, series in rules:
        started = time.perf_counter()
        yield name, score_rule(rule(series), cell), time.perf_counter() - started


def _line(head: str, method: str, s: Score, seconds: float) -> str:
    return (
        f"{head} | {method:<16} {100 * s.false_pairs:10.1f}% {100 * s.false_series:6.2f}% {100 * s.power:5.1f}%"
        f" {s.onset_error:7.1f}  {100 * s.coverage:7.1f}% {100 * s.first:5.1f}% {seconds:8.1f}"
    )


def main() -> None:
    """Print the scoreboard."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--migrations", type=int, default=100, help="each has 4 faultless and 2 faulty pairs")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--only", default="", help="both, baseline or none")
    parser.add_argument("--otava", type=Path, help="python of an environment that holds apache-otava")
    arguments = parser.parse_args()
    cells = tuple(c for c in CELLS if arguments.only in ("", c[0]))
    for line in run(arguments.migrations, arguments.seed, cells, arguments.otava):
        print(line, flush=True)


if __name__ == "__main__":
    main()
