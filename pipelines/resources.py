"""The warehouse as a Dagster resource."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import duckdb

from warehouse.catalog import Catalog, load_catalog
from warehouse.connection import open_writer
from warehouse.project import Project, load_project
from warehouse.schema import ensure_current, macro_files, schema_files
from warehouse.settings import Settings, project_folder, settings_for


class WarehouseResource(dg.ConfigurableResource):
    """A warehouse and the project files that build it.

    Attributes:
        home: The home folder; empty for FIRSTDRIFT_HOME, or ./data where that is not set.
    """

    home: str = ""

    @property
    def settings(self) -> Settings:
        """The folders and files of the warehouse."""
        return settings_for(Path(self.home) if self.home else None)

    @contextmanager
    def writer(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open the working file with the schema and macros of this release."""
        with open_writer(self.settings.database) as con:
            ensure_current(con)
            yield con

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["WarehouseResource"]:
        """Hold a lock for as long as a run lives, by which `is_alive` knows it; sensors have none."""
        if context.run is None:
            yield self
        else:
            with _sign_of_life(self.settings.running, context.run.run_id):
                yield self


@contextmanager
def _sign_of_life(folder: Path, run_id: str) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / run_id
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_SH)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def is_alive(settings: Settings, run_id: str) -> bool:
    """Tell whether a process holds the lock of a run; the system takes it back from a killed one."""
    try:
        with (settings.running / run_id).open() as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def current_project() -> Project:
    """Return the models of the project."""
    return load_project(project_folder("models"), schema_files(), macro_files())


def current_catalog() -> Catalog:
    """Return the metric catalogue of the project."""
    return load_catalog(project_folder("catalog"))
