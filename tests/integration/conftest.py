import json
import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import PROJECT


def clean_environment(home: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DAGSTER", "FIRSTDRIFT"))}
    return {**kept, "FIRSTDRIFT_HOME": str(home), "COLUMNS": "140", "PYTHONPATH": str(PROJECT)}


def firstdrift(home: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "pipelines.cli", *arguments],
        env=clean_environment(home),
        capture_output=True,
        text=True,
        check=check,
        timeout=300,
    )


def write_log(path: Path, values: list[float], metric: str = "train/loss") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.dumps({"step": n, "data": {metric: v, "reward/avg_raw_reward": v / 2}}) for n, v in enumerate(values)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
