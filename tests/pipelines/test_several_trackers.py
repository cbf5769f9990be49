"""Several trackers' logs of one run that grow are read on each by itself, with the result of reading them at once."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest.registry import READERS, read_log
from pipelines.landing import ingest_migration
from pipelines.manifest import read_manifest
from pipelines.resources import current_catalog
from tests.ingest import growing
from tests.pipelines.passes import LEGS, Lake, same_as_at_once, small_pieces
from tests.statistics.star import build, statistics_models
from warehouse.load import load_lake
from warehouse.schema import ensure_current


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


def two_logs(folder: Path, lines: str, console: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "tracker.jsonl").write_text(lines)
    (folder / "run.log").write_text(console)
    return folder


def jsonl_of(steps: range, value: float = 1 / 7) -> str:
    return "".join(f'{{"step": {s}, "data": {{"loss": {value + s}}}}}\n' for s in steps)


def console_of(steps: range, value: float = 1 / 7, more: str = "") -> str:
    return "".join(f"step:{s} - loss:{value + s:.3f}{more}\n" for s in steps)


def test_a_metric_of_the_console_alone_makes_no_other_metric_coarser(tmp_path: Path) -> None:
    """Equality is judged at the precision of the log that a metric is taken from."""
    folder = tmp_path / "m"
    for name, nudge in (("gpu", 0.0), ("npu", 1e-9)):
        lines = jsonl_of(range(1, 20), 1 / 7 + nudge)
        two_logs(folder / name, lines, console_of(range(1, 20), more=" - only_console:0.143"))
    (folder / "migration.yaml").write_text(
        "migration: m\nruns:\n  - {name: gpu, log: gpu, role: baseline}\n  - {name: npu, log: npu, role: candidate}\n"
    )
    result = ingest_migration(read_manifest(folder / "migration.yaml"), tmp_path / "lake")
    assert not result.failures
    con = duckdb.connect()
    con.execute("set timezone = 'UTC'")
    ensure_current(con)
    load_lake(con, tmp_path / "lake", current_catalog())
    assert {p for (p,) in con.execute("select log_precision from dim_run").fetchall()} == {"decimal3"}
    kept = con.execute(
        "select m.metric, b.log_precision from bridge_run_metric as b inner join dim_metric as m "
        "on b.metric_id = m.metric_id"
    ).fetchall()
    assert [precision for _, precision in kept] == ["float64"] * 2
    build(con, ["int_contaminated_step", "int_pair_point", *statistics_models()])
    sql = "select count(distinct metric), count(*) from mart_paired_delta where not is_equal"
    assert con.execute(sql).fetchall() == [(1, 19)]
    con.close()


def test_a_precise_log_that_ended_early_does_not_hide_the_long_one(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    log = two_logs(tmp_path / "run", jsonl_of(range(1, 4)), console_of(range(1, 101)))
    outcome = lake.take_in(log)
    assert (outcome.point_count, outcome.log_precision) == (100, "decimal3")
    same_as_the_reader(lake, log)
    (log / "tracker.jsonl").write_text(jsonl_of(range(1, 81)))
    outcome = lake.take_in(log)
    assert (outcome.point_count, outcome.log_precision) == (80, "float64")
    assert (outcome.issue_count, outcome.disagreement_count) == (0, 1)
    (issue,) = read_log(log).issues
    assert issue.reason == "loss is kept from jsonl with 80 points, of which verl_console has 100"


def test_a_text_is_no_more_precise_than_its_digits(tmp_path: Path) -> None:
    """Six digits of a table, or one value of another length among three decimals, are no disagreement."""
    values = [1 / 7, 123.456789, 1.23456789e-5, 2.0, 98765.4321]
    steps = range(1, len(values) + 1)
    folder = tmp_path / "run"
    folder.mkdir()
    lines = [f'{{"step": {s}, "data": {{"loss": {v!r}}}}}\n' for s, v in zip(steps, values, strict=True)]
    (folder / "tracker.jsonl").write_text("".join(lines))
    table = "".join(f"{s},{v:.6g}\n" for s, v in zip(steps, values, strict=True))
    (folder / "metrics.csv").write_text(f"step,loss\n{table}")
    assert read_log(folder).issues == ()
    (folder / "metrics.csv").write_text(f"step,loss\n{table}".replace("123.457", "123.458"))
    (issue,) = read_log(folder).issues
    assert "at 1 of 5 steps, first at step 2" in issue.reason


def same_as_the_reader(lake: Lake, log: Path) -> None:
    """The lake holds what `read_log` returns for the folder."""
    read = read_log(log)
    points, issues = lake.tables()
    assert points == sorted(tuple(map(repr, row.values())) for row in read.points.to_pylist())
    assert len(issues) == len(read.issues)
