"""What `firstdrift inspect` prints of logs; nothing is stored."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from pipelines.ingest.base import LogError
from pipelines.ingest.registry import detect
from pipelines.ingest.summary import LogSummary, summarize
from pipelines.landing import resolve_log
from pipelines.manifest import MANIFEST_NAME, SIDECAR_NAME, Manifest, ManifestError, RunEntry, read_manifest
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

    Args:
        path: File or folder.
        catalog: The metric catalogue.

    Raises:
        LogError: If there is no such path.
        ManifestError: If a manifest lies there and is not valid.
    """
    if not path.exists():
        raise LogError(f"{path}: there is no such file or folder.")
    if (path / MANIFEST_NAME).is_file():
        manifest = read_manifest(path / MANIFEST_NAME)
        return [_view_of_entry(manifest, entry, catalog) for entry in manifest.runs]
    if path.is_file() or _is_one_run(path):
        return [_view(path.name, path, catalog)]
    members = sorted(p for p in path.iterdir() if not p.name.startswith(".") and p.name != SIDECAR_NAME)
    return [_view(member.name, member, catalog) for member in members]


def _is_one_run(path: Path) -> bool:
    try:
        detect(path)
    except LogError:
        return False
    return True


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
        console.print(f"{view.name}: {view.error}", style="red", markup=False)
        return
    for note in view.summary.notes:
        console.print(f"{view.name}: {note}", markup=False)
    for issue in view.summary.issues[:_SHOWN]:
        place = f"{issue.source_file}, position {issue.source_position}"
        console.print(f"{view.name}: {place}: {issue.reason}", style="yellow", markup=False)
    if len(view.summary.issues) > _SHOWN:
        console.print(f"{view.name}: {len(view.summary.issues) - _SHOWN} further issues")
    if view.uncatalogued:
        names = ", ".join(view.uncatalogued[:_SHOWN])
        more = f" and {len(view.uncatalogued) - _SHOWN} more" if len(view.uncatalogued) > _SHOWN else ""
        console.print(f"{view.name}: uncatalogued: {names}{more}", markup=False)
    for key, value in sorted(view.summary.metadata.items()):
        console.print(f"{view.name}: {key}: {value}", style="dim", markup=False)
