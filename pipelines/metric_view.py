"""What `firstdrift metrics` prints: the catalogue on the terminal."""

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from pipelines.tables import number_text
from pipelines.terminal import styled
from warehouse.catalog import Catalog, Metric, describe_metric, search_metrics
from warehouse.metrics_page import domain_text, metric_card
from warehouse.wording import counted


def find_metrics(catalog: Catalog, text: str) -> tuple[Metric, ...]:
    """Return the metric of that name, however it is spelled, else those that the words of `text` fit.

    Raises:
        ValueError: If nothing fits.
    """
    if not text:
        return catalog.metrics
    known = describe_metric(catalog, text)
    if known.category != "uncatalogued":
        return (known,)
    found = search_metrics(catalog, text)
    if not found:
        raise ValueError(f"The catalogue knows no metric {text}; `firstdrift metrics` lists all.")
    return found


def metric_facts(catalog: Catalog, metric: Metric) -> dict[str, Any]:
    """Return all that the catalogue says of a metric, with its aliases and rules."""
    card = metric_card(catalog, metric.metric)
    return {
        **{key: value for key, value in asdict(metric).items() if key != "source"},
        "possible_values": domain_text(metric.domain),
        "aliases": [
            {"framework": a.framework, "name": a.name, "equivalence": a.equivalence, "note": a.note}
            for a in card.aliases
        ],
        "rules": [
            {"rule_id": r.rule_id, "expression": r.expression or r.kind, "meaning": r.meaning} for r in card.rules
        ],
        "corrections": [
            {"document_says": c.document_says, "holds": c.holds, "evidence": c.evidence} for c in card.corrections
        ],
    }


def print_metrics(catalog: Catalog, metrics: tuple[Metric, ...], console: Console) -> None:
    """Print one metric in full, several as a list."""
    if len(metrics) == 1:
        _print_metric(metric_facts(catalog, metrics[0]), console)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("metric", "category", "better", "focus", "meaning"):
        table.add_column(title, overflow="fold")
    for m in metrics:
        table.add_row(m.metric, m.category, m.better, number_text(m.focus_rank), m.meaning)
    console.print(table)
    console.print(f"{counted(len(metrics), 'metric')}", style="dim")


def _print_metric(facts: dict[str, Any], console: Console) -> None:
    console.print(styled((facts["metric"], "bold"), f"  {facts['label_en']} / {facts['label_zh']}"))
    console.print(f"  {facts['meaning']}")
    if facts["advice"]:
        console.print(f"  {facts['advice']}")
    for correction in facts["corrections"]:
        console.print(f"  The document says: {correction['document_says']}")
        console.print(f"  What holds: {correction['holds']} {correction['evidence']}")
    console.print(f"  possible values: {facts['possible_values']}")
    for key in ("category", "stage", "unit", "better", "scale", "parity_class", "duplicates_of", "aggregation"):
        if facts[key]:
            console.print(f"  {key}: {facts[key]}")
    if facts["observed_low"] is not None:
        seen = f"{number_text(facts['observed_low'])} to {number_text(facts['observed_high'])}"
        console.print(f"  seen in the reference log: {seen}")
    if facts["practical_limit"] is not None:
        limit = f"{number_text(facts['practical_limit'])} {facts['practical_limit_kind']}"
        console.print(f"  practical limit: {limit} ({facts['practical_limit_source']})")
    console.print(f"  described from {facts['provenance']}, confidence {facts['confidence']}")
    for alias in facts["aliases"]:
        note = f": {alias['note']}" if alias["note"] else ""
        console.print(f"  {alias['framework']} writes {alias['name']} ({alias['equivalence']}){note}")
    for rule in facts["rules"]:
        console.print(f"  rule {rule['rule_id']}: {rule['expression']} - {rule['meaning']}")
