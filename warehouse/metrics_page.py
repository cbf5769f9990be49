"""The catalogue for people: what is known about a metric, and the page about all of them.

`python -m warehouse.metrics_page` writes docs/metrics.md anew.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from warehouse.catalog import Alias, Catalog, Category, Domain, Metric, Rule, describe_metric, load_catalog
from warehouse.catalog_model import Correction
from warehouse.settings import project_folder
from warehouse.templates import match

PAGE: Final = Path("docs") / "metrics.md"


@dataclass(frozen=True)
class MetricCard:
    """All that the catalogue says about one metric.

    Attributes:
        metric: The metric.
        category: Its category.
        tier_name: Its place in the chain of causes.
        aliases: Names under which frameworks log it, merged ones first.
        rules: Rules whose break is charged to it, or that read it.
        corrections: Where the document is wrong about it.
    """

    metric: Metric
    category: Category
    tier_name: str
    aliases: tuple[Alias, ...]
    rules: tuple[Rule, ...]
    corrections: tuple[Correction, ...]


def metric_card(catalog: Catalog, name: str, framework: str = "") -> MetricCard:
    """Return the card of a metric, whatever way its name is spelled."""
    metric = describe_metric(catalog, name, framework)
    aliases = [a for a in catalog.aliases if _is(a.metric, metric.metric)]
    merged = ("exact", "scaled")
    return MetricCard(
        metric=metric,
        category=catalog.category(metric.category),
        tier_name={tier: tier_name for tier, tier_name, _ in catalog.tiers}[metric.causal_tier],
        aliases=tuple(sorted(aliases, key=lambda a: a.equivalence not in merged)),
        rules=tuple(r for r in catalog.rules if _concerns(r, metric)),
        corrections=tuple(c for c in catalog.corrections if c.metric == metric.metric),
    )


def domain_text(domain: Domain) -> str:
    """Return an interval as people write it: `(0, 1]`, `whole numbers from 1`, or `any number`."""
    if domain.low is None and domain.high is None:
        return "whole numbers" if domain.is_integer else "any number"
    left = "(" if domain.low_open or domain.low is None else "["
    right = ")" if domain.high_open or domain.high is None else "]"
    low = "-inf" if domain.low is None else f"{domain.low:g}"
    high = "inf" if domain.high is None else f"{domain.high:g}"
    return f"{'whole numbers in ' if domain.is_integer else ''}{left}{low}, {high}{right}"


def metrics_page(catalog: Catalog) -> str:
    """Return docs/metrics.md: every metric, family, alias and rule of the catalogue."""
    parts = [_HEAD, _focus(catalog), _tiers(catalog)]
    parts += [_category(catalog, c) for c in sorted(catalog.categories, key=lambda c: c.ordinal)]
    parts += [_families(catalog), _rules(catalog), _corrections(catalog), _aliases(catalog)]
    return "\n\n".join(part for part in parts if part) + "\n"


_HEAD = """# The metrics

