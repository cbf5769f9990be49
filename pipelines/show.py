"""What `firstdrift show` prints: per migration the verdicts, what drifted first, parity and anomalies."""

from dataclasses import dataclass

import duckdb
from rich.console import Console

from pipelines.questions import run_question
from pipelines.sparkline import sparkline
from pipelines.tables import number_text, print_table, room_of
from pipelines.terminal import styled
from warehouse.wording import counted

_SHOWN_METRICS = 3
_WIDE = 130
_COLOURS = {
    "drift": "red",
    "nonfinite": "red",
    "initial_mismatch": "magenta",
    "parity_broken": "magenta",
    "decoupled_only": "green",
    "within_floor": "green",
    "insufficient": "yellow",
}


@dataclass(frozen=True)
class Moved:
    """A metric that drifted: its rank, where its onset lies, how likely it was the first, its difference as a line."""

    rank: int
    metric: str
    category: str
    stage: str
    onset_step: int | None
    onset_step_low: int | None
    onset_step_high: int | None
    probability_first: float | None
    is_tied: bool
    sparkline: str = ""


@dataclass(frozen=True)
class FirstDifference:
    """The first step at which a metric of the two runs is not equal; None where it never differs."""

    metric: str
    step: int | None


@dataclass(frozen=True)
class Anomaly:
    """A rule that the candidate breaks, by severity, with its first step and number of steps."""

    metric: str
    rule_id: str
    severity: str
    first_step: int
    steps: int
    observed: str
    cause: str | None


@dataclass(frozen=True)
class PairView:
    """One pair as it is shown.

    `also` is what the verdict leaves alone and a reader must not miss: not finite, slower or faster, a broken rule.
    """

    baseline: str
    candidate: str
    pair_kind: str
    how_paired: str
    verdict: str
    grade: str
    reason: str
    also: str
    time_verdict: str
    nonfinite_metrics: str
    parity: str
    moved: list[Moved]
    tied_metrics: int
    stage_probability: float | None
    first_differences: list[FirstDifference]
    anomalies: list[Anomaly]


@dataclass(frozen=True)
class MigrationView:
    """A migration as it is shown: its pairs, candidates before replicates."""

    migration: str
    pairs: list[PairView]


def migration_views(con: duckdb.DuckDBPyConnection, migration: str = "") -> list[MigrationView]:
    """Read what is to be shown from the published file.

    Args:
        con: A read-only connection to the published file.
        migration: Name of a migration; all of them without it.

    Raises:
        ValueError: If there is no migration of that name.
    """
    names = [n for (n,) in con.execute("select distinct migration from dim_run order by migration").fetchall()]
    if migration and migration not in names:
        raise ValueError(f"There is no migration called {migration}; there are: {', '.join(names) or 'none yet'}.")
    return [MigrationView(name, _pairs(con, name)) for name in names if not migration or name == migration]


def _pairs(con: duckdb.DuckDBPyConnection, migration: str) -> list[PairView]:
    rows = con.execute(
        """
        select
            p.pair_id, p.candidate_run_id, p.baseline_run_name, p.candidate_run_name, p.pair_kind, p.how_paired,
            v.verdict, v.grade, v.reason, v.time_verdict, v.nonfinite_metrics
        from dim_migration as p
        inner join mart_pair_verdict as v on p.pair_id = v.pair_id
        where p.migration = ?
        order by p.pair_kind = 'replicate', p.candidate_run_name, p.baseline_run_name
        """,
        [migration],
    ).fetchall()
    also = {
        (row["migration"], row["candidate"], row["baseline"]): row["also"] or ""
        for row in run_question(con, "verdicts", {}).to_pylist()
    }
    return [
        PairView(
            *row[2:9],
            also=also.get((migration, row[3], row[2]), ""),
            time_verdict=number_text(row[9]),
            nonfinite_metrics=", ".join(f"{m['metric']} from step {m['step']}" for m in row[10] or []),
            parity=_parity(con, row[0]),
            moved=_moved(con, row[0]),
            **_ties(con, row[0]),
            first_differences=_first_differences(con, row[0]),
            anomalies=_anomalies(con, row[1]),
        )
        for row in rows
    ]


