"""Reading the files of catalog/, with a check of every row: file and line are in each error.

What a row means is in warehouse/catalog_model.py.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from warehouse.catalog_model import (
    BETTER,
    CONFIDENCES,
    DEFAULT_RELATIVE_TOLERANCE,
    EQUIVALENCES,
    LIMIT_KINDS,
    PARITY_CLASSES,
    RULE_KINDS,
    SCALES,
    SEVERITIES,
    STAGES,
    Alias,
    Catalog,
    CatalogError,
    Category,
    Contamination,
    Correction,
    Domain,
    Metric,
    Rule,
)
from warehouse.templates import PLACEHOLDER, match

_DOMAIN = re.compile(r"^(int )?([\[(])([^,]+),([^\])]+)([\])])$")
T = TypeVar("T")


class Row:
    """One line of a CSV file, with the checks that its cells share."""

    def __init__(self, path: Path, line: int, cells: dict[str, str]):
        self.place = f"{path.parent.name}/{path.name}:{line}"
        self._where = f"{path}:{line}"
        self._cells = cells

    def fail(self, column: str, fault: str, remedy: str) -> CatalogError:
        """Return the error for a cell of this row."""
        return CatalogError(f"{self._where}: column {column}: {fault}; {remedy}.")

    def text(self, column: str) -> str:
        """Return a cell that must not be empty."""
        value = self._cells[column]
        if not value:
            raise self.fail(column, "the cell is empty", "fill it in")
        return value

    def optional(self, column: str) -> str | None:
        """Return a cell, or None where it is empty."""
        return self._cells[column] or None

    def choice(self, column: str, allowed: Iterable[str], default: str | None = None) -> str:
        """Return a cell of a closed list."""
        value = self._cells[column] or default or ""
        if value not in allowed:
            raise self.fail(column, f"{value!r} is not known", f"write one of {', '.join(allowed)}")
        return value

    def optional_choice(self, column: str, allowed: Iterable[str]) -> str | None:
        """Return a cell of a closed list, or None where it is empty."""
        return self.choice(column, allowed) if self._cells[column] else None

    def number(self, column: str) -> float | None:
        """Return a cell as a number, or None where it is empty."""
        value = self._cells[column]
        if not value:
            return None
        try:
            return float(value)
        except ValueError:
            raise self.fail(column, f"{value!r} is not a number", "write one such as 0.02") from None

    def integer(self, column: str) -> int | None:
        """Return a cell as a whole number, or None where it is empty."""
        value = self.number(column)
        if value is None:
            return None
        if value != int(value):
            raise self.fail(column, f"{value!r} is not a whole number", "write one such as 3")
        return int(value)

    def domain(self, column: str) -> Domain:
        """Return an interval such as `[0,1]`, `(0,inf)` or `int [1,inf)`; empty for all reals."""
        value = self._cells[column]
        if not value:
            return Domain()
        matched = _DOMAIN.match(value)
        if not matched:
            raise self.fail(column, f"{value!r} is no interval", "write one such as [0,1], (0,inf) or int [1,inf)")
        try:
            low, high = float(matched[3]), float(matched[4])
        except ValueError:
            raise self.fail(column, f"{value!r} has a bound that is no number", "write numbers or inf") from None
        if low > high:
            raise self.fail(column, f"{value!r} is empty", "write the smaller bound first")
        return Domain(
            low=None if low == float("-inf") else low,
            high=None if high == float("inf") else high,
            low_open=matched[2] == "(" and low != float("-inf"),
            high_open=matched[5] == ")" and high != float("inf"),
            is_integer=bool(matched[1]),
        )


def load_catalog(folder: Path) -> Catalog:
    """Read and check every file of the catalogue.

    Args:
        folder: The folder with tiers.csv, categories.csv, contamination.csv and corrections.csv, and with
            metrics/, aliases/ and rules/.

    Returns:
        The catalogue, rows in the order of the files (by name) and lines.

    Raises:
        CatalogError: If a file is missing, a column is missing or unknown, a cell is wrong, a key is there
            twice, or a row refers to something that isn't there.
    """
    tiers = tuple(_read(folder / "tiers.csv", _TIER_COLUMNS, _tier))
    categories = tuple(_read(folder / "categories.csv", _CATEGORY_COLUMNS, _category))
    by_name = {c.category: c for c in categories}
    metrics = tuple(_read_all(folder / "metrics", _METRIC_COLUMNS, lambda row: _metric(row, by_name)))
    aliases = tuple(_read_all(folder / "aliases", _ALIAS_COLUMNS, _alias))
    rules = tuple(_read_all(folder / "rules", _RULE_COLUMNS, _rule))
    spoiled = tuple(_read(folder / "contamination.csv", ("cause", "metric", "reason"), _contamination))
    columns = ("metric", "document_says", "holds", "evidence")
    corrections = tuple(_read(folder / "corrections.csv", columns, _correction))
    catalog = Catalog(tiers, categories, metrics, aliases, rules, spoiled, corrections)
    _check_references(catalog)
    return catalog


_TIER_COLUMNS = ("causal_tier", "tier_name", "description")
_CATEGORY_COLUMNS = ("category", "ordinal", "label_en", "label_zh", "causal_tier", "stage", "description")
_METRIC_COLUMNS = (
    "metric",
    "category",
    "label_en",
    "label_zh",
    "meaning",
    "advice",
    "unit",
    "better",
    "domain",
    "scale",
    "scale_constant",
    "parity_class",
    "duplicates_of",
    "computed_from",
    "aggregation",
    "observed_low",
    "observed_high",
    "provenance",
    "confidence",
    "focus_rank",
    "practical_limit",
    "practical_limit_kind",
    "practical_limit_source",
    "stage",
    "causal_tier",
)
_ALIAS_COLUMNS = ("framework", "version", "name", "metric", "equivalence", "factor", "note")
_RULE_COLUMNS = (
    "rule_id",
    "kind",
    "metric",
    "expression",
    "where",
    "absolute_tolerance",
    "relative_tolerance",
    "severity",
    "origin",
    "meaning",
)


def _read_all(folder: Path, columns: tuple[str, ...], make: Callable[[Row], T]) -> Iterator[T]:
    if not folder.is_dir():
        raise CatalogError(f"{folder}: the folder is missing; a catalogue has metrics/, aliases/ and rules/.")
    for path in sorted(folder.glob("*.csv")):
        yield from _read(path, columns, make)


def _read(path: Path, columns: tuple[str, ...], make: Callable[[Row], T]) -> Iterator[T]:
    if not path.is_file():
        raise CatalogError(f"{path}: the file is missing; a catalogue needs it.")
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        for column in columns:
            if column not in header:
                raise CatalogError(f"{path}:1: the column {column} is missing; add it to the first line.")
        for column in header:
            if column not in columns:
                raise CatalogError(
                    f"{path}:1: the column {column!r} is not known; the columns are {', '.join(columns)}."
                )
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise CatalogError(
                    f"{path}:{reader.line_num}: {len(cells)} cells where the first line has {len(header)}; "
                    "quote a text that holds a comma."
                )
            yield make(Row(path, reader.line_num, dict(zip(header, (c.strip() for c in cells), strict=True))))


def _tier(row: Row) -> tuple[int, str, str]:
    row.text("causal_tier")
    return row.integer("causal_tier") or 0, row.text("tier_name"), row.text("description")


def _category(row: Row) -> Category:
    return Category(
        category=row.text("category"),
        ordinal=row.integer("ordinal") or 0,
        label_en=row.text("label_en"),
        label_zh=row.text("label_zh"),
        causal_tier=row.integer("causal_tier") or 0,
        stage=row.choice("stage", STAGES),
        description=row.text("description"),
    )


def _metric(row: Row, categories: dict[str, Category]) -> Metric:
    category = categories[row.choice("category", tuple(categories))]
    tier = row.integer("causal_tier")
    limit_kind = row.optional_choice("practical_limit_kind", LIMIT_KINDS)
    limit = row.number("practical_limit")
    if (limit is None) != (limit_kind is None):
        raise row.fail("practical_limit_kind", "limit and kind belong together", "fill in both or neither")
    return Metric(
        metric=row.text("metric"),
        category=category.category,
        stage=row.choice("stage", STAGES, category.stage),
        causal_tier=category.causal_tier if tier is None else tier,
        label_en=row.text("label_en"),
        label_zh=row.text("label_zh"),
        meaning=row.text("meaning"),
        advice=row.optional("advice"),
        unit=row.optional("unit"),
        better=row.choice("better", BETTER),
        domain=row.domain("domain"),
        scale=row.choice("scale", SCALES),
        scale_constant=row.number("scale_constant"),
        parity_class=row.choice("parity_class", PARITY_CLASSES),
        duplicates_of=row.optional("duplicates_of"),
        computed_from=tuple(part.strip() for part in (row.optional("computed_from") or "").split(";") if part.strip()),
        aggregation=row.optional("aggregation"),
        observed_low=row.number("observed_low"),
        observed_high=row.number("observed_high"),
        provenance=row.text("provenance"),
        confidence=row.choice("confidence", CONFIDENCES),
        focus_rank=row.integer("focus_rank"),
        practical_limit=limit,
        practical_limit_kind=limit_kind,
        practical_limit_source=row.optional("practical_limit_source"),
        source=row.place,
    )


def _alias(row: Row) -> Alias:
    equivalence = row.choice("equivalence", EQUIVALENCES)
    factor = row.number("factor")
    if equivalence == "scaled" and not factor:
        raise row.fail("factor", "a scaled alias has no factor", "write what to multiply the value by")
    if equivalence != "scaled" and factor not in (None, 1.0):
        raise row.fail("factor", f"{equivalence} aliases are not multiplied", "leave it empty or write scaled")
    name, metric = row.text("name"), row.text("metric")
    extra = set(PLACEHOLDER.findall(metric)) - set(PLACEHOLDER.findall(name))
    if extra:
        raise row.fail("metric", f"{{{extra.pop()}}} does not occur in the name", "use the placeholders of the name")
    return Alias(
        framework=row.text("framework"),
        version=row.optional("version") or "",
        name=name,
        metric=metric,
        equivalence=equivalence,
        factor=1.0 if factor is None else factor,
        note=row.optional("note") or "",
        source=row.place,
    )


def _rule(row: Row) -> Rule:
    kind = row.choice("kind", RULE_KINDS)
    if kind == "expression":
        row.text("expression")
    if kind in ("expression", "steady"):
        row.text("metric")
    default, *others = (part.strip() for part in row.text("severity").split(";"))
    by_framework = []
    for part in others:
        framework, _, severity = part.partition("=")
        by_framework.append((framework.strip(), severity.strip()))
    for severity in (default, *(s for _, s in by_framework)):
        if severity not in SEVERITIES:
            raise row.fail(
                "severity",
                f"{severity!r} is not known",
                "write error, warning or off, and `; framework=severity` for each framework that differs",
            )
    relative = row.number("relative_tolerance")
    return Rule(
        rule_id=row.text("rule_id"),
        kind=kind,
        metric=row.optional("metric") or "",
        expression=row.optional("expression") or "",
        where=row.optional("where") or "",
        absolute_tolerance=row.number("absolute_tolerance") or 0.0,
        relative_tolerance=DEFAULT_RELATIVE_TOLERANCE if relative is None else relative,
        severity=default,
        severity_by_framework=tuple(by_framework),
        origin=row.choice("origin", ("code", "definition", "inferred")),
        meaning=row.text("meaning"),
        source=row.place,
    )


def _contamination(row: Row) -> Contamination:
    return Contamination(row.text("cause"), row.text("metric"), row.text("reason"), row.place)


def _correction(row: Row) -> Correction:
    return Correction(row.text("metric"), row.text("document_says"), row.text("holds"), row.text("evidence"), row.place)


def _check_references(catalog: Catalog) -> None:
    """Raise for a key that is there twice and for a reference to something that is not there."""
    _unique(((m.metric, m.source) for m in catalog.metrics), "metric")
    _unique((((a.framework, a.name, a.metric), a.source) for a in catalog.aliases), "alias")
    _unique(((r.rule_id, r.source) for r in catalog.rules), "rule")
    _check_tiers(catalog)
    known = {m.metric for m in catalog.metrics}
    references = [
        *((m.source, m.duplicates_of) for m in catalog.metrics if m.duplicates_of),
        *((m.source, other) for m in catalog.metrics for other in m.computed_from),
        *((c.source, c.metric) for c in (*catalog.contaminations, *catalog.corrections)),
        *((a.source, a.metric) for a in catalog.aliases if not _fits_family(catalog, a.metric)),
    ]
    for source, name in references:
        if name not in known:
            raise CatalogError(f"{source}: refers to the metric {name}, which no row of metrics/ describes.")


def _check_tiers(catalog: Catalog) -> None:
    tiers = {tier for tier, _, _ in catalog.tiers}
    used = [
        *((f"categories.csv: {c.category}", c.causal_tier) for c in catalog.categories),
        *((m.source, m.causal_tier) for m in catalog.metrics),
    ]
    for source, tier in used:
        if tier not in tiers:
            raise CatalogError(f"{source}: causal tier {tier} is not in tiers.csv; add it there.")


def _fits_family(catalog: Catalog, name: str) -> bool:
    if PLACEHOLDER.search(name):
        return True
    return any(match(m.metric, name) is not None for m in catalog.metrics if m.is_family)


def _unique(keys: Iterable[tuple[object, str]], what: str) -> None:
    seen: dict[object, str] = {}
    for key, source in keys:
        if key in seen:
            raise CatalogError(f"{source}: the {what} {key} is already described in {seen[key]}; keep one of the rows.")
        seen[key] = source
