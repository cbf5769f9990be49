"""Parquet and CSV: a folder for each version, in which what did not change is the file of the version before.

A version is complete before anything names it: it is written under a temporary name and renamed, then the link
`current` moves to it, then the manifest. Whoever kills an export leaves the previous version whole.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote as percent

from warehouse.export.source import Export, ExportError, Partition, Source, Table, open_source
from warehouse.publish import link_or_copy, write_json
from warehouse.runner import quote

FORMATS = ("parquet", "csv")
CURRENT = "current"
_MANIFEST = "manifest.json"
_OPTIONS = {"parquet": "format parquet, compression zstd", "csv": "format csv, header"}
# The name that readers of partitioned folders take for null.
_NO_MIGRATION = "__HIVE_DEFAULT_PARTITION__"
_KEPT_VERSIONS = 2


def export_parquet(published: Path, folder: Path, report: Callable[[str], None] | None = None) -> Export:
    """Write every published table as Parquet; see `export_folder`."""
    return export_folder(published, folder, "parquet", report)


def export_folder(published: Path, folder: Path, form: str, report: Callable[[str], None] | None = None) -> Export:
    """Write every published table into a folder: facts and marts by migration, the others whole.

    Args:
        published: The published file.
        folder: The folder of the export. It gets a folder for each version, the link `current`, and manifest.json,
            which names every file with its rows and the hash of its content.
        form: One of `FORMATS`.
        report: Called with the name of each table when it is complete.

    Raises:
        NothingPublishedError: If nothing is published.
        ExportError: If the folder can't be written, holds another format, or another export writes to it.
    """
    with open_source(published) as source, _only_export(folder):
        manifest = _read_manifest(folder, form)
        if manifest["version"] == source.version:
            rows = {name: entry["rows"] for name, entry in manifest["tables"].items()}
            return Export(str(folder), source.version, rows, {}, False)
        for draft in folder.glob(".draft-*"):
            shutil.rmtree(draft, ignore_errors=True)
        draft = folder / f".draft-{os.getpid()}"
        target = folder / f"{form}-{source.version}"
        tables, written = _write_tables(source, folder, draft, manifest, form, report)
        shutil.rmtree(target, ignore_errors=True)
        draft.replace(target)
        _point_to(target)
        for entry in tables.values():
            for file in entry["files"]:
                file["file"] = f"{target.name}/{file['file']}"
        write_json(folder / _MANIFEST, {"version": source.version, "format": form, "tables": tables})
        _retain(folder, form, target)
        return Export(
            str(folder), source.version, {name: entry["rows"] for name, entry in tables.items()}, written, True
        )


@contextmanager
def _only_export(folder: Path) -> Iterator[None]:
    """Hold the right to write to the folder; the system takes it back from a killed process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ExportError(f"{folder}: another export writes there; wait until it has ended.") from error
            yield
    except OSError as error:
        raise ExportError(
            f"{error.filename or folder}: the export can't be written ({error.strerror}); what was exported before is "
            "whole. Name a folder that you may write to."
        ) from error


def _read_manifest(folder: Path, form: str) -> dict:
    path = folder / _MANIFEST
    if not path.exists():
        return {"version": "", "tables": {}}
    manifest = json.loads(path.read_text(encoding="utf-8"))
    found = manifest.get("format", form)
    if found != form:
        raise ExportError(f"{folder} holds an export as {found}; name another folder for {form}.")
    return manifest


def _write_tables(
    source: Source, folder: Path, draft: Path, manifest: dict, form: str, report: Callable[[str], None] | None
) -> tuple[dict, dict[str, int]]:
    """Fill the draft; return what the manifest says of each table, and how many files of it are new."""
    tables, written = {}, {}
    for table in source.tables:
        before = {
            (file["migration"], file["content"]): folder / file["file"]
            for file in manifest["tables"].get(table.name, {}).get("files", [])
        }
        files = []
        for part in table.partitions:
            name = _file_name(table, part, form)
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            earlier = before.get((part.migration, part.content))
            if earlier and earlier.exists():
                link_or_copy(earlier, path)
            else:
                _write_partition(source, table, part, path, form)
                written[table.name] = written.get(table.name, 0) + 1
            files.append({"file": name, "migration": part.migration, "rows": part.rows, "content": part.content})
        tables[table.name] = {"rows": table.rows, "files": files}
        if report:
            report(table.name)
    return tables, written


def _file_name(table: Table, part: Partition, form: str) -> str:
    if not table.owner:
        return f"{table.name}.{form}"
    folder = _NO_MIGRATION if part.migration is None else percent(part.migration, safe=" ")
    return f"{table.name}/migration={folder}/data.{form}"


def _write_partition(source: Source, table: Table, part: Partition, path: Path, form: str) -> None:
    columns = table.flat() if form == "csv" else "*"
    rows = f"select {columns} from {table.name} where {table.where(part.migration)}"
    source.con.execute(f"copy ({rows}) to {quote(str(path))} ({_OPTIONS[form]})")


def _point_to(target: Path) -> None:
    """Let the link `current` lead to a version; a file system without links has the manifest alone."""
    draft = target.parent / f".draft-{os.getpid()}.link"
    try:
        draft.unlink(missing_ok=True)
        draft.symlink_to(target.name, target_is_directory=True)
        draft.replace(target.parent / CURRENT)
    except OSError:
        draft.unlink(missing_ok=True)


def _retain(folder: Path, form: str, current: Path) -> None:
    """Remove old versions, but the one before: whoever reads it just now may finish."""
    others = [path for path in folder.glob(f"{form}-*") if path.is_dir() and path != current]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[_KEPT_VERSIONS - 1 :]:
        shutil.rmtree(path, ignore_errors=True)
