"""What a page shows, read from the published file as plain data. How it looks is not decided here."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from warehouse.report.sampling import Floats, Steps
from warehouse.settings import project_folder

Row = dict[str, Any]
KINDS = ("first_diff", "decouple", "drift")


@dataclass(frozen=True)
class Series:
    """A metric of both runs of a pair, step by step; all arrays have shape (n,).

    Attributes:
        steps: Steps that at least one of the runs logged, ascending.
        baseline: Values of the baseline; NaN where it logged none.
        candidate: Values of the candidate, likewise.
        delta: Candidate minus baseline where both are finite.
        standardised: Delta less the stack offset, in the noise of equal runs.
        offset: Offset between the stacks, on the comparison scale.
        sigma: Noise of equal runs, on the comparison scale.
        baseline_broken: The baseline logged something that is not finite.
        candidate_broken: The candidate did.
    """

    steps: Steps
    baseline: Floats
    candidate: Floats
    delta: Floats
    standardised: Floats
    offset: Floats
    sigma: Floats
    baseline_broken: np.ndarray
    candidate_broken: np.ndarray


@dataclass(frozen=True)
class PairPage:
    """All that is shown of one pair."""

    pair: Row
    verdict: Row
    metrics: list[Row]
    onsets: list[Row]
    reference: dict[str, float]
    series: dict[tuple[str, str], Series]
    stack: list[Row]
    config: list[Row]
    anomalies: list[Row]
    parity: list[Row]
    coverage: list[Row]
    phases: list[Row]
    time_shifts: list[Row]
    restarts: list[int]
    advice: str


@dataclass(frozen=True)
class MigrationPage:
    """All that is shown of one migration."""

    migration: str
    pairs: list[PairPage]
    replicates: list[Row]
    runs: list[Row]


def rows(con: duckdb.DuckDBPyConnection, sql: str, parameters: Any = None) -> list[Row]:
    """Return the rows of a statement as dictionaries."""
    result = con.execute(sql, parameters) if parameters is not None else con.execute(sql)
    names = [column[0] for column in result.description or []]
    return [dict(zip(names, values, strict=True)) for values in result.fetchall()]


Answers = dict[tuple[str, tuple[tuple[str, str], ...]], list[Row]]
"""The rows of questions that were asked already, by question and parameters."""


def question_rows(
    con: duckdb.DuckDBPyConnection, answers: Answers, question: str, given: dict[str, str], match: Row
) -> list[Row]:
    """Ask a file of sql/queries and keep the rows that hold the values of `match`, in its order.

    A question is answered for all pairs at once, so it is asked once for all pages.
    """
    key = (question, tuple(sorted(given.items())))
    if key not in answers:
        sql = (project_folder("sql") / "queries" / f"{question}.sql").read_text(encoding="utf-8")
        answers[key] = rows(con, sql, given or None)
    return [row for row in answers[key] if all(row[name] == value for name, value in match.items())]


def migration_names(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the migrations that have runs, in the order of names."""
    found = con.execute("select distinct migration from dim_run order by migration").fetchall()
    return [name for (name,) in found]


def read_migration(con: duckdb.DuckDBPyConnection, migration: str, answers: Answers) -> MigrationPage:
    """Read all that the page of a migration shows; `answers` is filled for the pages after it."""
    pairs = rows(
        con,
        """
        select * from dim_migration where migration = ? and pair_kind = 'migration'
        order by candidate_run_name, baseline_run_name
        """,
        [migration],
    )
    replicates = rows(
        con,
        """
        select
            pairs.baseline_run_name as one_run, pairs.candidate_run_name as other_run, verdicts.verdict,
            verdicts.first_different_step, verdicts.decoupled_at, verdicts.last_common_step
        from dim_migration as pairs
        inner join mart_pair_verdict as verdicts on pairs.pair_id = verdicts.pair_id
        where pairs.migration = ? and pairs.pair_kind = 'replicate'
        order by one_run, other_run
        """,
        [migration],
    )
    runs = rows(
        con,
        """
        select runs.*, health.restart_count, health.step_count, health.missing_steps, health.metric_count,
            health.focus_metrics_logged, health.focus_metrics, health.nonfinite_points, health.error_count,
            health.warning_count, health.quarantined_lines
        from dim_run as runs
        left join mart_run_health as health on runs.run_id = health.run_id
        where runs.migration = ?
        order by runs.role, runs.run_name
        """,
        [migration],
    )
    return MigrationPage(migration, [_read_pair(con, pair, answers) for pair in pairs], replicates, runs)


