"""The suite of the trackers' writers runs only when asked for: `pytest -m trackers`."""

from pathlib import Path

import pytest

collect_ignore = ["writers"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "trackers" in (config.option.markexpr or ""):
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="needs the trackers' packages: make test-trackers"))
