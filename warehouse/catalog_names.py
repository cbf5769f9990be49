"""Finding the metric behind a name, and describing one that no row of the catalogue names.

Pure: names in, metrics out. Laying the catalogue out as dimensions is in warehouse/catalog_tables.py.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import pyarrow as pa

from warehouse.catalog_model import ANY_FRAMEWORK, MERGED, UNCATALOGUED, Alias, Catalog, Domain, Metric
from warehouse.templates import PLACEHOLDER, fill, match, spelling, template_key

RESOLUTION_SCHEMA: Final = pa.schema(
    [
        pa.field("metric_name", pa.string(), nullable=False),  # as written
        pa.field("metric", pa.string(), nullable=False),  # under which its points are stored
        pa.field("factor", pa.float64(), nullable=False),  # multiply the written value by this
        pa.field("equivalence", pa.string(), nullable=False),
        pa.field("related_metric", pa.string()),  # what a name that was not merged comes close to
    ]
)
"""How names of one run are stored, one row for each name.

`equivalence` is exact or scaled for a name that was merged into a catalogued metric; approximate or
different_population for one that stays its own metric; uncatalogued for one that nobody described.
"""

_TIME_WORDS = re.compile(r"(^|[/_. -])(time|timing|timings|timeperf|latency|elapsed|seconds|duration)([/_. -]|$)", re.I)
_STAGE_WORDS: Final = (
    ("evaluation", re.compile(r"(^|[/_])(eval|val|valid|validation|test)([/_-]|$)", re.I)),
    ("reward", re.compile(r"reward|score|return|advantage", re.I)),
    ("rollout_or_weight_sync", re.compile(r"mismatch|rollout|importance|logprob|log_prob|vllm|sglang", re.I)),
    ("queue", re.compile(r"queue|async|pending|backlog", re.I)),
    ("data", re.compile(r"prompt|dataset|epoch", re.I)),
)
_UNCATALOGUED_TIER = 7
_TIME_TIER = 9
_LOG_FLOOR = 1e-12
_SPECIFIC = 12
"""Characters from which on a template is told apart even where its separators were rewritten."""


@dataclass(frozen=True)
class ExtraMetric:
    """A metric that logs hold and no row of the catalogue names, with what its data show.

    Attributes:
        metric: Its name.
        low: Smallest finite value seen, None where nothing is known.
        high: Largest finite value seen.
        is_integer: Every finite value is whole.
        is_monotone: No value is below the one before it.
    """

    metric: str
    low: float | None = None
    high: float | None = None
    is_integer: bool = False
    is_monotone: bool = False


@dataclass(frozen=True)
class _Index:
    """Lookup tables over the rows that apply to one framework, or to any where it is empty."""

    framework: str
    metrics: dict[str, Metric]
    families: tuple[Metric, ...]
    spellings: dict[str, str]
    aliases: dict[str, tuple[int, Alias]]
    alias_families: tuple[tuple[int, Alias], ...]
    alias_spellings: dict[str, tuple[int, Alias]]


@dataclass(frozen=True)
class _Found:
    """What a name stands for; a lower rank wins where two names of a run stand for one metric."""

    metric: str
    factor: float
    equivalence: str
    related: str | None
    rank: tuple[int, int]


def resolve(catalog: Catalog, names: Iterable[str], framework: str) -> pa.Table:
    """Find the metric under which each name of one run is stored.

    Only exact and scaled aliases are merged. Where two names of the run stand for one metric, the
    canonical spelling wins, then the alias that stands first in the catalogue; the other stays its own.

    Args:
        catalog: The catalogue.
        names: The names as written in the run's log.
        framework: The framework that wrote the log; empty where unknown: then an alias counts if every
            framework that knows the name means the same by it.

    Returns:
        A table of `RESOLUTION_SCHEMA`, sorted by name.
    """
    index = _index(catalog, _framework_key(framework))
    found = {name: _find(index, name) for name in sorted(set(names))}
    winners: dict[str, str] = {}
    for name, hit in sorted(found.items(), key=lambda item: (item[1].rank, item[0])):
        winners.setdefault(hit.metric, name)
    rows = []
    for name, hit in found.items():
        if winners[hit.metric] != name:
            hit = _Found(name, 1.0, "approximate", hit.metric, hit.rank)
        rows.append(
            {
                "metric_name": name,
                "metric": hit.metric,
                "factor": hit.factor,
                "equivalence": hit.equivalence,
                "related_metric": hit.related,
            }
        )
    return pa.Table.from_pylist(rows, schema=RESOLUTION_SCHEMA)


def describe_metric(catalog: Catalog, name: str, framework: str = "") -> Metric:
    """Return the description of a metric, whatever way its name is spelled.

    A member of a family gets the family's description; a name that only comes close to a described metric
    gets that one's category and behaviour; any other name is uncatalogued, judged by its name alone.
    """
    index = _index(catalog, _framework_key(framework))
    hit = _find(index, name)
    described = _described(index, hit.metric)
    if described:
        return described
    related = _described(index, hit.related) if hit.related else None
    return _from_related(name, related, hit) if related else _inferred(ExtraMetric(name), catalog)


def search_metrics(catalog: Catalog, text: str) -> tuple[Metric, ...]:
    """Return the catalogued metrics in whose name, labels, meaning or aliases all words of `text` occur.

    Case does not matter. Metrics whose name holds the text come first, then the order of the catalogue.
    """
    words = text.casefold().split()
    names: dict[str, list[str]] = {}
    for alias in catalog.aliases:
        names.setdefault(alias.metric, []).append(alias.name)
    hits = []
    for metric in catalog.metrics:
        parts = [
            metric.metric,
            metric.label_en,
            metric.label_zh,
            metric.meaning,
            *names.get(metric.metric, []),
        ]
        haystack = " ".join(parts).casefold()
        if all(word in haystack for word in words):
            hits.append(metric)
    return tuple(sorted(hits, key=lambda m: text.casefold() not in m.metric.casefold()))


@lru_cache(maxsize=32)
def _index(catalog: Catalog, framework: str) -> _Index:
    metrics = {m.metric: m for m in catalog.metrics if not m.is_family}
    families = tuple(m for m in catalog.metrics if m.is_family)
    spellings: dict[str, str] = {}
    for name in metrics:
        key = spelling(name)
        spellings[key] = "" if key in spellings else name
    ranked = [(n, a) for n, a in enumerate(catalog.aliases) if _applies(a, framework)]
    if not framework:
        ranked = _agreed(ranked)
    aliases: dict[str, tuple[int, Alias]] = {}
    alias_spellings: dict[str, tuple[int, Alias]] = {}
    for rank, alias in ranked:
        if not PLACEHOLDER.search(alias.name):
            aliases.setdefault(alias.name, (rank, alias))
            alias_spellings.setdefault(spelling(alias.name), (rank, alias))
    alias_families = tuple((r, a) for r, a in ranked if PLACEHOLDER.search(a.name))
    unique = {key: name for key, name in spellings.items() if name}
    return _Index(framework, metrics, families, unique, aliases, alias_families, alias_spellings)


def _framework_key(framework: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", framework.casefold())


def _applies(alias: Alias, framework: str) -> bool:
    return not framework or alias.framework == ANY_FRAMEWORK or _framework_key(alias.framework) == framework


def _agreed(ranked: list[tuple[int, Alias]]) -> list[tuple[int, Alias]]:
    """Keep the names that stand for one metric in all frameworks that know them.

    Where they agree on the metric and not on how closely it is met, the relation is approximate.
    """
    metrics: dict[str, set[str]] = {}
    merged: dict[str, set[tuple[str, float]]] = {}
    for _, alias in ranked:
        key = template_key(alias.name)
        metrics.setdefault(key, set()).add(alias.metric)
        merged.setdefault(key, set()).add((alias.equivalence, alias.factor))
    out = []
    for rank, alias in ranked:
        key = template_key(alias.name)
        if len(metrics[key]) > 1:
            continue
        if len(merged[key]) > 1:
            alias = replace(alias, equivalence="approximate", factor=1.0)
        out.append((rank, alias))
    return out


def _find(index: _Index, name: str) -> _Found:
    """Find what a name stands for: by an alias of the framework, a row, a family, a rewritten spelling."""
    if name in index.aliases and (index.framework or name not in index.metrics):
        return _from_alias(name, *index.aliases[name], {}, 1)
    if name in index.metrics:
        return _Found(name, 1.0, "exact", None, (0, 0))
    found = _find_family(index, name, any_separator=False)
    if found:
        return found
    key = spelling(name)
    if key in index.spellings:
        return _Found(index.spellings[key], 1.0, "exact", None, (2, 0))
    if key in index.alias_spellings:
        return _from_alias(name, *index.alias_spellings[key], {}, 3)
    found = _find_family(index, name, any_separator=True)
    return found or _Found(name, 1.0, UNCATALOGUED, None, (9, 0))


def _find_family(index: _Index, name: str, *, any_separator: bool) -> _Found | None:
    """Find the template that fits a name; the one with the most text of its own says most about it.

    Short templates without `@` are not tried with rewritten separators: they would fit too much.
    """
    late = 2 if any_separator else 0
    candidates: list[tuple[int, bool, _Found]] = []
    for metric in index.families:
        bound = _bind(metric.metric, name, any_separator)
        if bound is not None:
            found = _Found(fill(metric.metric, bound), 1.0, "exact", None, (late, 1))
            candidates.append((_text_length(metric.metric), False, found))
    for rank, alias in index.alias_families:
        bound = _bind(alias.name, name, any_separator)
        if bound is not None:
            candidates.append((_text_length(alias.name), True, _from_alias(name, rank, alias, bound, 1 + late)))
    return max(candidates, key=lambda c: c[:2])[2] if candidates else None


def _bind(template: str, name: str, any_separator: bool) -> dict[str, str] | None:
    if any_separator and "@" not in template and _text_length(template) < _SPECIFIC:
        return None
    return match(template, name, any_separator=any_separator)


def _text_length(template: str) -> int:
    return len(template_key(template).replace("{}", ""))


def _from_alias(name: str, rank: int, alias: Alias, bound: dict[str, str], group: int) -> _Found:
    metric = fill(alias.metric, bound)
    if alias.equivalence in MERGED:
        return _Found(metric, alias.factor, alias.equivalence, None, (group, rank))
    return _Found(name, 1.0, alias.equivalence, metric, (group, rank))


def _described(index: _Index, name: str) -> Metric | None:
    if name in index.metrics:
        return index.metrics[name]
    for family in index.families:
        bound = match(family.metric, name)
        if bound is not None:
            return replace(
                family,
                metric=name,
                label_en=fill(family.label_en, bound),
                label_zh=fill(family.label_zh, bound),
                meaning=fill(family.meaning, bound),
                duplicates_of=fill(family.duplicates_of, bound) if family.duplicates_of else None,
                computed_from=tuple(fill(part, bound) for part in family.computed_from),
            )
    return None


def describe_extra(catalog: Catalog, extra: ExtraMetric) -> Metric:
    """Return the description of a metric that logs hold, by family, relation, or name and data."""
    index = _index(catalog, "")
    described = _described(index, extra.metric)
    if described:
        return described
    hit = _find(index, extra.metric)
    related_name = hit.related or (hit.metric if hit.metric != extra.metric else None)
    related = _described(index, related_name) if related_name else None
    return _from_related(extra.metric, related, hit) if related else _inferred(extra, catalog)


def _from_related(name: str, related: Metric, hit: _Found) -> Metric:
    """Describe a metric that comes close to a described one but was not merged into it."""
    how = "Counts another population than" if hit.equivalence == "different_population" else "Comes close to"
    return replace(
        related,
        metric=name,
        label_en=name,
        label_zh=name,
        meaning=f"{how} {related.metric} ({related.label_en}), without being the same quantity.",
        advice=f"Compare it with runs that log the same name, not with {related.metric}.",
        duplicates_of=None,
        computed_from=(),
        observed_low=None,
        observed_high=None,
        provenance="alias list",
        confidence="low",
        focus_rank=None,
        practical_limit=None,
        practical_limit_kind=None,
        practical_limit_source=None,
        domain=Domain(),
        scale="identity" if related.scale == "logit" else related.scale,
    )


def _inferred(extra: ExtraMetric, catalog: Catalog) -> Metric:
    """Describe a metric that nobody described, by its name and by what its data show."""
    is_time = bool(_TIME_WORDS.search(extra.metric))
    category = catalog.category(UNCATALOGUED)
    stage = "time" if is_time else next((s for s, w in _STAGE_WORDS if w.search(extra.metric)), category.stage)
    scale = _inferred_scale(extra, is_time)
    return Metric(
        metric=extra.metric,
        category=UNCATALOGUED,
        stage=stage,
        causal_tier=_TIME_TIER if is_time else _UNCATALOGUED_TIER,
        label_en=extra.metric,
        label_zh=extra.metric,
        meaning="Not in the catalogue; behaviour inferred from name and data.",
        advice="Add a row to catalog/metrics to say what it means.",
        unit=None,
        better="none",
        domain=Domain(),
        scale=scale,
        scale_constant=_LOG_FLOOR if scale == "log" else None,
        parity_class="hardware" if is_time else "paired",
        duplicates_of=None,
        computed_from=(),
        aggregation=None,
        observed_low=extra.low,
        observed_high=extra.high,
        provenance="name and data",
        confidence="low",
        focus_rank=None,
        practical_limit=None,
        practical_limit_kind=None,
        practical_limit_source=None,
        source="",
    )


def _inferred_scale(extra: ExtraMetric, is_time: bool) -> str:
    if extra.low is None or extra.high is None:
        return "log" if is_time else "identity"
    if extra.low == extra.high:
        return "constant"
    if extra.is_integer and extra.is_monotone:
        return "cumulative"
    # Logarithms suit what is positive and spans orders of magnitude; a share or a score is neither.
    if extra.low > 0 and (is_time or extra.high / extra.low > 10):
        return "log"
    return "identity"
