"""What `firstdrift inspect` prints of logs; nothing is stored."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from pipelines.discovery import members_of, resolve_log
from pipelines.ingest.base import LogError
from pipelines.ingest.summary import LogSummary, summarize
from pipelines.manifest import MANIFEST_NAME, Manifest, ManifestError, RunEntry, read_manifest
from warehouse.catalog import Catalog, resolve

_SHOWN = 5


@dataclass(frozen=True)
class RunView:
    """A run as its log shows it.

    Attributes:
        name: Name in the manifest, or of the file or folder.
        error: Why nothing can be read; the other fields are empty then.
        summary: What the log holds.
        uncatalogued: Names that nobody described.
    """

    name: str
    error: str = ""
    summary: LogSummary | None = None
    uncatalogued: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """Return the view as plain data for JSON."""
        summary = self.summary.as_dict() if self.summary else None
        return {"name": self.name, "error": self.error, "uncatalogued": self.uncatalogued, "log": summary}


def inspect_path(path: Path, catalog: Catalog) -> list[RunView]:
    """Look at what lies at `path`: a log, a folder of runs, or a folder with a migration.yaml.

    A folder is what it would be in landing: a member that holds a log is a run. What could be meant as a log and is
    none that anybody can read is a view with an error.

    Args:
        path: File or folder.
        catalog: The metric catalogue.

    Raises:
        LogError: If there is no such path, or no log lies in the folder.
        ManifestError: If a manifest lies there and is not valid, or two logs would have one name.
    """
    if not path.exists():
        raise LogError(f"{path}: there is no such file or folder.")
    if not path.is_file() and not path.is_dir():
        raise LogError(f"{path}: this is neither a file nor a folder; name a log.")
    if (path / MANIFEST_NAME).is_file():
        manifest = read_manifest(path / MANIFEST_NAME)
        return [_view_of_entry(manifest, entry, catalog) for entry in manifest.runs]
    if path.is_file():
        return [_view(path.name, path, catalog)]
    members = members_of(path)
    if len(members.logs) == 1 and not members.unread:  # whichever it is, a run or a folder of one
        (log,) = members.logs.values()
        return [_view(path.name, path if log.is_file() else log, catalog)]
    views = [_view(name, log, catalog) for name, log in members.logs.items()]
    if not views and not members.unread:
        raise LogError(f"{path}: no log lies in this folder.")
    return views + [RunView(name, error=sentence) for name, sentence in members.unread.items()]


def folder_notes(path: Path, views: list[RunView]) -> list[str]:
    """Return what is to be said of a folder that may be meant as one run."""
    runs = sum(not view.error for view in views)
    if not path.is_dir() or (path / MANIFEST_NAME).is_file() or runs < 2:
        return []
    return [
        f"{runs} runs, as in landing. Named as the log of one run (`firstdrift add MIGRATION RUN {path}`), "
        "the files of the folder are read together."
    ]


def _view_of_entry(manifest: Manifest, entry: RunEntry, catalog: Catalog) -> RunView:
    try:
        logs = resolve_log(manifest, entry)
    except ManifestError as error:
        return RunView(entry.name, error=str(error))
    return _view(entry.name, logs[0] if len(logs) == 1 else logs, catalog, entry.columns)


def _view(name: str, logs: Path | list[Path], catalog: Catalog, columns: tuple[str, ...] = ()) -> RunView:
    try:
        summary = summarize(logs, columns or None)
    except (LogError, OSError) as error:
        return RunView(name, error=str(error))
    names = sorted({metric.metric_name for metric in summary.metrics})
    found = resolve(catalog, names, summary.framework).to_pylist()
    unknown = tuple(row["metric_name"] for row in found if row["equivalence"] == "uncatalogued")
    return RunView(name, summary=summary, uncatalogued=unknown)


def print_inspection(views: list[RunView], console: Console) -> None:
    """Print what was found for a person."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("run", "format", "framework", "points", "attempts", "steps", "metrics", "not finite", "issues"):
        table.add_column(title, overflow="fold")
    for view in views:
        if view.summary is not None:
            table.add_row(view.name, *_cells(view, view.summary))
    if table.row_count:
        console.print(table)
    for view in views:
        _print_details(view, console)


def _cells(view: RunView, log: LogSummary) -> list[str]:
    axes = {axis.step_axis for axis in log.axes}
    steps = [
        f"{name} {min(a.first_step for a in log.axes if a.step_axis == name)} to "
        f"{max(a.last_step for a in log.axes if a.step_axis == name)}"
        for name in sorted(axes)
    ]
    unsound = [f"{count} {kind}" for kind, count in log.value_kinds.items() if kind != "finite"]
    names = {metric.metric_name for metric in log.metrics}
    return [
        log.log_format,
        log.framework,
        f"{log.points:,}",
        str(max((axis.attempt for axis in log.axes), default=0)),
        ", ".join(steps),
        f"{len(names)} ({len(view.uncatalogued)} uncatalogued)",
        ", ".join(unsound),
        str(len(log.issues)),
    ]


def _print_details(view: RunView, console: Console) -> None:
    if view.summary is None:
        console.print(f"{view.name}: {view.error}", style="red")
        return
    for note in view.summary.notes:
        console.print(f"{view.name}: {note}")
    for issue in view.summary.issues[:_SHOWN]:
        place = f"{issue.source_file}, position {issue.source_position}"
        console.print(f"{view.name}: {place}: {issue.reason}", style="yellow")
    if len(view.summary.issues) > _SHOWN:
        console.print(f"{view.name}: {len(view.summary.issues) - _SHOWN} further issues")
    if view.uncatalogued:
        names = ", ".join(view.uncatalogued[:_SHOWN])
        more = f" and {len(view.uncatalogued) - _SHOWN} more" if len(view.uncatalogued) > _SHOWN else ""
        console.print(f"{view.name}: uncatalogued: {names}{more}")
    for key, value in sorted(view.summary.metadata.items()):
        console.print(f"{view.name}: {key}: {value}", style="dim")
