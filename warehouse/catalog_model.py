"""The shapes of the catalogue and its closed vocabularies.

Reading the files is in warehouse/catalog_files.py, finding a metric by name in warehouse/catalog_names.py.
"""

from dataclasses import dataclass
from typing import Final

from warehouse.templates import PLACEHOLDER

STAGES: Final = ("data", "rollout_or_weight_sync", "training", "reward", "evaluation", "queue", "time")
BETTER: Final = ("up", "down", "target_0", "target_1", "none")
SCALES: Final = ("identity", "log", "logit", "asinh", "exact", "cumulative", "constant")
PARITY_CLASSES: Final = ("exact", "paired", "schedule", "hardware")
EQUIVALENCES: Final = ("exact", "scaled", "approximate", "different_population")
MERGED: Final = ("exact", "scaled")
CONFIDENCES: Final = ("low", "medium", "high")
LIMIT_KINDS: Final = ("absolute", "relative")
RULE_KINDS: Final = ("expression", "finite", "domain", "integer", "monotone", "steady")
SEVERITIES: Final = ("error", "warning", "off")
ANY_FRAMEWORK: Final = "any"
DEFAULT_RELATIVE_TOLERANCE: Final = 1e-5
"""Allowed miss of a rule that states none: frameworks average in single precision."""

UNCATALOGUED: Final = "uncatalogued"


class CatalogError(ValueError):
    """A row of the catalogue is wrong; the message names the file, the line, the fault and the remedy."""


@dataclass(frozen=True)
class Category:
    """A group of metrics, in the order of the catalogue."""

    category: str
    ordinal: int
    label_en: str
    label_zh: str
    causal_tier: int
    stage: str
    description: str


@dataclass(frozen=True)
class Domain:
    """The values that a metric can have; None where there is no bound."""

    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False
    is_integer: bool = False


@dataclass(frozen=True)
class Metric:
    """One row of catalog/metrics. `metric` may be a template such as `eval/{dataset}_Pass@{k}`.

    Attributes:
        computed_from: Metrics of the same step that this one is computed from.
        scale_constant: Floor of `log`, width of `asinh`, offset of `logit`; None elsewhere.
        source: The file and line of the row.
    """

    metric: str
    category: str
    stage: str
    causal_tier: int
    label_en: str
    label_zh: str
    meaning: str
    advice: str | None
    unit: str | None
    better: str
    domain: Domain
    scale: str
    scale_constant: float | None
    parity_class: str
    duplicates_of: str | None
    computed_from: tuple[str, ...]
    aggregation: str | None
    observed_low: float | None
    observed_high: float | None
    provenance: str
    confidence: str
    focus_rank: int | None
    practical_limit: float | None
    practical_limit_kind: str | None
    practical_limit_source: str | None
    source: str

    @property
    def is_family(self) -> bool:
        """Whether the row describes a family of metrics, not a single one."""
        return bool(PLACEHOLDER.search(self.metric))


@dataclass(frozen=True)
class Alias:
    """One row of catalog/aliases: a name as a framework writes it. Both names may be templates."""

    framework: str
    version: str
    name: str
    metric: str
    equivalence: str
    factor: float
    note: str
    source: str


@dataclass(frozen=True)
class Rule:
    """One row of catalog/rules: what must hold within a step.

    Attributes:
        rule_id: Its name.
        kind: "expression", or one of the checks whose bounds are in the metric's own row.
        metric: The metric that a break is charged to; a template where the rule is about a family.
            Empty for the checks that apply to every metric.
        expression: SQL over metric names in double quotes; empty for the other kinds.
        where: For templates: a comparison of two placeholders, `k < k2`.
        absolute_tolerance: Allowed miss, in the unit of the compared values.
        relative_tolerance: Allowed miss relative to the compared values.
        severity: Default severity; "off" where the rule holds for named frameworks only.
        severity_by_framework: Severity for frameworks that differ from the default.
        origin: code, definition, or inferred: how the rule is known.
        meaning: What a break means.
        source: The file and line of the row.
    """

    rule_id: str
    kind: str
    metric: str
    expression: str
    where: str
    absolute_tolerance: float
    relative_tolerance: float
    severity: str
    severity_by_framework: tuple[tuple[str, str], ...]
    origin: str
    meaning: str
    source: str


@dataclass(frozen=True)
class Contamination:
    """A metric that leaves the drift tests in a step that `cause` has spoiled."""

    cause: str
    metric: str
    reason: str
    source: str


@dataclass(frozen=True)
class Correction:
    """A place where the document that the catalogue began with is wrong about its own log."""

    metric: str
    document_says: str
    holds: str
    evidence: str
    source: str


@dataclass(frozen=True)
class Catalog:
    """All that catalog/ says."""

    tiers: tuple[tuple[int, str, str], ...]
    categories: tuple[Category, ...]
    metrics: tuple[Metric, ...]
    aliases: tuple[Alias, ...]
    rules: tuple[Rule, ...]
    contaminations: tuple[Contamination, ...]
    corrections: tuple[Correction, ...]

    def category(self, name: str) -> Category:
        """Return the category called `name`.

        Raises:
            KeyError: If there is none.
        """
        for category in self.categories:
            if category.category == name:
                return category
        raise KeyError(name)
