"""One asset check for each file of sql/checks.

A file is called <table>__<what must hold>.sql, and the check belongs to that table's asset.
"""

import dagster as dg

from pipelines.defs.metadata import POOL, asset_key
from pipelines.defs.models import LAYERS
from pipelines.resources import WarehouseResource
from warehouse.checks import Check, CheckOutcome, load_checks, run_check
from warehouse.settings import project_folder


def check_result(outcome: CheckOutcome) -> dg.AssetCheckResult:
    """Return an outcome as Dagster shows it: failures, a sample of them and the query that lists all."""
    header = "| " + " | ".join(outcome.columns) + " |\n|" + " --- |" * len(outcome.columns)
    rows = "\n".join("| " + " | ".join(str(value) for value in row) + " |" for row in outcome.sample)
    is_error = outcome.check.severity == "error"
    return dg.AssetCheckResult(
        passed=outcome.passed,
        severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
        description=outcome.check.description,
        metadata={
            "failures": outcome.failure_count,
            "sample": dg.MetadataValue.md(f"{header}\n{rows}" if rows else "none"),
            "query": dg.MetadataValue.md(f"```sql\n{outcome.check.sql}\n```"),
        },
    )


def sql_check(check: Check) -> dg.AssetChecksDefinition:
    """Return the asset check that runs a file of sql/checks."""
    table, _, what = check.name.partition("__")

    @dg.asset_check(
        name=what,
        asset=asset_key(table, LAYERS),
        description=check.description,
        blocking=check.is_blocking,
        pool=POOL,
    )
    def run(warehouse: WarehouseResource) -> dg.AssetCheckResult:
        with warehouse.writer() as con:
            return check_result(run_check(con, check))

    return run


sql_checks = [sql_check(check) for check in load_checks(project_folder("sql") / "checks")]
