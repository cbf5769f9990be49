"""Dagster's own storage in a home: its instance file and its SQLite files, each there whole or not at all.

Dagster makes its SQLite files in many steps, and takes a file that is there for a finished one: a process killed in
between would leave a home in which no run ever begins again. What Dagster keeps in them is not decided here.
"""

import fcntl
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import yaml

from warehouse.connection import set_aside
from warehouse.settings import project_folder

INSTANCE_FILE = "dagster.yaml"
# Each file with the tables that a finished one has; Dagster writes the revision of the tables last.
_DATABASES = {
    "history/runs.db": {"alembic_version", "runs"},
    "history/runs/index.db": {"alembic_version", "event_logs", "dynamic_partitions"},
    "schedules/schedules.db": {"alembic_version", "instigators"},
}
_DRAFT = ".draft-"


def prepare_storage(folder: Path) -> None:
    """Make the instance file and the SQLite files where they are absent or were left half-made.

    A half-made or damaged file is set aside under another name.

    Args:
        folder: Dagster's home; made where it does not exist.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        for left in folder.glob(f"{_DRAFT}*"):
            shutil.rmtree(left)
        instance_file = folder / INSTANCE_FILE
        if not instance_file.exists() or not instance_file.stat().st_size:
            draft = folder / f".{INSTANCE_FILE}"
            shutil.copyfile(project_folder(INSTANCE_FILE), draft)
            draft.replace(instance_file)
        absent = [name for name, tables in _DATABASES.items() if not _is_whole(folder / name, tables)]
        if absent and not _lies_elsewhere(instance_file):
            _make(folder, absent)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process makes the storage; the system takes the lock back from a killed one."""
    with (folder / "storage.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _lies_elsewhere(instance_file: Path) -> bool:
    """Tell whether the instance file names a storage of its own, Postgres for example."""
    data = yaml.safe_load(instance_file.read_text(encoding="utf-8"))
    return isinstance(data, dict) and any(key == "storage" or str(key).endswith("_storage") for key in data)


def _is_whole(path: Path, tables: set[str]) -> bool:
    if not path.exists():
        return False
    try:
        with closing(sqlite3.connect(path)) as con:
            found = {name for (name,) in con.execute("select name from sqlite_master where type = 'table'")}
            return tables <= found and bool(con.execute("select * from alembic_version").fetchall())
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # locked, or not ours to open: no word on what is in it
            raise OSError(f"{path}: Dagster's storage can't be opened ({error}).") from error
        return False


def _make(folder: Path, names: list[str]) -> None:
    import dagster as dg

    draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=folder))
    try:
        shutil.copyfile(project_folder(INSTANCE_FILE), draft / INSTANCE_FILE)
        with dg.DagsterInstance.from_config(str(draft)) as instance:
            assert all((instance.run_storage, instance.event_log_storage, instance.schedule_storage))
        for name in names:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                set_aside(target, "-wal", "-shm")
            _move(draft / name, target)
    finally:
        shutil.rmtree(draft)


def _move(source: Path, target: Path) -> None:
    """Move a SQLite file with what SQLite has not yet written into it, which must be there first."""
    with closing(sqlite3.connect(source)) as con:
        con.execute("pragma wal_checkpoint(truncate)")
    source.replace(target)
