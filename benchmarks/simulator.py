"""Runs with a known answer: coupled growth to a plateau, autocorrelation, wander, heavy tails, and one fault.

Every run deviates from the path of its recipe by noise of its own. The noise starts at rounding size, grows
exponentially and then saturates, so two runs look equal at first and lie apart afterwards. One sigma is the
marginal standard deviation of the difference of two runs at the plateau. Judging is not done here.
"""

from dataclasses import dataclass
from typing import Literal

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warehouse.contract import stable_id
from warehouse.schema import apply_macros, apply_schema

Array = NDArray[np.float64]
Replicates = Literal["both", "baseline", "none"]

CATEGORY_COUNT = 10
_TIERS = (1, 1, 2, 2, 3, 3, 4, 4, 5, 6)
_STAGES = (
    "training",
    "training",
    "rollout_or_weight_sync",
    "rollout_or_weight_sync",
    "rollout_or_weight_sync",
    "rollout_or_weight_sync",
    "rollout_or_weight_sync",
    "rollout_or_weight_sync",
    "reward",
    "evaluation",
)


@dataclass(frozen=True)
class Cell:
    """What the runs of one cell of a simulation are like.

    Attributes:
        migrations: How many baselines there are, each with its replicates and candidates.
        candidates: Candidates of each migration.
        metrics: Metrics of a run.
        steps: Steps of a run.
        autocorrelation: Lag-one autocorrelation of the noise.
        tail: Degrees of freedom of the noise; 0 for normal noise.
        wander: Step of a random walk on the difference of two runs, in sigma.
        start: Size of the noise at the first step, as a share of the plateau.
        growth: Growth rate of the noise per step.
        offset: Standard deviation of the constant offset between the stacks, in sigma.
        shift: Fault of the first faulty_metrics metrics of each candidate, in sigma.
        onset: Step from which the fault acts.
        shape: step, ramp (reaches the shift after 20 steps), or sawtooth (every fourth step normal).
        faulty_metrics: How many metrics have the fault; the i-th gets it `lag` * i steps later.
        faulty_candidates: How many candidates of each migration have the fault, the last ones; the others are as
            good as the baseline.
        lag: Steps between the faults of one metric and the next.
        gaps: Share of steps that a run did not log.
        nonfinite: Share of values that are NaN.
        restarts: Share of runs that crash once and write their last five steps again, with other values.
        baseline_runs: Baseline run and its replicates.
        candidate_runs: Replicates of the candidate's stack.
    """

    migrations: int = 100
    candidates: int = 4
    metrics: int = 90
    steps: int = 80
    autocorrelation: float = 0.0
    tail: int = 0
    wander: float = 0.0
    start: float = 1e-3
    growth: float = 0.35
    offset: float = 0.3
    shift: float = 0.0
    onset: int = 41
    shape: str = "step"
    faulty_metrics: int = 1
    faulty_candidates: int = 2
    lag: int = 0
    gaps: float = 0.0
    nonfinite: float = 0.0
    restarts: float = 0.0
    baseline_runs: int = 4
    candidate_runs: int = 3


def noise(rng: np.random.Generator, shape: tuple[int, ...], cell: Cell) -> Array:
    """Return noise of unit variance along the last axis, with the cell's autocorrelation, tail and wander."""
    warm = 50
    size = (*shape[:-1], shape[-1] + warm)
    if cell.tail:
        raw = rng.standard_t(cell.tail, size) / np.sqrt(cell.tail / (cell.tail - 2))
    else:
        raw = rng.standard_normal(size)
    if cell.autocorrelation:
        phi = cell.autocorrelation
        raw *= np.sqrt(1 - phi * phi)
        for t in range(1, size[-1]):
            raw[..., t] += phi * raw[..., t - 1]
    out = raw[..., warm:]
    if cell.wander:
        out = out + cell.wander * rng.standard_normal(shape).cumsum(axis=-1)
    return out


