"""Each tracker's own writer writes two runs that crash and resume; what we read must equal what was written.

Every tracker gets an environment of its own, kept in FIRSTDRIFT_TRACKER_ENVS (default: a folder of the user's cache)
so that a second run is quick. Needs the package index; `make test-trackers` runs it.
"""

import math
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.ingest.base import RunLog
from pipelines.ingest.registry import read_log
from tests.trackers.writers import scenario

pytestmark = pytest.mark.trackers

WRITERS = Path(__file__).parent / "writers"
ENVIRONMENTS = Path(os.environ.get("FIRSTDRIFT_TRACKER_ENVS") or Path.home() / ".cache/firstdrift/trackers")
SECRETS = ("sk-planted-secret", "planted.person", "planted-host")


def same(name: str) -> str:
    return name


def as_float32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0] if math.isfinite(value) else value


@dataclass(frozen=True)
class Tracker:
    """How one tracker is set up and where it leaves a run.

    Attributes:
        packages: What is installed.
        writer: The script in `writers`.
        log: Path of a run below the target folder; `{run}` is its name.
        log_format: The reader that must take it.
        rename: What the tracker does to a metric's name.
        store: What it does to a value.
        lossy: It rewrites what is not finite.
    """

    packages: tuple[str, ...]
    writer: str
    log: str
    log_format: str
    rename: Callable[[str], str] = same
    store: Callable[[float], float] = float
    lossy: bool = False


TRACKERS = {
    "tensorboard": Tracker(("tensorboard",), "tensorboard", "{run}", "tensorboard", store=as_float32),
    "tensorboardx": Tracker(
        ("tensorboardX", "numpy"),
        "tensorboardx",
        "{run}",
        "tensorboard",
        rename=lambda name: name.replace("@", "_"),
        store=as_float32,
    ),
    "wandb": Tracker(("wandb",), "wandb", "{run}", "wandb"),
    "swanlab": Tracker(("swanlab",), "swanlab", "{run}", "swanlab"),
    "trackio": Tracker(("trackio",), "trackio", "scenario-{run}.db", "trackio"),
    "mlflow_sqlite": Tracker(
        ("mlflow-skinny", "sqlalchemy", "alembic"),
        "mlflow",
        "sqlite/{run}/mlflow.db",
        "mlflow",
        rename=lambda name: name.replace("@", "_at_"),
    ),
    "mlflow_files": Tracker(
        ("mlflow-skinny", "sqlalchemy", "alembic"),
        "mlflow",
        "files/{run}",
        "mlflow",
        rename=lambda name: name.replace("@", "_at_"),
    ),
    "clearml": Tracker(("clearml",), "clearml", "{run}", "clearml", lossy=True),
    "clearml_zip": Tracker(("clearml",), "clearml", "{run}.zip", "clearml", lossy=True),
}


def python_with(packages: tuple[str, ...]) -> Path:
    """Return the interpreter of an environment that holds the packages."""
    home = ENVIRONMENTS / "-".join(packages)
    python = home / "bin" / "python"
    ready = home / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
        ready.touch()
    return python


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Tracker], Path]:
    done: dict[str, Path] = {}

    def write(tracker: Tracker) -> Path:
        if tracker.writer not in done:
            target = tmp_path_factory.mktemp(tracker.writer)
            script = WRITERS / f"write_{tracker.writer}.py"
            python = python_with(tracker.packages)
            subprocess.run([python, script, target], check=True, cwd=target, timeout=180, capture_output=True)
            done[tracker.writer] = target
        return done[tracker.writer]

    return write


def current(log: RunLog) -> dict[tuple[str, int], dict]:
    """Return the last write of the last attempt by metric and step."""
    return {(r["metric_name"], r["step"]): r for r in log.points.to_pylist()}


@pytest.mark.parametrize("name", TRACKERS)
@pytest.mark.parametrize("run", scenario.RUNS)
def test_current_values_equal_what_was_written(name: str, run: str, written: Callable[[Tracker], Path]) -> None:
    tracker = TRACKERS[name]
    log = read_log(written(tracker) / tracker.log.format(run=run))
    assert log.log_format == tracker.log_format
    assert log.issues == ()
    found = current(log)
    wanted = {(tracker.rename(metric), step): value for (metric, step), value in scenario.expected(run).items()}
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        point = found[key]
        if tracker.lossy and not math.isfinite(value):
            assert (point["value"], point["value_kind"]) == (0.0, "rewritten_suspect")
        elif math.isnan(value):
            assert point["value_kind"] == "nan"
        else:
            assert point["value"] == tracker.store(value), key
        assert point["attempt"] == (2 if key[1] >= scenario.RESUME_AT else 1), key


@pytest.mark.parametrize("name", TRACKERS)
def test_every_write_is_kept(name: str, written: Callable[[Tracker], Path]) -> None:
    tracker = TRACKERS[name]
    log = read_log(written(tracker) / tracker.log.format(run="alpha"))
    writes = sum(len(scenario.row("alpha", leg, step)) for leg, steps in scenario.legs() for step in steps)
    assert log.points.num_rows == writes


@pytest.mark.parametrize("name", TRACKERS)
def test_no_secret_comes_through(name: str, written: Callable[[Tracker], Path]) -> None:
    tracker = TRACKERS[name]
    log = read_log(written(tracker) / tracker.log.format(run="alpha"))
    told = repr(log.metadata) + repr(log.issues) + repr(log.points.to_pydict())
    assert not [secret for secret in SECRETS if secret in told]