This page is made from the files of catalog/ by `python -m warehouse.metrics_page`. Change a row there and
make the page anew; a test compares the two. `firstdrift metrics NAME` shows one metric on the terminal, with
its aliases and rules."""


def _is(template: str, name: str) -> bool:
    return template == name or match(template, name) is not None


def _concerns(rule: Rule, metric: Metric) -> bool:
    if rule.kind == "expression":
        names = rule.expression.split('"')[1::2]
        return any(_is(name, metric.metric) for name in names)
    if rule.metric:
        return rule.metric == metric.metric
    bounded = metric.domain.low is not None or metric.domain.high is not None
    applies = {
        "finite": True,
        "domain": bounded,
        "integer": metric.domain.is_integer,
        "monotone": metric.scale == "cumulative",
    }
    return applies.get(rule.kind, False)


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _focus(catalog: Catalog) -> str:
    focus = sorted((m for m in catalog.metrics if m.focus_rank), key=lambda m: m.focus_rank or 0)
    rows = [(str(m.focus_rank), f"`{m.metric}`", m.label_en, m.advice or "") for m in focus]
    return "## To look at first\n\n" + _table(("rank", "metric", "", "how to read it"), rows)


def _tiers(catalog: Catalog) -> str:
    rows = [(str(tier), name, description) for tier, name, description in catalog.tiers]
    text = (
        "## The chain of causes\n\nWhere two metrics moved at the same step, the lower tier is nearer to the cause.\n\n"
    )
    return text + _table(("tier", "", "what stands there"), rows)


def _category(catalog: Catalog, category: Category) -> str:
    metrics = [m for m in catalog.metrics if m.category == category.category and not m.is_family]
    title = f"## {category.label_en} ({category.label_zh})\n\n{category.description} A first drift here points to "
    title += f"`{category.stage}`, unless the metric says otherwise."
    return "\n\n".join([title, *(_metric(m, category) for m in metrics)])


def _metric(metric: Metric, category: Category) -> str:
    facts = [
        f"unit {metric.unit}" if metric.unit else "",
        {"up": "higher is better", "down": "lower is better", "target_0": "nearer to 0 is better",
         "target_1": "nearer to 1 is better"}.get(metric.better, ""),
        domain_text(metric.domain),
        f"compared on the scale `{metric.scale}`",
        f"tier {metric.causal_tier}",
        f"stage `{metric.stage}`" if metric.stage != category.stage else "",
        "must be equal in both runs" if metric.parity_class == "exact" else "",
        f"repeats `{metric.duplicates_of}`" if metric.duplicates_of else "",
        f"seen {metric.observed_low:g} to {metric.observed_high:g}"
        if metric.observed_low is not None and metric.observed_high is not None
        else "",
        f"known from: {metric.provenance} ({metric.confidence})",
    ]  # fmt: skip
    lines = [
        f"**`{metric.metric}`** {metric.label_en} ({metric.label_zh})  ",
        f"{metric.meaning} {metric.advice or ''}".strip() + "  ",
    ]
    lines.append("; ".join(fact for fact in facts if fact) + ".")
    if metric.practical_limit is not None:
        kind = "relative to the baseline" if metric.practical_limit_kind == "relative" else "absolute"
        lines[-1] += "  "
        source = metric.practical_limit_source
        lines.append(f"A difference below {metric.practical_limit:g} ({kind}) has no practical weight: {source}.")
    return "\n".join(lines)


def _families(catalog: Catalog) -> str:
    rows = [(f"`{m.metric}`", m.category, m.meaning) for m in catalog.metrics if m.is_family]
    text = (
        "## Families\n\nA name that fits one of these, and stands nowhere above, is read so. `{...}` stands for any "
        "text, `{k}`, `{n}` and `{worker}` for a number.\n\n"
    )
    return text + _table(("name", "category", "meaning"), rows)


def _rules(catalog: Catalog) -> str:
    rows = []
    for rule in catalog.rules:
        severity = "; ".join([rule.severity, *(f"{s} for {f}" for f, s in rule.severity_by_framework)])
        what = f"`{rule.expression}`" if rule.expression else f"({rule.kind}, bounds in the metric's row)"
        rows.append((f"`{rule.rule_id}`", what, severity, rule.meaning))
    text = (
        "## Rules of a step\n\nComparisons allow for the precision of the log. What breaks one is a row of "
        "`mart_anomaly`.\n\n"
    )
    return text + _table(("rule", "what must hold", "severity", "what a break means"), rows)


def _corrections(catalog: Catalog) -> str:
    rows = [(f"`{c.metric}`", c.document_says, c.holds, c.evidence) for c in catalog.corrections]
    text = (
        "## Where the document contradicts its own log\n\nThe catalogue began with a document that explains the "
        "metrics of one run and gives the range of each. In these places its words and its numbers disagree.\n\n"
    )
    return text + _table(("metric", "the document says", "what holds", "how that shows"), rows)


def _aliases(catalog: Catalog) -> str:
    rows = []
    for alias in catalog.aliases:
        factor = f" (times {alias.factor:g})" if alias.factor != 1 else ""
        note = " ".join(part for part in (alias.version, alias.note) if part)
        rows.append((alias.framework, f"`{alias.name}`", f"`{alias.metric}`", alias.equivalence + factor, note))
    text = (
        "## Aliases\n\nOnly exact and scaled ones are stored under the canonical name; the others are shown as "
        "related.\n\n"
    )
    return text + _table(("framework", "name", "metric", "equivalence", "note"), rows)


def main() -> None:
    """Write docs/metrics.md of the checkout."""
    folder = project_folder("catalog")
    (folder.parent / PAGE).write_text(metrics_page(load_catalog(folder)), encoding="utf-8")


if __name__ == "__main__":
    main()
