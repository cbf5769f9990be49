"""Where things lie: the project's own files and the home folder of a warehouse.

Paths and environment variables are read here and nowhere else.
"""

import os
from dataclasses import dataclass
from pathlib import Path

HOME_VARIABLE = "FIRSTDRIFT_HOME"
DEFAULT_HOME = Path("data")
_PACKAGE = Path(__file__).parent


@dataclass(frozen=True)
class Settings:
    """The folders and files of one warehouse.

    Attributes:
        home: The folder that holds all of it.
    """

    home: Path

    @property
    def landing(self) -> Path:
        """Folder of the logs; nothing in it is ever changed by an ingestion."""
        return self.home / "landing"

    @property
    def lake(self) -> Path:
        """Folder of the Parquet files, one for each run and content."""
        return self.home / "lake"

    @property
    def database(self) -> Path:
        """The working file. Only the writing process opens it."""
        return self.home / "warehouse.duckdb"

    @property
    def published_folder(self) -> Path:
        """Folder of the published file and its earlier versions."""
        return self.home / "published"

    @property
    def published(self) -> Path:
        """The file that readers open."""
        return self.published_folder / "firstdrift.duckdb"

    @property
    def exports(self) -> Path:
        """Folder of the exported tables."""
        return self.home / "exports"

    @property
    def reports(self) -> Path:
        """Folder of pages for people."""
        return self.home / "reports"

    @property
    def dagster_home(self) -> Path:
        """Folder of Dagster's own storage."""
        return self.home / "dagster"


def settings_for(home: Path | None = None) -> Settings:
    """Return the settings of the warehouse at `home`.

    Args:
        home: The home folder; None for FIRSTDRIFT_HOME, or ./data where that is not set.
    """
    chosen = home or Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME)
    return Settings(chosen.expanduser().absolute())


def project_folder(name: str) -> Path:
    """Return the folder `name` (sql, models, catalog, examples) of the project's own files.

    An installed wheel carries them inside the package; a checkout has them beside it.
    """
    installed = _PACKAGE / "_project" / name
    return installed if installed.exists() else _PACKAGE.parent / name
