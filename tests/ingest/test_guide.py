"""The page about the readers says what the readers say."""

from pipelines.ingest.guide import PAGE, page
from pipelines.ingest.registry import READERS


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `python -m pipelines.ingest.guide`"


def test_every_reader_is_listed() -> None:
    text = page()
    assert all(f"## {reader.NAME}\n" in text for reader in READERS)
