"""How long the onsets of many series take, against one bare window pass over the same rows.

`python -m benchmarks.onsets` times the shipped models from the level fit to the dated onsets, on 100,000 series of 200
steps, a tenth of which change level. Bare pass and models take turns; the median of the ratios is printed.
"""

import argparse
import resource
import statistics
import time

import duckdb

from warehouse.project import load_project
from warehouse.schema import apply_macros, apply_schema, macro_files, schema_files
from warehouse.settings import project_folder

MODELS = ("int_level_fit", "int_drift_test", "int_onset")
BARE_PASS = """
select max(total) from (
    select sum(adjusted_delta) over (
        partition by pair_id, metric_id, step_axis order by step rows unbounded preceding
    ) as total
    from mart_paired_delta
)
"""


def fill(con: duckdb.DuckDBPyConnection, series: int, steps: int) -> None:
    """Put series of noise into mart_paired_delta, a hundred metrics a pair, a shift in every tenth of them."""
    apply_schema(con)
    apply_macros(con)
    con.execute("select setseed(0.5)")
    con.execute(
        """
        insert into dim_metric by name
        select i as metric_id, 'm' || i as metric, 'c' as category, 'training' as stage, 1 as causal_tier,
            'm' as label_en, 'm' as label_zh, 'm' as meaning, 'none' as better, false as domain_low_open,
            false as domain_high_open, false as is_integer, 'identity' as scale, 'paired' as parity_class,
            'simulated' as provenance, 'high' as confidence, true as is_catalogued
        from range(100) as r (i)
        """
    )
    con.execute(
        f"""
        insert into dim_migration
        select i, 'm', 'migration', 'declared', 1, 'a', 2, 'b', 's', 's', '1' from range({series // 100 + 1}) as r (i)
        """
    )
    con.execute(
        f"""
        create table mart_paired_delta as
        with noise as materialized (
            select s, t, sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) as z
            from range({series}) as series (s) cross join range({steps}) as steps (t)
        ),
        shifted as (select s, t, z + case when s % 10 = 0 and t > 120 then 2 else 0 end as d from noise)
        select s // 100 as pair_id, s % 100 as metric_id, 'step' as step_axis, t as step, d as adjusted_delta,
            d as delta, d as scaled_delta, 1.0::double as baseline_value, 1.0::double as sigma,
            1.0::double as local_sigma, true as is_comparable, 'local' as floor_source, false as is_unpaired
        from shifted
        """
    )
    con.execute(
        """
        create table int_pair_floor (
            pair_id bigint, metric_id bigint, step_axis varchar, sigma double, equal_sigma double,
            effective_size bigint, baseline_runs bigint, candidate_runs bigint, autocorrelation double,
            inflation double
        )
        """
    )
    con.execute(
        "create table int_start_offset (pair_id bigint, metric_id bigint, step_axis varchar, is_material boolean)"
    )


def measure(series: int, steps: int, repeats: int) -> tuple[list[tuple[float, float]], int]:
    """Return the seconds of bare pass and models in each repeat, and how many onsets lie where they should."""
    project = load_project(project_folder("models"), schema_files(), macro_files())
    con = duckdb.connect()
    fill(con, series, steps)
    times = []
    for _ in range(repeats):
        bare = _timed(con, BARE_PASS)
        models = sum(_timed(con, f"create or replace table {m} as\n{project.model(m).sql}") for m in MODELS)
        times.append((bare, models))
    row = con.execute(
        "select count(*) from int_onset where metric_id % 10 = 0 and onset_step between 118 and 124"
    ).fetchone()
    con.close()
    return times, row[0] if row else 0


def _timed(con: duckdb.DuckDBPyConnection, sql: str) -> float:
    started = time.perf_counter()
    con.execute(sql).fetchall()
    return time.perf_counter() - started


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    times, found = measure(arguments.series, arguments.steps, arguments.repeats)
    for bare, models in times:
        print(f"bare pass {bare:.1f} s, fit, tests and onsets {models:.1f} s, ratio {models / bare:.2f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{arguments.series} series of {arguments.steps} steps: median ratio "
        f"{statistics.median(models / bare for bare, models in times):.2f}, peak {peak:.0f} MB; "
        f"{found} of {arguments.series // 10} shifts dated within 3 steps"
    )


if __name__ == "__main__":
    main()
