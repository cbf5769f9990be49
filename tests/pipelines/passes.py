"""A lake that a log is taken into pass by pass, and what that must equal."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pyarrow as pa
from hypothesis import strategies as st

from pipelines import parts
from pipelines.ingest import draft, sources
from pipelines.intake import Job, Outcome, fingerprints, hash_of, take_in
from pipelines.manifest import RunEntry
from warehouse import lake as lake_files

LEGS = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12)), min_size=1, max_size=3)
"""First step and length of each attempt."""


class Lake:
    """A lake that one log is taken into, pass by pass."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known = ""

    def take_in(self, log: Path) -> Outcome:
        entry = RunEntry(name="r", log=log.name, role="baseline")
        try:
            files = fingerprints([log])
        except Exception as error:  # nothing that anyone knows yet
            return Outcome("r", error=str(error))
        job = Job("m", entry, (log,), files, hash_of(files), self.known)
        outcome = take_in(job, self.folder) if job.must_read else Outcome("r", error="unchanged")
        if not outcome.error:
            self.known = job.content_hash
        return outcome

    def content(self) -> lake_files.RunContent:
        return lake_files.read_content(self.folder, "m", "r", self.known)

    def tables(self) -> tuple[list[tuple], list[tuple]]:
        """Return points and issues in an order that does not depend on the parts."""
        content, folder = self.content(), lake_files.run_folder(self.folder, "m", "r")
        found = []
        for names in (content.points, content.issues):
            tables = [lake_files.read_part(folder, name) for name in names]
            rows = pa.concat_tables(tables).to_pylist() if tables else []
            found.append(sorted(tuple(map(repr, row.values())) for row in rows))
        return found[0], found[1]


@contextmanager
def small_pieces(window: int = 300, points: int = 7) -> Iterator[None]:
    """Read in pieces so small that every log has many."""
    with (
        mock.patch.object(sources, "WINDOW_BYTES", window),
        mock.patch.object(draft, "SLICE_POINTS", points),
        mock.patch.object(parts, "SLICE_POINTS", points),
    ):
        yield


def same_as_at_once(lake: Lake, log: Path, outcome: Outcome) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole = Lake(Path(folder))
        assert whole.take_in(log) == outcome
        if not outcome.error:
            assert lake.tables() == whole.tables()
