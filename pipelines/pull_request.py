"""The table that people put into a pull request to show that a change of kernel, engine or hardware is safe.

What is in it is asked by sql/queries/table_for_a_pull_request.sql; here it becomes Markdown.
"""

from itertools import groupby
from typing import Any

import duckdb

from pipelines.questions import run_question
from pipelines.terminal import visible

_HEADER = (
    "| metric | baseline mean | candidate mean | difference (95% interval) | n | verdict |",
    "| --- | ---: | ---: | ---: | ---: | --- |",
)
_STRIKING = ("drift", "not finite", "must")
_LEGEND = (
    "The interval is that of the mean difference over these steps. *Drift* is a lasting change beyond what equal runs "
    "show: an offset that is there from the start, or no larger than between equal runs, is *no drift*, though its "
    "interval may exclude zero. Times are judged by their medians, from 25% on."
)


def pull_request_text(con: duckdb.DuckDBPyConnection, migration: str = "") -> str:
    """Return verdict, stack differences and the table of means of every pair as Markdown.

    Args:
        con: A read-only connection to the published file.
        migration: Name of a migration; all of them without it.

    Raises:
        ValueError: If there is no migration of that name, or it has no pair.
    """
    verdicts = [row for row in _rows(con, "verdicts", {}) if migration in ("", row["migration"])]
    if not verdicts:
        raise ValueError(
            f"There is no pair to show{f' in {migration}' if migration else ''}; `firstdrift show` lists what there is."
        )
    return "\n".join(line for verdict in verdicts for line in [*_pair_lines(con, verdict), ""])


def _pair_lines(con: duckdb.DuckDBPyConnection, verdict: dict[str, Any]) -> list[str]:
    pair = {key: verdict[key] for key in ("migration", "candidate")}
    lines = [
        f"### {_safe(verdict['candidate'])} against {_safe(verdict['baseline'])}",
        "",
        f"**{verdict['verdict']}**, grade {verdict['grade']}. {_safe(verdict['reason'])}",
        *(["", f"Also: {_safe(verdict['also'])}."] if verdict["also"] else []),
        "",
        f"Time: {_safe(verdict['time_verdict'])}.",
        "",
    ]
    differences = [
        *((r["component_kind"], r) for r in _rows(con, "stack_differences", {}) if _is_of(r, pair)),
        *((r["setting"], r) for r in _rows(con, "config_differences", {}) if _is_of(r, pair)),
    ]
    if differences:
        lines += ["| what differs | baseline | candidate |", "| --- | --- | --- |"]
        lines += [
            f"| {name} | {_safe(row['baseline_has'] or '')} | {_safe(row['candidate_has'] or '')} |"
            for name, row in differences
        ]
    else:
        lines.append("No declared component or setting differs.")
    table = [
        row
        for row in _rows(con, "table_for_a_pull_request", {"candidate": verdict["candidate"]})
        if row["migration"] == verdict["migration"] and row["baseline"] == verdict["baseline"]
    ]
    for block, rows in groupby(table, key=lambda row: row["block"]):
        lines += ["", f"{block.capitalize()}:", "", *_HEADER, *(_table_line(row) for row in rows)]
    return [*lines, "", _LEGEND] if table else lines


def _rows(con: duckdb.DuckDBPyConnection, question: str, given: dict[str, str]) -> list[dict[str, Any]]:
    return run_question(con, question, given).to_pylist()


def _is_of(row: dict[str, Any], pair: dict[str, str]) -> bool:
    return row["migration"] == pair["migration"] and row["candidate"] == pair["candidate"]


def _table_line(row: dict[str, Any]) -> str:
    difference = _short(row["difference"])
    if row["low"] is not None and row["low"] != row["high"]:
        difference += f" ({_short(row['low'])} to {_short(row['high'])})"
    verdict = f"**{row['verdict']}**" if row["verdict"].startswith(_STRIKING) else row["verdict"]
    cells = [
        f"`{_safe(row['metric'])}`",
        _short(row["baseline_mean"]),
        _short(row["candidate_mean"]),
        difference,
        str(row["n"]),
        verdict,
    ]
    return f"| {' | '.join(cells)} |"


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _safe(text: str) -> str:
    """Return a text of a log or manifest as Markdown takes it inside a table cell."""
    return visible(" ".join(str(text).split())).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
