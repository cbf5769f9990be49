"""Great Expectations suites made from the catalogue, held against the profiles of all runs.

One suite a category, on a small frame with one row a run and a few columns a metric: how many values are
not finite, the smallest and largest value, how many are not whole. The facts themselves never pass through
here. Great Expectations and pandas are imported inside the functions, because that takes seconds; analytics
are off, and nothing but the pages in the given folder is written.
"""

import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from warehouse.catalog import Catalog, Metric, describe_metric
from warehouse.data_docs import keep_pages_local, write_index

if TYPE_CHECKING:
    import pandas as pd

PROFILE_QUERY: Final = "select * from mart_metric_profile"
"""What gives the table that `validate_profiles` takes."""

_RUN = ("migration", "run_name")
_SLACK = 1e-6
_RELATIVE_SLACK = 1e-5


@dataclass(frozen=True)
class ExpectationFailure:
    """A run that does not meet an expectation.

    Attributes:
        migration: The run's migration.
        run_name: The run.
        metric: The metric.
        first_step: First step that shows it; None where profiles don't tell.
        observed: The number that was expected to be another one.
    """

    migration: str
    run_name: str
    metric: str
    first_step: int | None
    observed: float


@dataclass(frozen=True)
class ExpectationOutcome:
    """What became of one expectation.

    Attributes:
        suite: Its suite: the category of the metric.
        metric: The metric.
        expectation: What was expected, in words.
        failures: Runs that do not meet it.
        query: SQL that lists them all.
    """

    suite: str
    metric: str
    expectation: str
    failures: tuple[ExpectationFailure, ...]
    query: str

    @property
    def passed(self) -> bool:
        """Whether every run meets the expectation."""
        return not self.failures


@dataclass(frozen=True)
class _Expected:
    """One expectation about a column of the profile of a metric; `first_step` names where a fault begins."""

    metric: str
    measure: str
    words: str
    low: float | None = None
    high: float | None = None
    strict_low: bool = False
    strict_high: bool = False
    first_step: str = "first_step"
    condition: str = ""

    @property
    def column(self) -> str:
        return f"{self.metric}: {self.measure}"


def validate_profiles(
    profile: pa.Table, catalog: Catalog, docs_dir: Path | None = None
) -> tuple[ExpectationOutcome, ...]:
    """Hold the profiles of all runs against suites made from the catalogue.

    Args:
        profile: Rows of mart_metric_profile.
        catalog: The catalogue.
        docs_dir: Folder for the Data Docs, whose content is replaced; None for no pages.

    Returns:
        One outcome for each expectation, by suite and metric.
    """
    rows = [_with_measures(row) for row in profile.to_pylist()]
    present = sorted({row["metric"] for row in rows})
    suites: dict[str, list[_Expected]] = {}
    for name in present:
        metric = describe_metric(catalog, name)
        suites.setdefault(metric.category, []).extend(_expectations(name, metric))
    if not suites:
        return ()
    order = {c.category: c.ordinal for c in catalog.categories}
    with redirect_stderr(StringIO()):  # progress bars
        context = _context(docs_dir)
        results = {
            suite: _run_suite(context, suite, suites[suite], rows) for suite in sorted(suites, key=order.__getitem__)
        }
        if docs_dir is not None:
            context.build_data_docs()
    if docs_dir is not None:
        counts = [(suite, len(found), sum(bool(f) for _, f in found)) for suite, found in results.items()]
        keep_pages_local(docs_dir)
        write_index(docs_dir, counts)
    profiles = {(r["migration"], r["run_name"], r["metric"]): r for r in rows}
    return tuple(
        _outcome(suite, expected, failing, profiles) for suite, found in results.items() for expected, failing in found
    )


def _with_measures(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "values not finite": row["point_count"] - row["finite_count"],
        "smallest value": row["low"],
        "largest value": row["high"],
        "values not whole": row["finite_count"] - row["whole_count"],
    }


def _expectations(name: str, metric: Metric) -> list[_Expected]:
    """Return what the catalogue makes one expect of a metric."""
    domain = metric.domain
    expected = [
        _Expected(
            name,
            "values not finite",
            f"{metric.label_en}: every value is a finite number",
            high=0,
            first_step="first_nonfinite_step",
            condition="finite_count < point_count",
        )
    ]
    if domain.low is not None:
        low = domain.low if domain.low_open else domain.low - _slack(domain.low)
        expected.append(
            _Expected(
                name,
                "smallest value",
                f"{metric.label_en}: {'above' if domain.low_open else 'at least'} {domain.low:g}",
                low=low,
                strict_low=domain.low_open,
                first_step="first_outside_step",
                condition=f"low {'<=' if domain.low_open else '<'} {low!r}",
            )
        )
    if domain.high is not None:
        high = domain.high if domain.high_open else domain.high + _slack(domain.high)
        expected.append(
            _Expected(
                name,
                "largest value",
                f"{metric.label_en}: {'below' if domain.high_open else 'at most'} {domain.high:g}",
                high=high,
                strict_high=domain.high_open,
                first_step="first_outside_step",
                condition=f"high {'>=' if domain.high_open else '>'} {high!r}",
            )
        )
    if domain.is_integer:
        expected.append(
            _Expected(
                name,
                "values not whole",
                f"{metric.label_en}: every value is a whole number",
                high=0,
                condition="whole_count < finite_count",
            )
        )
    return expected


