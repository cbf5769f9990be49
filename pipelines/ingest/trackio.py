"""trackio's SQLite files: one file a project, one JSON object a row.

Non-finite values are the texts "NaN", "Infinity" and "-Infinity"; repeated steps are all kept and read in the
order of their rows. Where a project holds several runs, the run is chosen by its name or identifier. A run
that was resumed keeps its identifier.
"""

from datetime import datetime
from pathlib import Path

import orjson

from pipelines.ingest import metadata
from pipelines.ingest.base import RunLog
from pipelines.ingest.points import Draft, assemble
from pipelines.ingest.sqlite_store import choose, columns, connect
from pipelines.ingest.text_number import whole_step
from pipelines.ingest.verl_jsonl import scan_row

NAME = "trackio"


def sniff(path: Path) -> bool:
    """Tell whether this is a project of trackio."""
    return path.is_file() and {"run_name", "step", "metrics", "timestamp"} <= columns(path, "metrics")


def read(path: Path, run: str | None = None) -> RunLog:
    """Read one run of a project."""
    return assemble(NAME, [scan(path, None, run)])


def scan(path: Path, source: str | None = None, run: str | None = None) -> Draft:
    """Return the points of one run in the order of writing.

    Args:
        path: The SQLite file.
        source: How the file is named in points and issues.
        run: Name or identifier, where there are several.

    Raises:
        LogError: If it is not clear which run is meant, or the file is damaged.
    """
    draft = Draft()
    source = source or path.name
    key = "run_id" if "run_id" in columns(path, "metrics") else "run_name"
    with connect(path) as con:
        runs = dict(con.execute(f"select distinct {key}, run_name from metrics").fetchall())
        chosen = choose(path, runs, run)
        query = f"select rowid, timestamp, step, metrics from metrics where {key} = ? order by rowid"
        for row, timestamp, step, content in con.execute(query, (chosen,)):
            _scan_row(draft, (source, row), timestamp, step, content)
        if key in columns(path, "configs"):
            for (content,) in con.execute(f"select config from configs where {key} = ?", (chosen,)):
                draft.metadata.update(_config(content))
    return draft


def _scan_row(draft: Draft, place: tuple[str, int], timestamp: object, step: object, content: bytes | str) -> None:
    try:
        metrics = orjson.loads(content)
    except ValueError:
        draft.issue(place, "the row holds no JSON", str(content))
        return
    if not isinstance(metrics, dict) or whole_step(step) is None:
        draft.issue(place, "the row holds no object of metrics, or its step is no whole number", str(content))
        return
    row = {"step": step, "data": metrics}
    if isinstance(timestamp, str) and (seconds := _seconds(timestamp)) is not None:
        row["timestamp"] = seconds
    scan_row(draft, row, place, None)


def _seconds(timestamp: str) -> float | None:
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo else None


def _config(content: bytes | str) -> dict[str, str]:
    try:
        config = orjson.loads(content)
    except ValueError:
        return {}
    return metadata.from_config(config) if isinstance(config, dict) else {}
