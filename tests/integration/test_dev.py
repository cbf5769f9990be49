"""`firstdrift dev` really opens the Dagster page, with every asset on it."""

import os
import signal
import subprocess
import sys

import pytest

from tests.dagster.instance import Instance, free_port, waited
from tests.integration.conftest import clean_environment


@pytest.mark.slow
def test_the_page_comes_up_and_shows_every_asset(tmp_path):
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", "dev", "--port", str(port)],
        env=clean_environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        page = Instance(tmp_path, port, [])
        nodes = waited(lambda: page.ask("{ assetNodes { assetKey { path } } }")["assetNodes"], 240, "the page")
        paths = [node["assetKey"]["path"] for node in nodes]
        assert ["marts", "mart_pair_verdict"] in paths
        assert ["lake", "run_logs"] in paths
        assert (tmp_path / "dagster" / "dagster.yaml").is_file()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
