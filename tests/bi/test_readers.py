"""Twenty processes query the published file while it is published fifty times: too much work for `make test`."""

import json
import os
import subprocess
import sys

import duckdb
import pytest

from tests.conftest import PROJECT
from warehouse.connection import open_writer
from warehouse.publish import publish
from warehouse.schema import apply_macros, apply_schema

pytestmark = pytest.mark.bi

READERS = 20
PUBLISHES = 50

# Opens the file again and again until told to stop; a version is whole if three tables tell of the same load.
READER = """
import json, sys, time
from pathlib import Path
import duckdb
path, stop = Path(sys.argv[1]), Path(sys.argv[2])
versions, mixed, queries = set(), [], 0
is_last = False
while not is_last:
    is_last = stop.exists()
    con = duckdb.connect(path, read_only=True, config={"threads": 1})
    version = con.execute("select version from publication").fetchall()[0][0]
    points = con.execute("select count(*), max(step) from fct_metric").fetchall()[0]
    run = con.execute("select point_count, last_step from dim_run").fetchall()[0]
    again = con.execute("select version from publication").fetchall()[0][0]
    con.close()
    queries += 1
    versions.add(version)
    if points != run or version != again:
        mixed.append([version, again, points, run])
    time.sleep(1)
print(json.dumps({"versions": sorted(versions), "mixed": mixed, "queries": queries}))
"""


def fill(con: duckdb.DuckDBPyConnection, last: int) -> None:
    """Put one run of that many steps in the place of the earlier one."""
    con.execute("delete from fct_metric")
    con.execute("delete from dim_run")
    con.execute(
        "insert into fct_metric select 1, 1, 'step', 1, range, 1, range, 'finite', true, null, 'reward', 'f', range "
        "from range(1, ?::bigint + 1)",
        [last],
    )
    con.execute(
        """
        insert into dim_run select 1, 'r', 'm', 'baseline', null, 'stack', null, null, null, null, null, null, null,
            null, null, 'finished', 'test', 'float64', 'f', ?, ?, 1, 1, ?, 0, now()::timestamp
        """,
        [f"{last}", last, last],
    )


def test_readers_see_no_error_and_no_mixed_version(tmp_path):
    target = tmp_path / "published" / "firstdrift.duckdb"
    stop = tmp_path / "stop"
    with open_writer(tmp_path / "warehouse.duckdb") as con:
        apply_schema(con)
        apply_macros(con)
        fill(con, 100)
        made = {publish(con, target).version}
        readers = [
            subprocess.Popen(
                [sys.executable, "-c", READER, str(target), str(stop)],
                env={**os.environ, "PYTHONPATH": str(PROJECT)},
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for _ in range(READERS)
        ]  # fmt: skip
        for count in range(PUBLISHES):
            fill(con, 101 + count)
            made.add(publish(con, target).version)
    stop.touch()
    answers = [reader.communicate(timeout=120) for reader in readers]
    assert [error for _, error in answers if error] == []
    found = [json.loads(output) for output, _ in answers]
    assert len(made) == PUBLISHES + 1
    assert [answer["mixed"] for answer in found] == [[]] * READERS
    seen = set().union(*(answer["versions"] for answer in found))
    assert seen <= made
    assert len(seen) > 3, "the readers were not at work while it was published"
    assert all(answer["queries"] >= 1 for answer in found)
