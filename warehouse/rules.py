"""Checking the rules of a step on every loaded run, in few passes over the facts.

One pass over the narrow table finds what a single value shows: not finite, out of its domain, not whole,
falling. A second one pivots the metrics that rules compare to one row a step and evaluates all of them
there. How a rule becomes SQL is in warehouse/rule_sql.py; what breaks mean together is told by
models/marts/mart_anomaly.sql.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import duckdb

from warehouse.catalog_model import Rule
from warehouse.rule_sql import RuleInstance, condition, instances

WIDEST_PIVOT: Final = 400
"""Metrics in one pivot; more are split into several, since each column costs memory in every group."""

_PRECISION: Final = {
    "float64": (0.0, 0.0),
    "float32": (1.2e-7, 0.0),
    "decimal3": (0.0, 5.001e-4),
    "digits4": (5.001e-4, 0.0),
    "text": (1e-6, 0.0),
}
"""What a log of each precision rounds away from a value: relative, absolute."""

_SINGLE_KINDS: Final = ("finite", "domain", "integer", "monotone", "steady")

# The runs, each with what its log rounds away.
_RUNS_SQL: Final = f"""
select
    run_id,
    regexp_replace(lower(coalesce(framework, '')), '[^a-z0-9]', '', 'g') as framework,
    (case log_precision
        {" ".join(f"when '{name}' then {rel!r}" for name, (rel, _) in _PRECISION.items())}
        else 0 end)::double as precision_relative,
    (case log_precision
        {" ".join(f"when '{name}' then {absolute!r}" for name, (_, absolute) in _PRECISION.items())}
        else 0 end)::double as precision_absolute
from dim_run"""


@dataclass(frozen=True)
class RuleRefresh:
    """What a check of the rules did.

    Attributes:
        breaks: Rows now stored for the checked runs.
        instances: Comparisons that were evaluated for each step.
        passes: Passes over the facts.
    """

    breaks: int
    instances: int
    passes: int


def refresh_rule_breaks(
    con: duckdb.DuckDBPyConnection, rules: Sequence[Rule], run_ids: Iterable[int] | None = None
) -> RuleRefresh:
    """Replace the rows of fct_rule_break for the given runs.

    Only current points are judged: a step that a later attempt logged again counts once.

    Args:
        con: A connection to the working file. The statements run in the caller's transaction, if any.
        rules: The rules of the catalogue; they are compiled once.
        run_ids: Runs to check; None for all.

    Raises:
        CatalogError: If a rule is not one that can be compiled.
    """
    con.execute("create or replace temp table _rule_run as " + _RUNS_SQL)
    if run_ids is not None:
        con.execute("delete from _rule_run where not list_contains(?::bigint[], run_id)", [list(run_ids)])
    con.execute(
        """
        delete from fct_rule_break
        where run_id in (select run_id from _rule_run) or run_id not in (select run_id from dim_run)
        """
    )
    metric_ids = dict(con.execute("select metric, metric_id from dim_metric").fetchall())
    bound = instances(rules, metric_ids)
    statements = []
    if con.execute("select 1 from _rule_run limit 1").fetchone():
        statements = [_single_value_sql(rules), *(_pivot_sql(part, metric_ids) for part in _chunks(bound))]
    for statement in statements:
        con.execute(f"insert into fct_rule_break {statement}")
    stored = con.execute(
        "select count(*) from fct_rule_break where run_id in (select run_id from _rule_run)"
    ).fetchone()
    con.execute("drop table _rule_run")
    return RuleRefresh(stored[0] if stored else 0, len(bound), len(statements))


def check_rules(rules: Iterable[Rule]) -> None:
    """Compile every rule without running it.

    Raises:
        CatalogError: If a rule is not one that can be compiled, with its file and line.
    """
    for rule in rules:
        if rule.kind == "expression":
            instances([rule], ())


def _severity(rule: Rule) -> str:
    """Return SQL for the severity of a rule in the framework of the run at hand."""
    if not rule.severity_by_framework:
        return f"'{rule.severity}'"
    cases = " ".join(f"when '{name}' then '{severity}'" for name, severity in rule.severity_by_framework)
    return f"case framework {cases} else '{rule.severity}' end"


def _single_value_sql(rules: Sequence[Rule]) -> str:
    """Return the SELECT of the breaks that a single value, or it and the one before it, shows."""
    by_kind = {kind: [r for r in rules if r.kind == kind] for kind in _SINGLE_KINDS}
    selects = [
        select
        for kind, make in (("finite", _finite), ("domain", _domain), ("integer", _integer))
        for rule in by_kind[kind]
        for select in [make(rule)]
    ]
    selects += [_monotone(rule) for rule in by_kind["monotone"]]
    selects += [_steady(rule) for rule in by_kind["steady"]]
    if not selects:
        return "select * from fct_rule_break where false"
    return "\nunion all\n".join(f"({select})" for select in selects)


_POINT = "fct_metric as p inner join _rule_run as r using (run_id) inner join dim_metric as m using (metric_id)"


def _charge(rule: Rule, observed: str, expected: str, relation: str, where: str) -> str:
    return f"""