def _moved(con: duckdb.DuckDBPyConnection, pair_id: int) -> list[Moved]:
    rows = con.execute(
        """
        select rank, metric, category, stage, onset_step, onset_step_low, onset_step_high, probability_first, is_tied
        from mart_first_drift
        where pair_id = ?
        order by rank
        limit ?
        """,
        [pair_id, _SHOWN_METRICS],
    ).fetchall()
    return [Moved(*row, sparkline=_difference_line(con, pair_id, row[1])) for row in rows]


def _difference_line(con: duckdb.DuckDBPyConnection, pair_id: int, metric: str) -> str:
    """Return how far the runs are apart along the steps, in the noise of equal runs where that is known."""
    rows = con.execute(
        """
        select
            case
                when candidate_kind not in ('finite', 'rewritten_suspect') then 'nan'::double
                else coalesce(standardised_delta, delta)
            end
        from mart_paired_delta
        where pair_id = ? and metric = ? and candidate_kind is not null
        order by step_axis, step
        """,
        [pair_id, metric],
    ).fetchall()
    return sparkline([value for (value,) in rows])


def _ties(con: duckdb.DuckDBPyConnection, pair_id: int) -> dict:
    """Return how many metrics may have been first, and the chance that one of the first metric's stage was."""
    ((tied, probability),) = con.execute(
        """
        select count(*) filter (where is_tied), sum(probability_first) filter (
            where stage = (select stage from mart_first_drift where pair_id = $pair and rank = 1))
        from mart_first_drift
        where pair_id = $pair
        """,
        {"pair": pair_id},
    ).fetchall()
    return {"tied_metrics": tied, "stage_probability": probability}


def _first_differences(con: duckdb.DuckDBPyConnection, pair_id: int) -> list[FirstDifference]:
    """Return the first difference of the loss and of the other focus metrics that are no times."""
    rows = con.execute(
        """
        select o.metric, case when not o.is_censored then o.onset_step end
        from mart_divergence_onset as o
        inner join dim_metric as m on o.metric = m.metric
        where o.pair_id = ? and o.onset_kind = 'first_diff' and m.focus_rank is not null and m.stage != 'time'
        order by m.focus_rank, o.metric
        """,
        [pair_id],
    ).fetchall()
    return [FirstDifference(*row) for row in rows]


def _parity(con: duckdb.DuckDBPyConnection, pair_id: int) -> str:
    rows = con.execute(
        """
        select count(*), count(*) filter (where not o.is_censored),
            min(o.onset_step) filter (where not o.is_censored)
        from mart_divergence_onset as o
        inner join dim_metric as m on o.metric = m.metric
        where o.pair_id = ? and o.onset_kind = 'first_diff' and m.parity_class = 'exact' and m.stage = 'data'
        """,
        [pair_id],
    ).fetchall()
    metrics, broken, step = rows[0]
    if not metrics:
        return "not logged"
    return f"broken at step {step}" if broken else "equal at every step"


def _anomalies(con: duckdb.DuckDBPyConnection, run_id: int) -> list[Anomaly]:
    rows = con.execute(
        """
        select metric, rule_id, severity, min(step), count(distinct step), arg_min(observed, step),
            arg_min(cause, step)
        from mart_anomaly
        where run_id = ?
        group by metric, rule_id, severity
        order by severity, min(step), count(*) desc
        """,
        [run_id],
    ).fetchall()
    return [Anomaly(*row) for row in rows]


def print_views(views: list[MigrationView], console: Console) -> None:
    """Print migrations for a person."""
    if not views:
        console.print("The warehouse holds no migration yet.")
    for view in views:
        console.print()
        console.print(view.migration, style="bold")
        if not view.pairs:
            console.print("  no pair: nothing says which run is the baseline")
            continue
        _print_verdicts(view, console)
        for pair in view.pairs:
            if pair.pair_kind == "migration":
                _print_pair(pair, console)
        _print_replicates(view, console)