def _read_pair(con: duckdb.DuckDBPyConnection, pair: Row, answers: Answers) -> PairPage:
    pair_id = pair["pair_id"]
    key = {"migration": pair["migration"], "candidate": pair["candidate_run_name"]}
    verdict = rows(con, "select * from mart_pair_verdict where pair_id = ?", [pair_id])
    advice = question_rows(con, answers, "what_would_raise_the_grade", {}, key)
    return PairPage(
        pair=pair,
        verdict=verdict[0] if verdict else {"verdict": "insufficient", "grade": "", "reason": "Not judged yet."},
        metrics=_metrics(con, pair_id),
        onsets=_onsets(con, pair_id),
        reference=_reference(con, pair["migration"]),
        series=_series(con, pair_id),
        stack=question_rows(con, answers, "stack_differences", {}, key),
        config=question_rows(con, answers, "config_differences", {}, key),
        anomalies=_anomalies(con, pair["candidate_run_id"]),
        parity=question_rows(con, answers, "parity", {}, {**key, "baseline": pair["baseline_run_name"]}),
        coverage=_coverage(con, pair, answers),
        phases=question_rows(con, answers, "slowest_stages", {"metric": "time/step"}, key),
        time_shifts=rows(
            con, "select metric, ratio, onset_step, sentence from mart_time_shift where pair_id = ?", [pair_id]
        ),
        restarts=_restarts(con, pair),
        advice=advice[0]["advice"] if advice else "",
    )


def _metrics(con: duckdb.DuckDBPyConnection, pair_id: int) -> list[Row]:
    """Return the metrics of the pair: drifted ones by rank, then the others by how nearly they drifted."""
    return rows(
        con,
        """
        with drifts as (
            select * from mart_divergence_onset where pair_id = $pair and onset_kind = 'drift'
        ),
        decouples as (
            select * from mart_divergence_onset where pair_id = $pair and onset_kind = 'decouple'
        ),
        differences as (
            select * from mart_divergence_onset where pair_id = $pair and onset_kind = 'first_diff'
        )
        select
            metrics.metric, metrics.category, metrics.stage, metrics.label_en, metrics.label_zh, metrics.meaning,
            metrics.advice, metrics.unit, metrics.scale, metrics.scale_constant, metrics.focus_rank,
            metrics.duplicates_of, differences.step_axis,
            case when not differences.is_censored then differences.onset_step end as first_diff,
            case when not decouples.is_censored then decouples.onset_step end as decouple,
            case when not drifts.is_censored then drifts.onset_step end as drift,
            drifts.onset_step_low, drifts.onset_step_high, drifts.q_value, drifts.raw_effect, drifts.effect_in_sigma,
            drifts.smallest_detectable_shift, ranked.rank, ranked.probability_first, ranked.is_tied
        from differences
        inner join dim_metric as metrics on differences.metric = metrics.metric
        left join decouples
            on differences.metric = decouples.metric and differences.step_axis = decouples.step_axis
        left join drifts on differences.metric = drifts.metric and differences.step_axis = drifts.step_axis
        left join mart_first_drift as ranked
            on
                ranked.pair_id = $pair and differences.metric = ranked.metric
                and differences.step_axis = ranked.step_axis
        order by ranked.rank nulls last, drift is null, drifts.q_value nulls last, metrics.metric
        """,
        {"pair": pair_id},
    )


def _onsets(con: duckdb.DuckDBPyConnection, pair_id: int) -> list[Row]:
    """Return the earliest onset of each kind in each category, or how long there was none."""
    return rows(
        con,
        """
        select
            onsets.category, categories.label_en, categories.label_zh, categories.causal_tier,
            categories.ordinal, onsets.onset_kind,
            min(case when not onsets.is_censored then onsets.onset_step end) as onset_step,
            arg_min(onsets.onset_step_low, case when not onsets.is_censored then onsets.onset_step end) as low,
            arg_min(onsets.onset_step_high, case when not onsets.is_censored then onsets.onset_step end) as high,
            max(onsets.censored_at) as last_step
        from mart_divergence_onset as onsets
        inner join dim_category as categories on onsets.category = categories.category
        where onsets.pair_id = ?
        group by all
        order by categories.causal_tier, categories.ordinal, onsets.onset_kind
        """,
        [pair_id],
    )


