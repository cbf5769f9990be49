"""Cost of the rules of a step over ten million points, against one bare pivot of the same rows.

Run as `python -m benchmarks.rules [points]`. Prints seconds of both in one process, their ratio and the peak
memory of the process; exits with 1 where the ratio is above 2 or the memory above 2 GB.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow as pa

from tests.warehouse.rule_cases import XTUNER
from warehouse.catalog import load_catalog
from warehouse.catalog_model import Catalog
from warehouse.catalog_tables import dimension_tables
from warehouse.rules import refresh_rule_breaks
from warehouse.schema import apply_schema
from warehouse.settings import project_folder

POINTS = 10_000_000
STEPS = 200
MEMORY_LIMIT = "1500MB"
MOST_RATIO = 2.0
MOST_MEMORY_GB = 2.0


def fill(con: duckdb.DuckDBPyConnection, catalog: Catalog, points: int) -> int:
    """Put runs of equal sound steps into the star, one step in a thousand broken; return the number of points."""
    for name, table in dimension_tables(catalog).items():
        con.register("_rows", table)
        con.execute(f"insert into {name} select * from _rows")
        con.unregister("_rows")
    sound = pa.table({"metric": list(XTUNER), "value": [float(v or 0.0) for v in XTUNER.values()]})
    con.register("_sound", sound)
    con.execute("create temp table logged as select * from _sound inner join dim_metric using (metric)")
    runs = max(points // (len(XTUNER) * STEPS), 1)
    con.execute(
        """
        insert into dim_run
        select r, 'run ' || r, 'm', 'candidate', null, 's', 'xtuner', null, null, null, null, null, null, null, null,
            'finished', 'test', 'float64', 'log', '', 0, 1, 1, 200, 0, now()::timestamp
        from range(?) as t(r)
        """,
        [runs],
    )
    con.execute(
        """
        insert into fct_metric
        select r, m.metric_id, 'step', 1, s, 1,
            case
                when m.scale = 'cumulative' then s
                when m.metric = 'response/rewards/mean' and hash(r, s) % 1000 = 0 then 1.5
                when m.is_integer then m.value
                else m.value * (1 + 1e-9 * hash(r, s) / 1.8446744073709552e19)
            end,
            'finite', true, null, m.metric, 'f', s
        from range(?) as t(r), logged as m, range(1, ?) as u(s)
        order by r, m.metric_id, s
        """,
        [runs, STEPS + 1],
    )
    return con.execute("select count(*) from fct_metric").fetchall()[0][0]


def pivot_seconds(con: duckdb.DuckDBPyConnection) -> float:
    """Return the seconds of one bare pivot: one row a step, one column a metric."""
    ids = ", ".join(str(i) for (i,) in con.execute("select metric_id from logged").fetchall())
    started = time.perf_counter()
    con.execute(
        f"""
        create or replace temp table bare as
        pivot (
            select run_id, step_axis, attempt, step, metric_id, value from fct_metric
            where is_current and value_kind = 'finite')
        on metric_id in ({ids}) using max(value) group by run_id, step_axis, attempt, step
        """
    )
    seconds = time.perf_counter() - started
    con.execute("drop table bare")
    return seconds


def main() -> int:
    points = int(sys.argv[1]) if len(sys.argv) > 1 else POINTS
    catalog = load_catalog(project_folder("catalog"))
    with tempfile.TemporaryDirectory() as folder:
        con = duckdb.connect(str(Path(folder) / "rules.duckdb"), config={"memory_limit": MEMORY_LIMIT})
        apply_schema(con)
        stored = fill(con, catalog, points)
        bare = min(pivot_seconds(con) for _ in range(2))
        started = time.perf_counter()
        result = refresh_rule_breaks(con, catalog.rules)
        rules = time.perf_counter() - started
        con.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"points                {stored:,}")
    print(f"bare pivot            {bare:.2f} s")
    print(f"{result.instances} rules in {result.passes} passes {rules:.2f} s, {result.breaks:,} breaks")
    print(f"ratio                 {rules / bare:.2f} (at most {MOST_RATIO})")
    print(f"peak memory           {memory:.2f} GB (below {MOST_MEMORY_GB})")
    return int(rules / bare > MOST_RATIO or memory >= MOST_MEMORY_GB)


if __name__ == "__main__":
    sys.exit(main())
