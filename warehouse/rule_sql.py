"""Rules as SQL: templates bound to the metrics at hand, comparisons made tolerant, names made columns.

Pure: text in, text out. Running the SQL is in warehouse/rules.py. The expressions of catalog/rules are
parsed here with sqlglot, so that a mistake is reported with the rule's file and line.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from warehouse.catalog_model import CatalogError, Rule
from warehouse.templates import PLACEHOLDER, fill, match

_TOLERANT = (exp.LTE, exp.GTE, exp.EQ)


@dataclass(frozen=True)
class RuleInstance:
    """A rule bound to metrics that are there.

    Attributes:
        rule: The rule.
        metric: The metric that a break is charged to.
        expression: The expression with its placeholders filled in.
        metrics: Metrics that it reads, in the order of first mention.
    """

    rule: Rule
    metric: str
    expression: str
    metrics: tuple[str, ...]


def parse_expression(rule: Rule) -> exp.Expr:
    """Return the syntax tree of a rule's expression.

    Raises:
        CatalogError: If it is not one SQL expression over metric names in double quotes.
    """
    # Names keep their placeholders; one that stands outside of a name is a number.
    parts = rule.expression.split('"')
    text = '"'.join(part if n % 2 else PLACEHOLDER.sub("1", part) for n, part in enumerate(parts))
    try:
        selected = _selected(text)
    except SqlglotError as error:
        raise CatalogError(
            f"{rule.source}: the expression of {rule.rule_id} is not SQL ({str(error).splitlines()[0]}); "
            'write metric names in double quotes, such as "time/step" >= 0.'
        ) from error
    columns = [] if selected is None else list(selected.find_all(exp.Column))
    if selected is None or not columns or any(not c.this.quoted for c in columns):
        raise CatalogError(
            f"{rule.source}: the expression of {rule.rule_id} must be one comparison of metric names in "
            'double quotes, such as "time/step" >= 0.'
        )
    return selected


def instances(rules: Iterable[Rule], metrics: Iterable[str]) -> tuple[RuleInstance, ...]:
    """Bind the expression rules to the metrics at hand.

    A rule without placeholders is bound once, if every metric is there that it can't do without: those
    inside `coalesce(...)` may be missing. A rule with placeholders is bound for every way to fill them.
    """
    known = frozenset(metrics)
    ordered = sorted(known)
    found = []
    for rule in rules:
        if rule.kind != "expression":
            continue
        names, required = _metric_names(rule)
        for values in _bindings(rule, required, ordered):
            filled = [fill(name, values) for name in names]
            if all(fill(name, values) in known for name in required):
                text = fill(rule.expression, values)
                present = tuple(name for name in filled if name in known)
                found.append(RuleInstance(rule, fill(rule.metric, values), text, present))
    return tuple(found)


def condition(instance: RuleInstance, columns: Mapping[str, str]) -> str:
    """Return SQL that is true where the rule is broken, null where a value is missing.

    Args:
        instance: The bound rule.
        columns: For each metric the column that holds its value. Beside them the relation must have
            `precision_relative` and `precision_absolute`: what the log of the run rounds away.
    """
    tree = _selected(instance.expression)
    assert tree is not None, "instances() has parsed the expression before"
    rule = instance.rule
    for node in list(tree.find_all(*_TOLERANT)):
        if not any(isinstance(side, exp.Predicate | exp.Paren) and side.find(exp.Predicate) for side in _sides(node)):
            # Built from the sides as they are now, so nested comparisons would be wrong; the grammar has none.
            tree = _replaced(tree, node, _tolerant(node, rule))
    for column in list(tree.find_all(exp.Column)):
        name = column.name
        if name in _PRECISION:
            continue
        new = exp.column(columns[name]) if name in columns else exp.Null()
        tree = _replaced(tree, column, new)
    return f"not ({tree.sql(dialect='duckdb')})"


_PRECISION = ("precision_relative", "precision_absolute")


def _sides(node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    return node.args["this"], node.args["expression"]


def _replaced(tree: exp.Expr, old: exp.Expr, new: exp.Expr) -> exp.Expr:
    if old is tree:
        return new
    old.replace(new)
    return tree


def _tolerant(node: exp.Expr, rule: Rule) -> exp.Expr:
    """Return a comparison that allows for the rule's tolerance and for the precision of the log.

    The values carry a relative error of what frameworks compute in single precision, and each of them
    the rounding of the log: relative for binary floats and significant digits, absolute for decimals.
    """
    left, right = (side.sql(dialect="duckdb") for side in _sides(node))
    columns = list(dict.fromkeys(c.sql(dialect="duckdb") for c in node.find_all(exp.Column)))
    size = " + ".join(f"coalesce(abs({c}), 0)" for c in columns)
    allowed = (
        f"{rule.absolute_tolerance!r} + {rule.relative_tolerance!r} * greatest(abs({left}), abs({right})) "
        f"+ precision_relative * ({size}) + precision_absolute * {len(columns)}"
    )
    if isinstance(node, exp.LTE):
        text = f"({left}) <= ({right}) + {allowed}"
    elif isinstance(node, exp.GTE):
        text = f"({left}) + {allowed} >= ({right})"
    else:
        text = f"abs(({left}) - ({right})) <= {allowed}"
    made = _selected(f"({text})")
    assert made is not None, text
    return made


def _selected(text: str) -> exp.Expr | None:
    """Return the syntax tree of one SQL expression, None where `text` holds several."""
    tree = sqlglot.parse_one(f"select {text}", dialect="duckdb")
    return tree.selects[0] if isinstance(tree, exp.Select) and len(tree.selects) == 1 else None


@lru_cache(maxsize=1024)
def _metric_names(rule: Rule) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that an expression reads, and those of them that it can't do without."""
    tree = parse_expression(rule)
    names, optional = [], set()
    for column in tree.find_all(exp.Column, bfs=False):
        names.append(column.name)
        if column.find_ancestor(exp.Coalesce):
            optional.add(column.name)
    unique = tuple(dict.fromkeys(names))
    return unique, tuple(n for n in unique if n not in optional)


def _bindings(rule: Rule, required: tuple[str, ...], metrics: list[str]) -> list[dict[str, str]]:
    """Return every way to fill the placeholders so that each template fits a metric."""
    if not PLACEHOLDER.search(rule.expression):
        return [{}]
    templates = [name for name in required if PLACEHOLDER.search(name)]
    bound: list[dict[str, str]] = [{}]
    for template in templates:
        options = [values for name in metrics if (values := match(template, name)) is not None]
        bound = [
            {**one, **other}
            for one, other in product(bound, options)
            if all(one.get(key, value) == value for key, value in other.items())
        ]
    unique = {tuple(sorted(values.items())): values for values in bound}
    return [values for values in unique.values() if _where(rule, values)]


def _where(rule: Rule, values: Mapping[str, str]) -> bool:
    """Tell whether the placeholders fulfil the rule's `where`, a comparison such as `k < k2`."""
    if not rule.where:
        return True
    left, operator, right = (*rule.where.split(), "", "", "")[:3]
    if operator != "<" or not (values.get(left, "").isdigit() and values.get(right, "").isdigit()):
        raise CatalogError(
            f"{rule.source}: column where: {rule.where!r} can't be compared; write two numeric placeholders "
            "of the expression, such as k < k2."
        )
    return int(values[left]) < int(values[right])