def simulate(cell: Cell, seed: int) -> Array:
    """Return the values of all runs: migration, run, metric, step.

    The runs of a migration are the baseline and its replicates, the replicates of the candidate's stack,
    and the candidates.
    """
    rng = np.random.default_rng(seed)
    runs = cell.baseline_runs + cell.candidate_runs + cell.candidates
    t = np.arange(1, cell.steps + 1)
    growth = np.minimum(1.0, cell.start * np.exp(cell.growth * t))
    values = noise(rng, (cell.migrations, runs, cell.metrics, cell.steps), cell) * growth / np.sqrt(2.0)
    path = rng.standard_normal((cell.migrations, 1, cell.metrics, cell.steps)).cumsum(axis=-1) * 0.2
    values += path
    offset = cell.offset * rng.standard_normal((cell.migrations, 1, cell.metrics, 1))
    values[:, cell.baseline_runs :] += offset
    faulty = values[:, runs - cell.faulty_candidates :]
    for i in range(cell.faulty_metrics if cell.shift else 0):
        faulty[:, :, i] += cell.shift * _profile(t, cell.onset + cell.lag * i, cell.shape)
    if cell.nonfinite:
        values[rng.random(values.shape) < cell.nonfinite] = np.nan
    return values


def _profile(t: NDArray[np.int64], onset: int, shape: str) -> Array:
    after = (t >= onset).astype(float)
    if shape == "ramp":
        return after * np.minimum(1.0, (t - onset + 1) / 20.0)
    if shape == "sawtooth":
        return after * ((t - onset) % 4 != 0)
    return after


def metric_name(i: int) -> str:
    """Return the name of the i-th metric."""
    return f"simulated/group_{i % CATEGORY_COUNT}/metric_{i:03d}"


def open_star(cell: Cell, values: Array, replicates: Replicates, seed: int = 0) -> duckdb.DuckDBPyConnection:
    """Put simulated runs into a star in memory.

    Args:
        cell: What the values were made from.
        values: As `simulate` returns them.
        replicates: Which replicates are declared as such; the others are not in the star.
        seed: Of the steps that are left out.
    """
    con = duckdb.connect()
    con.execute("set preserve_insertion_order = false")
    apply_schema(con)
    apply_macros(con)
    con.execute("insert into etl_state values ('catalog_hash', 'simulated')")
    _insert_metrics(con, cell)
    names = _run_names(cell, replicates)
    _insert_runs(con, cell, names)
    _insert_points(con, cell, values, names, seed)
    return con


def _run_names(cell: Cell, replicates: Replicates) -> list[tuple[int, str, str, str]]:
    """Return index, name, role and stack of the runs that the star shall hold."""
    b, c = cell.baseline_runs, cell.candidate_runs
    rows = [(0, "baseline", "baseline", "one")]
    if replicates in ("both", "baseline"):
        rows += [(i, f"baseline_again_{i}", "replicate", "one") for i in range(1, b)]
    if replicates == "both":
        rows += [(b + i, f"candidate_again_{i}", "replicate", "other") for i in range(c)]
    rows += [(b + c + i, f"candidate_{i}", "candidate", "other") for i in range(cell.candidates)]
    return rows


def _insert_metrics(con: duckdb.DuckDBPyConnection, cell: Cell) -> None:
    rows = pa.table(
        {
            "metric_id": [stable_id(metric_name(i)) for i in range(cell.metrics)],
            "metric": [metric_name(i) for i in range(cell.metrics)],
            "category": [f"group_{i % CATEGORY_COUNT}" for i in range(cell.metrics)],
            "stage": [_STAGES[i % CATEGORY_COUNT] for i in range(cell.metrics)],
            "causal_tier": [_TIERS[i % CATEGORY_COUNT] for i in range(cell.metrics)],
        }
    )
    con.register("metric_rows", rows)
    con.execute(
        """
        insert into dim_metric by name
        select *, metric as label_en, metric as label_zh, 'simulated' as meaning, 'none' as better,
            false as domain_low_open, false as domain_high_open, false as is_integer, 'identity' as scale,
            'paired' as parity_class, 'simulated' as provenance, 'high' as confidence, true as is_catalogued
        from metric_rows
        """
    )
    con.unregister("metric_rows")


