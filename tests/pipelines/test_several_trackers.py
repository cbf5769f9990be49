"""Several trackers' logs of one run that grow are read on each by itself, with the result of reading them at once."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest.registry import READERS, read_log
from tests.ingest import growing
from tests.pipelines.passes import LEGS, Lake, same_as_at_once, small_pieces


@contextmanager
def two_trackers() -> Iterator[tuple[Path, Lake]]:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run"
        log.mkdir()
        yield log, Lake(Path(folder) / "lake")


@settings(max_examples=25, deadline=None)
@given(legs=LEGS, data=st.data())
def test_several_trackers_that_grow_equal_reading_them_at_once(
    legs: list[tuple[int, int]], data: st.DataObject
) -> None:
    """JSON lines and event files of one run, of which each may lag behind, lack metrics or disagree."""
    rows = growing.rows_of(legs)
    names = sorted({name for _, values in rows for name in values})
    only = {name: data.draw(st.sampled_from(["both", "jsonl", "tensorboard"])) for name in names}
    wrong = data.draw(st.sampled_from([None, *names]))
    contents = {}
    for tracker in ("jsonl", "tensorboard", "verl_console"):
        file, write = growing.FILES[tracker]
        kept = [(s, {n: v for n, v in values.items() if only[n] in ("both", tracker)}) for s, values in rows]
        if tracker == "tensorboard" and wrong:
            kept = [(s, {n: v + (n == wrong) for n, v in values.items()}) for s, values in kept]
        contents[file] = write(kept)
    with two_trackers() as (log, lake), small_pieces(points=data.draw(st.sampled_from([3, 40, 1 << 18]))):
        shares = data.draw(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), max_size=4))
        done = [0.0, 0.0, 0.0]
        for share in [*shares, [1.0, 1.0, 1.0]]:
            done = [max(pair) for pair in zip(done, share, strict=True)]
            for (file, content), part in zip(contents.items(), done, strict=True):
                (log / file).write_bytes(content[: int(part * len(content))])
            outcome = lake.take_in(log)
            if outcome.error == "unchanged":
                continue
            same_as_at_once(lake, log, outcome)
            if not outcome.error:
                same_as_the_reader(lake, log)


def test_of_several_trackers_only_what_was_added_is_read(tmp_path: Path) -> None:
    rows = growing.rows_of([(0, 40)])
    log, lake = tmp_path / "run", Lake(tmp_path / "lake")
    log.mkdir()
    contents = {}
    for tracker in ("jsonl", "tensorboard"):
        file, write = growing.FILES[tracker]
        contents[file] = write([(s, {**values, tracker: float(s)}) for s, values in rows])
        (log / file).write_bytes(contents[file][: len(contents[file]) // 2])
    lake.take_in(log)
    before = (lake.content().reading or {})["logs"]
    for file, content in contents.items():
        (log / file).write_bytes(content)
    readers = [r for r in READERS if r.NAME in before]
    offsets = {}
    with ExitStack() as stack:
        for reader in readers:
            scan = stack.enter_context(mock.patch.object(reader, "scan", wraps=reader.scan))
            offsets[reader.NAME] = scan
        outcome = lake.take_in(log)
    begun = {name: [c.args[0].since.offset for c in scan.call_args_list] for name, scan in offsets.items()}
    assert begun == {name: [state["progress"]["mark"]["offset"]] for name, state in before.items()}
    assert all(offset > 0 for (offset,) in begun.values())
    assert len(begun) == 2
    same_as_at_once(lake, log, outcome)


def same_as_the_reader(lake: Lake, log: Path) -> None:
    """The lake holds what `read_log` returns for the folder."""
    read = read_log(log)
    points, issues = lake.tables()
    assert points == sorted(tuple(map(repr, row.values())) for row in read.points.to_pylist())
    assert len(issues) == len(read.issues)
