"""What `firstdrift explain` prints: where each number of a verdict comes from, and the query that gives it."""

from dataclasses import dataclass

import duckdb
from rich.console import Console

from pipelines.names import listed_names, meant_name
from pipelines.tables import fits, number_text, print_records, print_shortened, print_table

_INDENT = 2
_SIDE_BY_SIDE = 4
_WIDE = 9


@dataclass(frozen=True)
class Evidence:
    """One step of an explanation.

    Attributes:
        title: What it shows.
        query: The statement that gives it from the published file.
        columns: Its columns.
        rows: Its rows.
        note: What a reader might take it for and should not; empty where it is plain.
    """

    title: str
    query: str
    columns: tuple[str, ...]
    rows: tuple[tuple, ...]
    note: str = ""


def find_pair(con: duckdb.DuckDBPyConnection, text: str) -> int:
    """Return the pair that a person means.

    Args:
        con: A read-only connection to the published file.
        text: pair_id, name of the candidate, migration/candidate, or baseline..candidate.

    Raises:
        ValueError: If no pair or more than one is meant.
    """
    migration, _, rest = text.rpartition("/")
    baseline, _, candidate = rest.rpartition("..")
    rows = con.execute(
        """
        select pair_id, migration, baseline_run_name, candidate_run_name
        from dim_migration
        where pair_id::varchar = $text
            or (candidate_run_name = $candidate
                and ($migration = '' or migration = $migration)
                and ($baseline = '' or baseline_run_name = $baseline))
        order by pair_kind, migration, baseline_run_name
        """,
        {"text": text, "candidate": candidate, "migration": migration, "baseline": baseline},
    ).fetchall()
    if len(rows) == 1:
        return rows[0][0]
    names = ", ".join(f"{m}/{b}..{c}" for _, m, b, c in rows)
    if rows:
        raise ValueError(f"{text} may mean several pairs: {names}; name one of them.")
    known = con.execute(
        "select migration || '/' || baseline_run_name || '..' || candidate_run_name from dim_migration order by all"
    ).fetchall()
    raise ValueError(f"There is no pair {text}; there are: {', '.join(n for (n,) in known) or 'none yet'}.")


_PAIR_QUESTIONS = (
    ("The pair", "select * exclude (pair_id, input_version) from dim_migration where pair_id = {pair}"),
    ("The verdict and what it stands on", "select * exclude (pair_id) from mart_pair_verdict where pair_id = {pair}"),
    (
        "Its reasons",
        "select ordinal, reason_kind, sentence, step, metric from mart_verdict_reason "
        "where pair_id = {pair} order by ordinal",
    ),
    (
        "What drifted, first to last",
        "select rank, metric, onset_step, is_tied, stage, onset_step_low, onset_step_high, probability_first, q_value "
        "from mart_first_drift where pair_id = {pair} order by rank",
    ),
    (
        "Metrics nearest to a drift",
        "select metric, statistic, threshold, onset_step, q_value, effect_in_sigma, smallest_detectable_shift, "
        "floor_source, p_value, is_censored from mart_divergence_onset "
        "where pair_id = {pair} and onset_kind = 'drift' order by p_value, metric limit 10",
    ),
)
_NOTES = {
    "Its reasons": "Unequal is not lost: a first unequal value is rounding; step-by-step equality is lost (decouple) "
    "once the differences are as large as those between equal runs.",
    "What drifted, first to last": "Tied metrics moved within one interval: their order is no evidence, "
    "their stage is.",
}
_OF_THE_DRIFT = (
    "from mart_paired_delta as d inner join mart_divergence_onset as o "
    "on d.pair_id = o.pair_id and d.metric_id = o.metric_id and d.step_axis = o.step_axis "
    "where d.pair_id = {pair} and d.metric = {metric} and o.onset_kind = 'drift' "
)
# The fit of int_level_fit for one series, from the published differences.
_FIT_AGAIN = (
    "with series as (select d.step_axis, d.step, 1.0 / (d.sigma * d.sigma) as w, drawn_in(d.adjusted_delta - "
    "median(d.adjusted_delta) over (partition by d.step_axis), greatest(d.sigma, coalesce(d.local_sigma, 0.0))) as d, "
    "o.inflation, o.interval_inflation, o.is_censored "
    f"{_OF_THE_DRIFT}and d.is_comparable and d.sigma > 0), "
    "running as (select *, row_number() over along - 1 as k, count(*) over whole as n, "
    "sum(w) over along - w as left_weight, sum(w * d) over along - w * d as left_sum, sum(w) over whole as weight, "
    "sum(w * d) over whole as total, sum(w * d * d) over whole as squares from series "
    "window along as (partition by step_axis order by step rows unbounded preceding), "
    "whole as (partition by step_axis)), "
    "splits as (select *, weighted_sse(left_weight, left_sum, weight, total, squares) as sse from running "
    "where k between shortest_segment(n) and n - shortest_segment(n)), "
    "compared as (select *, (sse - min(sse) over whole) "
    "/ (residual_variance(min(sse) over whole, n) * interval_inflation) as lr "
    "from splits window whole as (partition by step_axis)) "
    "select step_axis, any_value(n) as steps, "
    "arg_min(step, sse) filter (where not is_censored) as onset_step, "
    "min(step) filter (where lr <= interval_limit() and not is_censored) as onset_step_low, "
    "max(step) filter (where lr <= interval_limit() and not is_censored) as onset_step_high, "
    "max(split_f(left_weight, left_sum, weight, total, squares, n)) as f, any_value(inflation) as inflation, "
    "max(split_f(left_weight, left_sum, weight, total, squares, n) / inflation) as statistic, "
    "largest_f_limit(any_value(n)) as threshold, "
    "largest_f_p(max(split_f(left_weight, left_sum, weight, total, squares, n) / inflation), any_value(n)) as p_value "
    "from compared group by step_axis order by step_axis"
)
_METRIC_QUESTIONS = (
    (
        "How the metric is compared",
        "select metric, scale, scale_constant, parity_class, practical_limit, practical_limit_kind, "
        "practical_limit_source from dim_metric where metric = {metric}",
    ),
    (
        "The noise floor of its replicates",
        "select f.* exclude (metric_id) from mart_noise_floor as f inner join dim_migration as p "
        "on f.migration = p.migration and f.stack in (p.baseline_stack, p.candidate_stack) "
        "where p.pair_id = {pair} and f.metric = {metric}",
    ),
    (
        "Its onsets: floor and its source, statistic, threshold, interval",
        "select onset_kind, * exclude (pair_id, migration, metric_id, metric, onset_kind) from mart_divergence_onset "
        "where pair_id = {pair} and metric = {metric} order by onset_kind",
    ),
    ("Statistic and interval of a step, reckoned anew from the differences", _FIT_AGAIN),
)
_MEANS = (
    "count(*) as steps, avg(d.delta) as mean_delta, avg(d.adjusted_delta) as mean_adjusted_delta, "
    f"avg(d.sigma) as mean_sigma {_OF_THE_DRIFT}and d.is_comparable"
)
_STEPS = (
    "select d.step, d.baseline_value, d.candidate_value, d.delta, d.standardised_delta, d.is_comparable "
    f"{_OF_THE_DRIFT}and d.step between "
)
_QUESTIONS_WITH_ONSET = (
    (
        "The difference before and after the onset",
        f"select d.step >= o.onset_step as is_after, {_MEANS} group by all order by all",
    ),
    ("The steps around the onset", f"{_STEPS}o.onset_step - 4 and o.onset_step + 4 order by d.step"),
)
_QUESTIONS_WITHOUT_ONSET = (
    ("The difference over all steps: it has no onset", f"select {_MEANS}"),
    ("The last steps, since there is no onset", f"{_STEPS}o.censored_at - 8 and o.censored_at order by d.step"),
)


