"""Laying the catalogue out as tables of the star, columns in the order of sql/schema."""

from collections.abc import Iterable

import pyarrow as pa

from warehouse.catalog_model import UNCATALOGUED, Catalog, Metric
from warehouse.catalog_names import ExtraMetric, describe_extra
from warehouse.contract import stable_id


def dimension_tables(catalog: Catalog, extra_metrics: Iterable[str | ExtraMetric] = ()) -> dict[str, pa.Table]:
    """Lay the catalogue out as the tables of the star, columns in the order of sql/schema.

    Args:
        catalog: The catalogue.
        extra_metrics: Metrics under which points are stored (the `metric` of `resolve`) and that the
            catalogue does not name itself: members of families, related and uncatalogued metrics.

    Returns:
        dim_category, dim_metric, dim_metric_alias, dim_metric_input, dim_rule and dim_contamination by name.
    """
    rows = {m.metric: m for m in catalog.metrics if not m.is_family}
    for extra in extra_metrics:
        known = ExtraMetric(extra) if isinstance(extra, str) else extra
        if known.metric not in rows:
            rows[known.metric] = describe_extra(catalog, known)
    metrics = list(rows.values())
    return {
        "dim_category": _category_table(catalog),
        "dim_metric": _metric_table(metrics),
        "dim_metric_alias": _alias_table(catalog),
        "dim_metric_input": _input_table(metrics),
        "dim_rule": _rule_table(catalog),
        "dim_contamination": pa.Table.from_pylist(
            [{"cause": c.cause, "metric": c.metric, "reason": c.reason} for c in catalog.contaminations],
            schema=_schema("cause:s metric:s reason:s"),
        ),
    }


def _category_table(catalog: Catalog) -> pa.Table:
    tiers = {tier: name for tier, name, _ in catalog.tiers}
    return pa.Table.from_pylist(
        [
            {
                "category": c.category,
                "ordinal": c.ordinal,
                "label_en": c.label_en,
                "label_zh": c.label_zh,
                "causal_tier": c.causal_tier,
                "tier_name": tiers[c.causal_tier],
                "stage": c.stage,
                "description": c.description,
            }
            for c in catalog.categories
        ],
        schema=_schema("category:s ordinal:i label_en:s label_zh:s causal_tier:i tier_name:s stage:s description:s"),
    )


def _metric_table(metrics: list[Metric]) -> pa.Table:
    rows = [
        {
            **{name: getattr(m, name) for name in _PLAIN_COLUMNS},
            "metric_id": stable_id(m.metric),
            "domain_low": m.domain.low,
            "domain_high": m.domain.high,
            "domain_low_open": m.domain.low_open,
            "domain_high_open": m.domain.high_open,
            "is_integer": m.domain.is_integer,
            "is_catalogued": m.category != UNCATALOGUED,
        }
        for m in metrics
    ]
    return pa.Table.from_pylist(rows, schema=_METRIC_SCHEMA)


def _alias_table(catalog: Catalog) -> pa.Table:
    rows = [
        {
            "framework": a.framework,
            "name": a.name,
            "metric": a.metric,
            "equivalence": a.equivalence,
            "factor": a.factor,
            "note": " ".join(part for part in (f"Version: {a.version}." if a.version else "", a.note) if part) or None,
        }
        for a in catalog.aliases
    ]
    return pa.Table.from_pylist(rows, schema=_schema("framework:s name:s metric:s equivalence:s factor:f note:s"))


def _input_table(metrics: list[Metric]) -> pa.Table:
    names = {m.metric for m in metrics}
    rows = [{"metric": m.metric, "input_metric": part} for m in metrics for part in m.computed_from if part in names]
    return pa.Table.from_pylist(rows, schema=_schema("metric:s input_metric:s"))


def _rule_table(catalog: Catalog) -> pa.Table:
    rows = [
        {
            "rule_id": r.rule_id,
            "kind": r.kind,
            "metric": r.metric or None,
            "expression": r.expression or None,
            "severity": r.severity,
            "severity_by_framework": "; ".join(f"{f}={s}" for f, s in r.severity_by_framework) or None,
            "absolute_tolerance": r.absolute_tolerance,
            "relative_tolerance": r.relative_tolerance,
            "origin": r.origin,
            "meaning": r.meaning,
        }
        for r in catalog.rules
    ]
    return pa.Table.from_pylist(
        rows,
        schema=_schema(
            "rule_id:s kind:s metric:s expression:s severity:s severity_by_framework:s "
            "absolute_tolerance:f relative_tolerance:f origin:s meaning:s"
        ),
    )


def _schema(text: str) -> pa.Schema:
    types = {"s": pa.string(), "i": pa.int32(), "l": pa.int64(), "f": pa.float64(), "b": pa.bool_()}
    return pa.schema([(name, types[kind]) for name, kind in (part.split(":") for part in text.split())])


_METRIC_SCHEMA = _schema(
    "metric_id:l metric:s category:s stage:s causal_tier:i label_en:s label_zh:s meaning:s advice:s unit:s "
    "better:s domain_low:f domain_high:f domain_low_open:b domain_high_open:b is_integer:b scale:s "
    "scale_constant:f parity_class:s duplicates_of:s aggregation:s observed_low:f observed_high:f "
    "provenance:s confidence:s focus_rank:i practical_limit:f practical_limit_kind:s "
    "practical_limit_source:s is_catalogued:b"
)
_PLAIN_COLUMNS = tuple(name for name in _METRIC_SCHEMA.names if name in Metric.__dataclass_fields__)