def _slack(bound: float) -> float:
    """Return the rounding that a bound allows, as in the rules of a step."""
    return _SLACK + _RELATIVE_SLACK * abs(bound)


def _context(docs_dir: Path | None) -> Any:
    """Return a Great Expectations context that keeps everything in memory, but for the pages."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.enable_analytics(False)
    for name, site in dict(context.variables.data_docs_sites or {}).items():
        # The default site would be built in a temporary folder that nobody removes.
        shutil.rmtree(site["store_backend"]["base_directory"], ignore_errors=True)
        context.delete_data_docs_site(name)
    if docs_dir is not None:
        shutil.rmtree(docs_dir, ignore_errors=True)
        docs_dir.mkdir(parents=True)
        site: Any = {
            "class_name": "SiteBuilder",
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
            "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(docs_dir)},
            "show_how_to_buttons": False,
        }
        context.add_data_docs_site(site_name="firstdrift", site_config=site)
    return context


def _run_suite(
    context: Any, name: str, expected: list[_Expected], rows: Iterable[Mapping[str, Any]]
) -> list[tuple[_Expected, list[dict[str, Any]]]]:
    """Validate one suite; return each expectation with the rows that do not meet it."""
    import great_expectations as gx
    from great_expectations.expectations.core.expect_column_values_to_be_between import (
        ExpectColumnValuesToBeBetween,
    )

    frame = _frame(expected, rows)
    batch = (
        context.data_sources.add_pandas(name)
        .add_dataframe_asset("runs")
        .add_batch_definition_whole_dataframe("profiles")
    )
    made = [
        ExpectColumnValuesToBeBetween(
            column=item.column,
            min_value=item.low,
            max_value=item.high,
            strict_min=item.strict_low,
            strict_max=item.strict_high,
            description=item.words,
        )
        for item in expected
    ]
    # Added at once: a suite that is in the context is stored anew with each expectation.
    suite = context.suites.add(gx.ExpectationSuite(name, expectations=made))
    validation = context.validation_definitions.add(gx.ValidationDefinition(name=name, data=batch, suite=suite))
    checkpoint = context.checkpoints.add(
        gx.Checkpoint(
            name=name,
            validation_definitions=[validation],
            result_format={"result_format": "COMPLETE", "unexpected_index_column_names": list(_RUN)},
        )
    )
    result = checkpoint.run(batch_parameters={"dataframe": frame})
    failing: dict[tuple, list[dict[str, Any]]] = {}
    for run_result in result.run_results.values():
        for one in run_result.results:
            kwargs = one.expectation_config.kwargs
            key = (kwargs["column"], kwargs.get("min_value"), kwargs.get("max_value"))
            failing[key] = one.result.get("unexpected_index_list") or []
    return [(item, failing[item.column, item.low, item.high]) for item in expected]


def _frame(expected: list[_Expected], rows: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Return one row a run, with a column for each measure; a metric that a run lacks is null there."""
    import pandas as pd

    wanted: dict[str, list[_Expected]] = {}
    for item in expected:
        wanted.setdefault(item.metric, []).append(item)
    runs: dict[tuple, dict[str, Any]] = {}
    for row in rows:
        run = runs.setdefault((row["migration"], row["run_name"]), {c: row[c] for c in _RUN})
        for item in wanted.get(row["metric"], ()):
            run[item.column] = row[item.measure]
    columns = [*_RUN, *dict.fromkeys(item.column for item in expected)]
    frame = pd.DataFrame(list(runs.values()), columns=columns)
    return frame.astype({column: "float64" for column in columns if column not in _RUN})


def _outcome(
    suite: str, expected: _Expected, failing: list[dict[str, Any]], profiles: Mapping[tuple, Mapping[str, Any]]
) -> ExpectationOutcome:
    failures = []
    for row in failing:
        profile = profiles[row["migration"], row["run_name"], expected.metric]
        failures.append(
            ExpectationFailure(
                migration=row["migration"],
                run_name=row["run_name"],
                metric=expected.metric,
                first_step=profile[expected.first_step],
                observed=float(row[expected.column]),
            )
        )
    name = expected.metric.replace("'", "''")
    query = f"select * from mart_metric_profile where metric = '{name}' and {expected.condition}"
    return ExpectationOutcome(suite, expected.metric, expected.words, tuple(failures), query)
