"""A run that is killed at any moment leaves the published file readable, and the next one completes."""

import signal
import subprocess
import sys
import time

import duckdb
import pytest

from tests.integration.conftest import clean_environment, firstdrift, write_log

pytestmark = pytest.mark.slow

VALUES = [1.0 / (n + 1) for n in range(40)]


def published_counts(home):
    con = duckdb.connect(home / "published" / "firstdrift.duckdb", read_only=True)
    try:
        points = con.execute("select count(*) from fct_metric").fetchall()[0][0]
        pairs = con.execute("select count(*) from mart_pair_verdict").fetchall()[0][0]
        return points, pairs
    finally:
        con.close()


@pytest.mark.slow
def test_kill_9_at_several_points(tmp_path):
    landing = tmp_path / "landing" / "m"
    write_log(landing / "gpu" / "log.jsonl", VALUES)
    write_log(landing / "npu" / "log.jsonl", VALUES)
    started = time.monotonic()
    firstdrift(tmp_path, "run")
    whole = time.monotonic() - started
    before = published_counts(tmp_path)
    assert before == (2 * 2 * len(VALUES), 1)
    for share in (0.3, 0.5, 0.65, 0.75, 0.85, 0.95):
        values = [*VALUES, *[share + n for n in range(int(share * 20))]]
        write_log(landing / "npu" / "log.jsonl", values)
        process = subprocess.Popen(
            [sys.executable, "-m", "pipelines.cli", "run"],
            env=clean_environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(whole * share)
        process.send_signal(signal.SIGKILL)
        process.wait()
        points, pairs = published_counts(tmp_path)
        assert pairs == 1
        assert points in (before[0], 2 * (len(VALUES) + len(values)))
        before = (points, pairs)
    done = firstdrift(tmp_path, "run")
    assert "Published" in done.stdout or "Already published" in done.stdout
    assert published_counts(tmp_path) == (2 * (len(VALUES) + len(values)), 1)