select run_id, step_axis, attempt, step, metric, '{rule.rule_id}', {_severity(rule)}, {observed}, {expected}
from {relation}
where {where} and {_severity(rule)} <> 'off'"""


def _about(rule: Rule) -> str:
    return f" and m.metric = {_text(rule.metric)}" if rule.metric else ""


def _finite(rule: Rule) -> str:
    where = f"p.is_current and p.value_kind <> 'finite'{_about(rule)}"
    return _charge(
        rule, "coalesce(p.raw_text || ' (' || p.value_kind || ')', p.value_kind)", "'a finite number'", _POINT, where
    )


def _domain(rule: Rule) -> str:
    slack = (
        f"({rule.absolute_tolerance!r} + {rule.relative_tolerance!r} * abs(p.value) "
        "+ r.precision_relative * abs(p.value) + r.precision_absolute)"
    )
    where = f"""p.is_current and p.value_kind = 'finite'{_about(rule)}
and (
    p.value < m.domain_low - {slack} or p.value > m.domain_high + {slack}
    or (m.domain_low_open and p.value <= m.domain_low and r.precision_absolute = 0)
    or (m.domain_high_open and p.value >= m.domain_high and r.precision_absolute = 0)
)"""
    expected = """'in ' || case when m.domain_low_open or m.domain_low is null then '(' else '[' end
|| coalesce(m.domain_low::varchar, '-inf') || ', ' || coalesce(m.domain_high::varchar, 'inf')
|| case when m.domain_high_open or m.domain_high is null then ')' else ']' end"""
    return _charge(rule, "p.value::varchar", expected, _POINT, where)


def _integer(rule: Rule) -> str:
    slack = (
        f"({rule.absolute_tolerance!r} + {rule.relative_tolerance!r} * abs(p.value) "
        "+ r.precision_relative * abs(p.value) + r.precision_absolute)"
    )
    where = f"""p.is_current and p.value_kind = 'finite' and m.is_integer{_about(rule)}
and abs(p.value - round(p.value)) > {slack}"""
    return _charge(rule, "p.value::varchar", "'a whole number'", _POINT, where)


def _monotone(rule: Rule) -> str:
    relation = _with_previous(f"m.scale = 'cumulative'{_about(rule)}")
    where = "value < previous - precision_relative * abs(previous) - precision_absolute"
    return _charge(rule, "value::varchar", "'at least ' || previous || ', the value before it'", relation, where)


def _steady(rule: Rule) -> str:
    relation = _with_previous(f"m.metric = {_text(rule.metric)}")
    where = "abs(value - previous) > precision_relative * abs(previous) + 2 * precision_absolute"
    return _charge(rule, "value::varchar", "'the ' || previous || ' of the step before it'", relation, where)


def _with_previous(condition_sql: str) -> str:
    return f"""(
    select
        p.run_id, p.step_axis, p.attempt, p.step, m.metric, p.value, r.framework,
        r.precision_relative, r.precision_absolute,
        lag(p.value) over (
            partition by p.run_id, p.metric_id, p.step_axis, p.attempt order by p.step
        ) as previous
    from {_POINT}
    where p.is_current and p.value_kind = 'finite' and {condition_sql}
) as pair"""


def _chunks(bound: Sequence[RuleInstance]) -> Iterator[list[RuleInstance]]:
    """Split bound rules so that each part reads at most WIDEST_PIVOT metrics."""
    part: list[RuleInstance] = []
    names: set[str] = set()
    for instance in bound:
        wider = names | set(instance.metrics)
        if part and len(wider) > WIDEST_PIVOT:
            yield part
            part, wider = [], set(instance.metrics)
        part.append(instance)
        names = wider
    if part:
        yield part


def _pivot_sql(bound: Sequence[RuleInstance], metric_ids: dict[str, int]) -> str:
    """Return the SELECT that evaluates the rules on one row a step."""
    names = sorted({name for instance in bound for name in instance.metrics})
    columns = {name: f"m{number}" for number, name in enumerate(names)}
    conditions = [f"({condition(i, columns)} and {_severity(i.rule)} <> 'off')" for i in bound]
    # PIVOT collects the values of a step once; an aggregate with a filter for each metric takes five times as long.
    pivoted = ", ".join(f"{metric_ids[name]} as {column}" for name, column in columns.items())
    breaks = ",\n        ".join(
        f"case when {test} then {_break(instance, columns)} end"
        for test, instance in zip(conditions, bound, strict=True)
    )
    ids = ", ".join(str(metric_ids[name]) for name in names)
    return f"""
with wide as (
    pivot (
        select run_id, step_axis, attempt, step, metric_id, value
        from fct_metric
        where
            is_current and value_kind = 'finite' and metric_id in ({ids})
            and run_id in (select run_id from _rule_run)
    )
    on metric_id in ({pivoted})
    using max(value)
    group by run_id, step_axis, attempt, step
),

judged as (
    select wide.*, r.framework, r.precision_relative, r.precision_absolute
    from wide
    inner join _rule_run as r using (run_id)
),

broken as (
    select
        run_id, step_axis, attempt, step,
        unnest(list_filter([{breaks}], lambda b: b is not null)) as b
    from judged
    where {" or ".join(conditions)}
)

select run_id, step_axis, attempt, step, b.metric, b.rule_id, b.severity, b.observed, b.expected
from broken
qualify row_number() over (
    partition by run_id, step_axis, attempt, step, b.metric, b.rule_id order by b.observed
) = 1"""


def _break(instance: RuleInstance, columns: dict[str, str]) -> str:
    seen = ", ".join(f"{_text(name + ' = ')} || {columns[name]}::varchar" for name in instance.metrics)
    return (
        f"{{'metric': {_text(instance.metric)}, 'rule_id': {_text(instance.rule.rule_id)}, "
        f"'severity': {_severity(instance.rule)}, 'observed': concat_ws(', ', {seen}), "
        f"'expected': {_text(instance.expression.replace(chr(34), ''))}}}"
    )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
