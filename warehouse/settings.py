"""Where things lie: the project's own files and the home folder of a warehouse.

Paths and environment variables are read here and nowhere else.
"""

import os
from dataclasses import dataclass
from pathlib import Path

HOME_VARIABLE = "FIRSTDRIFT_HOME"
OWNERS_VARIABLE = "FIRSTDRIFT_OWNERS"
SOURCE_VARIABLE = "FIRSTDRIFT_SOURCE_URL"
WEBHOOK_VARIABLE = "FIRSTDRIFT_WEBHOOK"
SENSOR_VARIABLE = "FIRSTDRIFT_SENSOR_SECONDS"
DEFAULT_HOME = Path("data")
DEFAULT_OWNERS = "team:firstdrift"
DEFAULT_SENSOR_SECONDS = 60
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

    @property
    def running(self) -> Path:
        """Folder with a locked file for each Dagster run that is alive."""
        return self.home / "running"


def settings_for(home: Path | None = None) -> Settings:
    """Return the settings of the warehouse at `home`.

    Args:
        home: The home folder; None for FIRSTDRIFT_HOME, or ./data where that is not set.

    Raises:
        OSError: If a file lies there, or its user is not known.
    """
    chosen = home or Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME)
    path = expanded(chosen).absolute()
    if path.is_file():
        raise NotADirectoryError(f"{path}: this is a file; name a folder as the home.")
    return Settings(path)


def expanded(path: Path) -> Path:
    """Return a path with the home folder of a user in the place of its ~.

    Raises:
        FileNotFoundError: If there is no such user.
    """
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise FileNotFoundError(f"{path}: there is no user of that name; write the path without ~.") from error


@dataclass(frozen=True)
class TeamSettings:
    """What a team says of its Dagster, each by an environment variable.

    Attributes:
        owners: Owners of every asset: e-mail addresses, or team:name. FIRSTDRIFT_OWNERS, separated by commas.
        source_url: Where the project's files can be browsed, up to and with the branch; "" for files of this
            machine. FIRSTDRIFT_SOURCE_URL.
        webhook: Address that failed runs are posted to; "" to log them alone. FIRSTDRIFT_WEBHOOK.
        sensor_seconds: How often landing is looked at. FIRSTDRIFT_SENSOR_SECONDS.
    """

    owners: tuple[str, ...]
    source_url: str
    webhook: str
    sensor_seconds: int


def team_settings() -> TeamSettings:
    """Return what the environment says of the team's Dagster.

    Raises:
        ValueError: If a variable can't be used; the message names it and the remedy.
    """
    owners = (os.environ.get(OWNERS_VARIABLE) or DEFAULT_OWNERS).split(",")
    webhook = os.environ.get(WEBHOOK_VARIABLE, "")
    if webhook and not webhook.startswith(("http://", "https://")):
        raise ValueError(f"{WEBHOOK_VARIABLE} is no address; write one that begins with https:// or http://.")
    seconds = os.environ.get(SENSOR_VARIABLE) or str(DEFAULT_SENSOR_SECONDS)
    if not seconds.isdecimal() or int(seconds) < 1:
        raise ValueError(f"{SENSOR_VARIABLE}={seconds}: write a whole number of seconds, 60 for example.")
    return TeamSettings(
        owners=tuple(owner.strip() for owner in owners if owner.strip()),
        source_url=os.environ.get(SOURCE_VARIABLE, "").rstrip("/"),
        webhook=webhook,
        sensor_seconds=int(seconds),
    )


def project_folder(name: str) -> Path:
    """Return the folder `name` (sql, models, catalog, examples) of the project's own files.

    An installed wheel carries them inside the package; a checkout has them beside it.
    """
    installed = _PACKAGE / "_project" / name
    return installed if installed.exists() else _PACKAGE.parent / name