def _reference(con: duckdb.DuckDBPyConnection, migration: str) -> dict[str, float]:
    """Return by category the median step at which pairs of equal runs decouple."""
    found = con.execute(
        """
        with earliest as (
            select onsets.pair_id, onsets.category, min(onsets.onset_step) as onset_step
            from mart_divergence_onset as onsets
            inner join dim_migration as pairs on onsets.pair_id = pairs.pair_id
            where pairs.migration = ? and pairs.pair_kind = 'replicate'
                and onsets.onset_kind = 'decouple' and not onsets.is_censored
            group by onsets.pair_id, onsets.category
        )
        select category, median(onset_step) from earliest group by category
        """,
        [migration],
    ).fetchall()
    return dict(found)


def _series(con: duckdb.DuckDBPyConnection, pair_id: int) -> dict[tuple[str, str], Series]:
    columns = con.execute(
        """
        select metric, step_axis, step, baseline_value, candidate_value, delta, standardised_delta, stack_offset,
            sigma,
            coalesce(baseline_kind not in ('finite', 'rewritten_suspect'), false) as baseline_broken,
            coalesce(candidate_kind not in ('finite', 'rewritten_suspect'), false) as candidate_broken
        from mart_paired_delta
        where pair_id = ?
        order by metric, step_axis, step
        """,
        [pair_id],
    ).fetchnumpy()
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, key in enumerate(zip(columns["metric"], columns["step_axis"], strict=True)):
        groups[key].append(index)
    return {key: _one_series(columns, indices[0], indices[-1] + 1) for key, indices in groups.items()}


def _one_series(columns: dict[str, Any], start: int, stop: int) -> Series:
    def floats(name: str) -> Floats:
        part = columns[name][start:stop]
        return np.asarray(np.ma.filled(np.ma.asarray(part, dtype=np.float64), np.nan))

    def flags(name: str) -> np.ndarray:
        return np.asarray(np.ma.filled(columns[name][start:stop], False), dtype=bool)

    return Series(
        steps=np.asarray(columns["step"][start:stop], dtype=np.int64),
        baseline=floats("baseline_value"),
        candidate=floats("candidate_value"),
        delta=floats("delta"),
        standardised=floats("standardised_delta"),
        offset=floats("stack_offset"),
        sigma=floats("sigma"),
        baseline_broken=flags("baseline_broken"),
        candidate_broken=flags("candidate_broken"),
    )


def _anomalies(con: duckdb.DuckDBPyConnection, run_id: int) -> list[Row]:
    return rows(
        con,
        """
        select
            anomalies.severity, anomalies.rule_id, anomalies.metric, count(distinct anomalies.step) as steps,
            min(anomalies.step) as first_step, arg_min(anomalies.observed, anomalies.step) as observed,
            arg_min(anomalies.expected, anomalies.step) as expected, arg_min(anomalies.cause, anomalies.step) as cause,
            any_value(anomalies.meaning) as meaning
        from mart_anomaly as anomalies
        where anomalies.run_id = ?
        group by anomalies.severity, anomalies.rule_id, anomalies.metric
        order by
            case anomalies.severity when 'error' then 1 when 'warning' then 2 else 3 end, first_step,
            anomalies.rule_id, anomalies.metric
        """,
        [run_id],
    )


def _coverage(con: duckdb.DuckDBPyConnection, pair: Row, answers: Answers) -> list[Row]:
    return [
        row
        for run in ("baseline", "candidate")
        for row in question_rows(
            con, answers, "coverage", {}, {"migration": pair["migration"], "run_name": pair[f"{run}_run_name"]}
        )
    ]


def _restarts(con: duckdb.DuckDBPyConnection, pair: Row) -> list[int]:
    """Return the steps at which a later attempt of one of the two runs began."""
    found = con.execute(
        """
        select distinct min(step) as step
        from dim_step
        where run_id in (?, ?) and attempt > 1
        group by run_id, step_axis, attempt
        order by step
        """,
        [pair["baseline_run_id"], pair["candidate_run_id"]],
    ).fetchall()
    return [step for (step,) in found]