def explain(con: duckdb.DuckDBPyConnection, pair: str, metric: str = "") -> list[Evidence]:
    """Return the evidence for the verdict of a pair, or for one of its metrics.

    Args:
        con: A read-only connection to the published file.
        pair: The pair, as `find_pair` takes it.
        metric: Name of a metric, as `meant_name` takes it; the pair as a whole without it.

    Raises:
        ValueError: If the pair or the metric is not known.
    """
    pair_id = find_pair(con, pair)
    if not metric:
        return [_evidence(con, title, query.format(pair=pair_id)) for title, query in _PAIR_QUESTIONS]
    metric = _meant_metric(con, pair, pair_id, metric)
    has_onset = con.execute(
        "select count(*) from mart_divergence_onset "
        "where pair_id = ? and metric = ? and onset_kind = 'drift' and not is_censored",
        [pair_id, metric],
    ).fetchall()
    quoted = "'" + metric.replace("'", "''") + "'"
    last = _QUESTIONS_WITH_ONSET if has_onset[0][0] else _QUESTIONS_WITHOUT_ONSET
    return [
        _evidence(con, title, query.format(pair=pair_id, metric=quoted)) for title, query in _METRIC_QUESTIONS + last
    ]


def _meant_metric(con: duckdb.DuckDBPyConnection, pair: str, pair_id: int, text: str) -> str:
    rows = con.execute("select distinct metric from mart_paired_delta where pair_id = ? order by 1", [pair_id])
    known = [name for (name,) in rows.fetchall()]
    metric = meant_name(con, text, known)
    if metric is None:
        raise ValueError(
            f"No run of the pair {pair} logged {text}; there are {listed_names(known, text)}. "
            f"`firstdrift metrics {text}` looks it up."
        )
    return metric


def _evidence(con: duckdb.DuckDBPyConnection, title: str, query: str) -> Evidence:
    relation = con.sql(query)
    return Evidence(title, query, tuple(relation.columns), tuple(relation.fetchall()), _NOTES.get(title, ""))


def print_evidence(evidence: list[Evidence], console: Console) -> None:
    """Print an explanation for a person."""
    for part in evidence:
        console.print()
        console.print(part.title, style="bold")
        if not part.rows:
            console.print("  nothing")
        else:
            _print_rows(part, console)
        if part.note and part.rows:
            console.print(f"  {part.note}")
        console.print(f"  {part.query};", style="dim")


def _print_rows(part: Evidence, console: Console) -> None:
    """Print a wide row as a line for each column, a few of them side by side, and what is left as a table."""
    if len(part.rows) == 1:
        print_records(part.columns, part.rows, console, indent=_INDENT)
        return
    if len(part.columns) > _WIDE and len(part.rows) <= _SIDE_BY_SIDE:
        head, *facts = [(name, *(row[index] for row in part.rows)) for index, name in enumerate(part.columns)]
        titles = [number_text(value) for value in head]
        if fits(titles, facts, console, indent=_INDENT):
            print_table(titles, facts, console, indent=_INDENT)
        else:
            print_records(part.columns, part.rows, console, indent=_INDENT)
        return
    print_shortened(part.columns, part.rows, console, indent=_INDENT)
