"""The suites of Great Expectations as an asset check of the profiles.

Great Expectations is imported only where the profiles have changed since the suites were last held against
them: its import takes longer than everything else here.
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import dagster as dg

from pipelines.defs.metadata import POOL, asset_key, markdown_table
from pipelines.defs.models import LAYERS
from pipelines.resources import WarehouseResource, current_catalog
from warehouse.catalog import catalog_hash
from warehouse.expectations import PROFILE_QUERY, ExpectationFailure, ExpectationOutcome, validate_profiles

PROFILES = "mart_metric_profile"
FOLDER = "expectations"
OUTCOMES = "outcomes.json"
SAMPLE_ROWS = 5


@dg.asset_check(
    name="meets_the_catalogue",
    asset=asset_key(PROFILES, LAYERS),
    description="Every metric of every run is finite, inside its domain, and whole where it counts.",
    pool=POOL,
)
def meets_the_catalogue(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """Hold the profiles of all runs against the suites made from the catalogue."""
    folder = warehouse.settings.home / FOLDER
    catalog = current_catalog()
    with warehouse.writer() as con:
        profile = con.sql(f"{PROFILE_QUERY} order by run_id, metric_id").to_arrow_table()
    text = f"{catalog_hash(catalog)}{profile.to_pylist()}"
    key = hashlib.sha256(text.encode()).hexdigest()
    outcomes = _known_outcomes(folder, key)
    if outcomes is None:
        outcomes = validate_profiles(profile, catalog, folder)
        _remember(folder, key, outcomes)
    return _result(outcomes, folder)


def _known_outcomes(folder: Path, key: str) -> tuple[ExpectationOutcome, ...] | None:
    """Return what the same profiles gave last time, None where they are others."""
    try:
        known = json.loads((folder / OUTCOMES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if known.get("key") != key:
        return None
    return tuple(
        ExpectationOutcome(**{**row, "failures": tuple(ExpectationFailure(**f) for f in row["failures"])})
        for row in known["outcomes"]
    )


def _remember(folder: Path, key: str, outcomes: tuple[ExpectationOutcome, ...]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"key": key, "outcomes": [asdict(outcome) for outcome in outcomes]})
    (folder / OUTCOMES).write_text(text, encoding="utf-8")


def _result(outcomes: tuple[ExpectationOutcome, ...], folder: Path) -> dg.AssetCheckResult:
    failing = [(outcome, failure) for outcome in outcomes for failure in outcome.failures]
    table = markdown_table(
        ("migration", "run", "metric", "first step", "expected", "observed"),
        [
            (f.migration, f.run_name, f.metric, f.first_step, o.expectation, f.observed)
            for o, f in failing[:SAMPLE_ROWS]
        ],
    )
    queries = dict.fromkeys(outcome.query for outcome, _ in failing)
    return dg.AssetCheckResult(
        passed=not failing,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "failures": len(failing),
            "expectations": len(outcomes),
            "sample": dg.MetadataValue.md(table if failing else "none"),
            "query": dg.MetadataValue.md("```sql\n" + ";\n".join(queries) + "\n```" if queries else "none"),
            "pages": dg.MetadataValue.path(folder / "index.html"),
        },
    )