def _print_verdicts(view: MigrationView, console: Console) -> None:
    rows = []
    for pair in view.pairs:
        if pair.pair_kind == "migration":
            first = pair.moved[0] if pair.moved else None
            verdict = styled((pair.verdict, _COLOURS.get(pair.verdict, "white")))
            named = (_onset(first), first.stage, first.metric) if first else ("", "", "")
            rows.append((pair.candidate, verdict, named[0], pair.also, pair.grade, named[1], named[2]))
    columns = ["candidate", "verdict", "onset step", "also", "grade", "stage", "first to move"]
    kept = [i for i, name in enumerate(columns) if name != "also" or any(pair.also for pair in view.pairs)]
    # What a narrow terminal has no room for is said of each pair below.
    print_table([columns[i] for i in kept], [[row[i] for i in kept] for row in rows], console, may_drop=True)


def _onset(moved: Moved) -> str:
    """Return the onset with its interval, where that is wider than the step itself."""
    low, step, high = moved.onset_step_low, moved.onset_step, moved.onset_step_high
    if step is None:
        return ""
    return f"{step}" if None in (low, high) or low == high else f"{step} ({low} to {high})"


def _print_pair(pair: PairView, console: Console) -> None:
    console.print()
    console.print(styled((pair.candidate, "bold"), f" against {pair.baseline}, paired as {pair.how_paired}"))
    if pair.moved and pair.tied_metrics > 1:
        first = pair.moved[0]
        console.print(
            f"  {first.stage} moved first, at step {_onset(first)}: {pair.tied_metrics} metrics are tied, and with "
            f"probability {pair.stage_probability or 0:.2f} the first of them is of this stage.",
        )
    console.print(f"  {pair.reason}")
    if pair.moved:
        _print_moved(pair.moved, pair.tied_metrics, console)
    console.print(f"  data order: {pair.parity}")
    if pair.time_verdict:
        console.print(f"  time: {pair.time_verdict}")
    if pair.nonfinite_metrics:
        console.print(f"  not finite: {pair.nonfinite_metrics}", style="red")
    for anomaly in [a for a in pair.anomalies if a.severity == "error"][:_SHOWN_METRICS]:
        cause = f" ({anomaly.cause})" if anomaly.cause else ""
        console.print(
            f"  anomaly {anomaly.rule_id}: {anomaly.metric} is {anomaly.observed} at step {anomaly.first_step}, "
            f"{counted(anomaly.steps, 'step')} in all{cause}",
            style="red",
        )
    warnings = sum(a.steps for a in pair.anomalies if a.severity == "warning")
    if warnings:
        console.print(f"  {counted(warnings, 'warning')} in mart_anomaly")


def _print_moved(moved: list[Moved], tied_metrics: int, console: Console) -> None:
    """Print the metrics that drifted as a table, or two lines each where a table has no room."""
    rows = [
        (m.rank, m.metric, _onset(m), _probability(m), "tied" if m.is_tied and tied_metrics > 1 else "", m.sparkline)
        for m in moved
    ]
    if room_of(console) >= _WIDE:
        titles = ("rank", "metric", "onset step", "P(first)", "tied", "difference")
        print_table(titles, rows, console, indent=2)
        return
    for rank, metric, onset, probability, tied, line in rows:
        console.print(f"  {rank:>2}  {metric}", soft_wrap=True)
        facts = ", ".join(part for part in (f"step {onset}", f"P(first) {probability}", tied) if part)
        console.print(f"      {facts}  {line}")


def _probability(moved: Moved) -> str:
    return "" if moved.probability_first is None else f"{moved.probability_first:.2f}"


def _print_replicates(view: MigrationView, console: Console) -> None:
    replicates = [pair for pair in view.pairs if pair.pair_kind == "replicate"]
    if not replicates:
        return
    console.print()
    console.print(styled(("replicates", "bold"), ": equal stacks, what they differ by is the noise floor"))
    rows = []
    for pair in replicates:
        loss = next((d for d in pair.first_differences if "loss" in d.metric), None)
        step = "" if loss is None else "none" if loss.step is None else f"step {loss.step}"
        rows.append((f"{pair.baseline}, {pair.candidate}", pair.verdict, step))
    print_table(("runs", "verdict", "first difference of the loss"), rows, console, indent=2)
