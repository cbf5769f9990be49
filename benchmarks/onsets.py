"""How long the onsets of many series take, against one bare window pass over the same rows.

`python -m benchmarks.onsets` times the shipped model of the level fit on 100,000 series of 200 steps.
"""

import argparse
import time

import duckdb

from warehouse.project import load_project
from warehouse.schema import apply_macros, apply_schema, macro_files, schema_files
from warehouse.settings import project_folder

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
            1.0::double as local_sigma, true as is_comparable
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


def measure(series: int, steps: int) -> tuple[float, float, int]:
    """Return the seconds of the bare pass, those of the level fit, and how many onsets lie where they should."""
    project = load_project(project_folder("models"), schema_files(), macro_files())
    con = duckdb.connect()
    fill(con, series, steps)
    bare = min(_timed(con, BARE_PASS) for _ in range(3))
    fit = _timed(con, f"create table int_level_fit as\n{project.model('int_level_fit').sql}")
    row = con.execute(
        "select count(*) from int_level_fit where metric_id % 10 = 0 and onset_step between 118 and 124"
    ).fetchone()
    con.close()
    return bare, fit, row[0] if row else 0


def _timed(con: duckdb.DuckDBPyConnection, sql: str) -> float:
    started = time.perf_counter()
    con.execute(sql).fetchall()
    return time.perf_counter() - started


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    bare, fit, found = measure(arguments.series, arguments.steps)
    print(
        f"{arguments.series} series of {arguments.steps} steps: bare pass {bare:.1f} s, level fit {fit:.1f} s, "
        f"ratio {fit / bare:.1f}; {found} of {arguments.series // 10} shifts within 3 steps"
    )


if __name__ == "__main__":
    main()
