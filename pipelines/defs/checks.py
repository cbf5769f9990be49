"""One asset check for each file of sql/checks.

A file is called <table>__<what must hold>.sql, and the check belongs to that table's asset. The checks of a
table run in one step: a step costs more than most of the queries.
"""

from collections.abc import Iterator
from itertools import groupby

import dagster as dg

from pipelines.defs.metadata import POOL, asset_key, cell, markdown_table
from pipelines.defs.models import LAYERS
from pipelines.resources import WarehouseResource
from warehouse.checks import Check, CheckOutcome, load_checks, run_check
from warehouse.project import relations_of
from warehouse.settings import project_folder


def check_result(outcome: CheckOutcome) -> dg.AssetCheckResult:
    """Return an outcome as Dagster shows it: failures, a sample of them and the query that lists all."""
    rows = markdown_table(outcome.columns, outcome.sample) if outcome.sample else "none"
    is_error = outcome.check.severity == "error"
    return dg.AssetCheckResult(
        passed=outcome.passed,
        severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
        description=outcome.check.description if outcome.passed else _finding(outcome),
        metadata={
            "failures": outcome.failure_count,
            "sample": dg.MetadataValue.md(rows),
            "query": dg.MetadataValue.md(f"```sql\n{outcome.check.sql}\n```"),
        },
    )


def _finding(outcome: CheckOutcome) -> str:
    """Return how often a check failed, and the first time in words."""
    named = zip(outcome.columns, outcome.sample[0], strict=True)
    first = [f"{name} {cell(value)}" for name, value in named if value is not None]
    return f"{outcome.failure_count} failing. The first: {', '.join(first)}."


def _parts(check: Check) -> tuple[str, str]:
    """Return the table that a check is about and what must hold there."""
    table, _, what = check.name.partition("__")
    return table, what


def table_checks(table: str, checks: list[Check]) -> dg.AssetChecksDefinition:
    """Return the step that runs all checks of a table."""
    key = asset_key(table, LAYERS)
    specs = [
        dg.AssetCheckSpec(
            _parts(check)[1],
            asset=key,
            # A check waits for everything that it reads, not for its own table alone.
            additional_deps=[asset_key(name, LAYERS) for name in sorted(relations_of(check.sql) - {table})],
            description=check.description,
            blocking=check.is_blocking,
        )
        for check in checks
    ]

    @dg.multi_asset_check(name=f"check_{table}", specs=specs, pool=POOL)
    def run(warehouse: WarehouseResource) -> Iterator[dg.AssetCheckResult]:
        with warehouse.writer() as con:
            for check in checks:
                result = check_result(run_check(con, check))
                yield result._replace(check_name=_parts(check)[1], asset_key=key)

    return run


_CHECKS = load_checks(project_folder("sql") / "checks")
sql_checks = [table_checks(table, list(group)) for table, group in groupby(_CHECKS, key=lambda check: _parts(check)[0])]
