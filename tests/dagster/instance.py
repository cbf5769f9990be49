"""A Dagster instance that really runs: webserver and daemon, each a process, on a home of its own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import PROJECT
from tests.integration.conftest import clean_environment

LOCATION = {"repositoryName": "__repository__", "repositoryLocationName": "pipelines.definitions"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Instance:
    """A running instance, asked as its page asks it."""

    home: Path
    port: int
    processes: list[subprocess.Popen[bytes]]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, query: str, **variables: Any) -> Any:
        request = urllib.request.Request(
            f"{self.address}/graphql",
            data=json.dumps({"query": query, "variables": variables}).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = json.load(answer)
        assert "errors" not in body, body["errors"]
        return body["data"]

    def runs(self) -> list[dict[str, Any]]:
        """Return the runs, the newest first, with their tags as a dictionary."""
        found = self.ask("{ runsOrError { ... on Runs { results { runId status tags { key value } } } } }")
        results = found["runsOrError"]["results"]
        return [{**run, "tags": {tag["key"]: tag["value"] for tag in run["tags"]}} for run in results]

    def ended(self, count: int, seconds: float = 480) -> list[dict[str, Any]]:
        """Wait until there are so many runs and all have ended; return them, the newest first."""

        def all_ended() -> list[dict[str, Any]] | None:
            runs = self.runs()
            has_all = len(runs) >= count and all(run["status"] in ("SUCCESS", "FAILURE") for run in runs)
            return runs if has_all else None

        return waited(all_ended, seconds, f"{count} runs that have ended")

    def kill(self) -> None:
        """Take the processes away, as a power cut does."""
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def waited(look: Callable[[], Any], seconds: float, what: str) -> Any:
    """Look until there is something to see; an address that does not answer yet is waited for."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            found = look()
        except OSError:
            found = None
        if found:
            return found
        time.sleep(1)
    raise AssertionError(f"waited {seconds} seconds for {what}")


@contextmanager
def running_instance(home: Path, **variables: str) -> Iterator[Instance]:
    """Start webserver and daemon on a home, as the units of deploy/systemd do.

    Args:
        home: The home folder; its Dagster storage is made where it is absent.
        variables: More variables of the environment.
    """
    dagster_home = home / "dagster"
    (home / "landing").mkdir(parents=True, exist_ok=True)
    dagster_home.mkdir(exist_ok=True)
    shutil.copyfile(PROJECT / "dagster.yaml", dagster_home / "dagster.yaml")
    environment = {**clean_environment(home), "DAGSTER_HOME": str(dagster_home), **variables}

    def command(*words: str) -> list[str]:
        return [str(Path(sys.executable).with_name(words[0])), *words[1:]]

    # Storage first: two processes that make it at the same moment get in each other's way.
    subprocess.run(
        command("dagster", "instance", "migrate"), env=environment, check=True, capture_output=True, timeout=240
    )
    port = free_port()
    processes = []
    for name, words in (
        ("webserver", ("dagster-webserver", "-m", "pipelines.definitions", "-p", str(port))),
        ("daemon", ("dagster-daemon", "run", "-m", "pipelines.definitions")),
    ):
        with (home / f"{name}.log").open("ab") as log:
            processes.append(
                subprocess.Popen(
                    command(*words), env=environment, stdout=log, stderr=log, start_new_session=True, cwd=home
                )
            )
    instance = Instance(home, port, processes)
    try:
        waited(lambda: instance.ask("{ version }"), 240, "the page")
        yield instance
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
