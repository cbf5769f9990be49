"""The scoreboard: false alarms, power, onset error, interval coverage and who was first, on simulated runs.

Beside the shipped models stand a fixed threshold, a k-of-m rule and, where it is installed, ruptures' PELT, on the
same series. `python -m benchmarks.scoreboard --migrations 20` prints a quick look, the default is the full measure.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np

from benchmarks.simulator import Array, Cell, Replicates, metric_name, open_star, simulate
from warehouse.project import Project, load_project
from warehouse.schema import macro_files, schema_files
from warehouse.settings import project_folder

TARGET = metric_name(0)
CELLS: tuple[tuple[Replicates, float, int, float], ...] = (
    ("both", 0.0, 0, 0.0),
    ("both", 0.3, 0, 0.005),
    ("both", 0.3, 0, 0.01),
    ("both", 0.3, 0, 0.03),
    ("both", 0.6, 0, 0.01),
    ("both", 0.0, 3, 0.01),
    ("both", 0.3, 3, 0.01),
    ("both", 0.6, 3, 0.03),
    ("baseline", 0.0, 0, 0.0),
    ("baseline", 0.3, 0, 0.01),
    ("baseline", 0.6, 0, 0.01),
    ("none", 0.0, 0, 0.0),
    ("none", 0.3, 0, 0.01),
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


def deltas_of(cell: Cell, values: Array) -> Array:
    """Return the raw deltas: pair, metric, step; the pairs of a migration lie together."""
    first = cell.baseline_runs + cell.candidate_runs
    return (values[:, first:] - values[:, :1]).reshape(-1, cell.metrics, cell.steps)


def fixed_threshold(delta: Array, limit: float = 3.0) -> Array:
    """Return the first step at which a series is more than `limit` sigma from its start; 0 for none."""
    hit = np.abs(_from_start(delta)) > limit
    return np.where(hit.any(axis=-1), hit.argmax(axis=-1) + 1, 0)


def k_of_m(delta: Array, limit: float = 3.0, k: int = 4, m: int = 5) -> Array:
    """Return the first step that begins m steps of which k are more than `limit` sigma away; 0 for none."""
    beyond = (np.abs(_from_start(delta)) > limit).astype(int)
    counts = np.lib.stride_tricks.sliding_window_view(beyond, m, axis=-1).sum(axis=-1)
    hit = counts >= k
    return np.where(hit.any(axis=-1), hit.argmax(axis=-1) + 1, 0)


def _from_start(delta: Array) -> Array:
    """Take off the median of the first 20 steps. One sigma is 1 here: the rules are told the true noise."""
    return delta - np.median(delta[..., :20], axis=-1, keepdims=True)


def pelt(delta: Array) -> Array:
    """Return the first change that PELT finds with the usual penalty, 2 log n of the robust variance; 0 for none."""
    import ruptures

    flat = delta.reshape(-1, delta.shape[-1])
    found = np.zeros(len(flat), dtype=int)
    for i, series in enumerate(flat):
        sigma = 1.4826 * np.median(np.abs(np.diff(series))) / np.sqrt(2.0)
        scaled = series / max(sigma, 1e-12)
        changes = ruptures.Pelt(model="l2", min_size=8, jump=1).fit(scaled).predict(pen=2 * np.log(len(series)))
        found[i] = changes[0] + 1 if len(changes) > 1 else 0
    return found.reshape(delta.shape[:-1])


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


def run(migrations: int, seed: int, cells: tuple[tuple[Replicates, float, int, float], ...]) -> Iterator[str]:
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
            delta = deltas_of(cell, values)
            yield _line(head, "3 sigma", score_rule(fixed_threshold(delta), cell), 0.0)
            yield _line(head, "4 of 5 > 3 sigma", score_rule(k_of_m(delta), cell), 0.0)
            few = delta[: 2 * cell.candidates, ::6]
            started = time.perf_counter()
            yield _line(head, "PELT (sample)", score_rule(pelt(few), cell), time.perf_counter() - started)


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
    arguments = parser.parse_args()
    cells = tuple(c for c in CELLS if arguments.only in ("", c[0]))
    for line in run(arguments.migrations, arguments.seed, cells):
        print(line, flush=True)


if __name__ == "__main__":
    main()
