"""The metric catalogue, as the rest of the house uses it.

The files of catalog/ are read in warehouse/catalog_files.py, names are resolved in
warehouse/catalog_names.py, tables are made in warehouse/catalog_tables.py, rules are compiled in
warehouse/rules.py. DuckDB and Dagster do not belong in any of them but the last.
"""

import hashlib

from warehouse.catalog_files import load_catalog
from warehouse.catalog_model import Alias, Catalog, CatalogError, Category, Domain, Metric, Rule
from warehouse.catalog_names import ExtraMetric, describe_metric, resolve, search_metrics
from warehouse.catalog_tables import dimension_tables

__all__ = [
    "Alias",
    "Catalog",
    "CatalogError",
    "Category",
    "Domain",
    "ExtraMetric",
    "Metric",
    "Rule",
    "catalog_hash",
    "describe_metric",
    "dimension_tables",
    "load_catalog",
    "resolve",
    "search_metrics",
]


def catalog_hash(catalog: Catalog) -> str:
    """Return a hash that changes whenever a row of the catalogue does."""
    return hashlib.sha256(repr(catalog).encode()).hexdigest()[:16]
