"""The warehouse as a Dagster resource."""

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


def current_project() -> Project:
    """Return the models of the project."""
    return load_project(project_folder("models"), schema_files(), macro_files())


def current_catalog() -> Catalog:
    """Return the metric catalogue of the project."""
    return load_catalog(project_folder("catalog"))
