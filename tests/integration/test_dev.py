"""`firstdrift dev` really opens the Dagster page, with every asset on it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.integration.conftest import clean_environment


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def asked(port: int, query: str) -> dict:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql",
        data=json.dumps({"query": query}).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.load(answer)["data"]


@pytest.mark.slow
def test_the_page_comes_up_and_shows_every_asset(tmp_path):
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", "dev", "--port", str(port)],
        env=clean_environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        paths: list[list[str]] = []
        while not paths and time.monotonic() < deadline:
            time.sleep(2)
            try:
                nodes = asked(port, "{ assetNodes { assetKey { path } } }")["assetNodes"]
            except OSError:
                continue
            paths = [node["assetKey"]["path"] for node in nodes]
        assert ["marts", "mart_pair_verdict"] in paths
        assert ["lake", "run_logs"] in paths
        assert (tmp_path / "dagster" / "dagster.yaml").is_file()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