def _insert_runs(con: duckdb.DuckDBPyConnection, cell: Cell, names: list[tuple[int, str, str, str]]) -> None:
    rows = [
        {"run_id": stable_id(m, name), "run_name": name, "migration": m, "role": role, "stack": f"{m}/{stack}"}
        for m in (f"m{j:04d}" for j in range(cell.migrations))
        for _, name, role, stack in names
    ]
    con.register("run_rows", pa.Table.from_pylist(rows))
    con.execute(
        """
        insert into dim_run by name
        select *, 'recipe' as recipe, 'finished' as status, 'simulated' as log_format,
            'float64' as log_precision, 'simulated' as source, run_id::varchar as content_hash,
            1 as point_count, 1 as attempt_count, 0 as issue_count, now()::timestamp as loaded_at
        from run_rows
        """
    )
    con.unregister("run_rows")
    pairs = [
        {
            "pair_id": stable_id(m, "baseline", name),
            "migration": m,
            "baseline_run_id": stable_id(m, "baseline"),
            "baseline_run_name": "baseline",
            "candidate_run_id": stable_id(m, name),
            "candidate_run_name": name,
            "baseline_stack": f"{m}/one",
            "candidate_stack": f"{m}/{stack}",
        }
        for m in (f"m{j:04d}" for j in range(cell.migrations))
        for _, name, role, stack in names
        if role == "candidate"
    ]
    con.register("pair_rows", pa.Table.from_pylist(pairs))
    con.execute(
        """
        insert into dim_migration by name
        select *, 'migration' as pair_kind, 'declared' as how_paired, '1' as input_version from pair_rows
        """
    )
    con.unregister("pair_rows")


def _insert_points(
    con: duckdb.DuckDBPyConnection, cell: Cell, values: Array, names: list[tuple[int, str, str, str]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    metric_ids = np.array([stable_id(metric_name(i)) for i in range(cell.metrics)], dtype=np.int64)
    steps = np.arange(1, cell.steps + 1, dtype=np.int64)
    for j in range(cell.migrations):
        indexes = [i for i, *_ in names]
        run_ids = np.array([stable_id(f"m{j:04d}", name) for _, name, *_ in names], dtype=np.int64)
        shape = (len(indexes), cell.metrics, cell.steps)
        logged = np.broadcast_to(rng.random((len(indexes), 1, cell.steps)) >= cell.gaps, shape).ravel()
        crashes = _crashes(rng, cell, len(indexes))
        table = pa.table(
            {
                "run_id": np.repeat(run_ids, cell.metrics * cell.steps)[logged],
                "metric_id": np.tile(np.repeat(metric_ids, cell.steps), len(indexes))[logged],
                "step": np.tile(steps, len(indexes) * cell.metrics)[logged],
                "value": values[j, indexes].ravel()[logged],
                "crashed_at": np.repeat(crashes, cell.metrics * cell.steps)[logged],
            }
        )
        con.register("point_rows", table)
        con.execute(
            """
            with points as (
                select * exclude (crashed_at),
                    case when step > crashed_at - 5 then 2 else 1 end as attempt,
                    true as is_current
                from point_rows
                union all by name
                select * exclude (crashed_at) replace (value + 1.0 as value), 1 as attempt, false as is_current
                from point_rows where step between crashed_at - 4 and crashed_at
            )
            insert into fct_metric by name
            select *, 'step' as step_axis, 1 as write_no,
                case when isnan(value) then 'nan' else 'finite' end as value_kind,
                'simulated' as metric_name, 'simulated' as source_file, 1 as source_position
            from points
            """
        )
        con.unregister("point_rows")


def _crashes(rng: np.random.Generator, cell: Cell, runs: int) -> NDArray[np.int64]:
    """Return the last step before the crash of each run; beyond the end for a run that does not crash."""
    crashes = rng.integers(10, cell.steps, runs)
    return np.where(rng.random(runs) < cell.restarts, crashes, cell.steps + 10)
