import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PROJECT
from tests.dagster.instance import Instance, running_instance

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --window-size=1400,1800"
)


@pytest.fixture(scope="session")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """An instance on whose landing folder the examples were put, and nothing else was done."""
    home = tmp_path_factory.mktemp("instance")
    with running_instance(home, FIRSTDRIFT_SENSOR_SECONDS="4") as running:
        folder = home / "landing" / "sorting-npu"
        folder.mkdir()
        for path in sorted((PROJECT / "examples").iterdir()):
            shutil.copyfile(path, folder / path.name)
        yield running


@pytest.fixture(scope="session")
def landed(instance: Instance) -> Instance:
    """The same instance, when the run that the sensor asked for has ended."""
    instance.ended(1)
    return instance


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of the pages go: FIRSTDRIFT_SCREENSHOTS, or a folder that pytest removes."""
    folder = Path(os.environ.get("FIRSTDRIFT_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium, driven by the driver that comes with it."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("no Chromium with its driver on the PATH (make test-browser installs both on Debian and Ubuntu)")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    opened = webdriver.Chrome(options=options, service=Service(driver))
    yield opened
    opened.quit()
