"""A log that grows is read on from where it was, with the result of reading it at once."""

import json
import random
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from unittest import mock

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest import draft, mlflow
from pipelines.ingest.registry import READERS, log_files
from pipelines.landing import ingest_migration
from pipelines.manifest import read_manifest
from pipelines.resources import current_catalog
from tests.ingest import encode, growing
from tests.ingest.test_fixtures import FIXTURES
from tests.pipelines.passes import LEGS, Lake, same_as_at_once, small_pieces
from warehouse import lake as lake_files
from warehouse.load import load_lake
from warehouse.schema import ensure_current

SQLITE = ("mlflow", "trackio")


@pytest.mark.parametrize("name", growing.FILES)
@settings(max_examples=12, deadline=None)
@given(legs=LEGS, data=st.data())
def test_passes_over_a_growing_log_equal_reading_it_at_once(
    name: str, legs: list[tuple[int, int]], data: st.DataObject
) -> None:
    file, write = growing.FILES[name]
    content = write(growing.rows_of(legs))
    cuts = sorted(data.draw(st.lists(st.integers(1, len(content)), min_size=1, max_size=5)))
    window = data.draw(st.sampled_from([40, 300, 1 << 24]))
    with tempfile.TemporaryDirectory() as folder, small_pieces(window, data.draw(st.sampled_from([3, 40, 1 << 18]))):
        log, lake = Path(folder) / file, Lake(Path(folder) / "lake")
        outcomes = []
        for cut in dict.fromkeys([*cuts, len(content)]):
            log.write_bytes(content[:cut])
            outcomes.append(lake.take_in(log))
            same_as_at_once(lake, log, outcomes[-1])
        assert not outcomes[-1].error


@pytest.mark.parametrize("name", growing.FILES)
def test_only_what_was_added_is_read(name: str, tmp_path: Path) -> None:
    file, write = growing.FILES[name]
    content = write(growing.rows_of([(0, 40), (30, 20)]))
    log, lake = tmp_path / file, Lake(tmp_path / "lake")
    log.write_bytes(content[: len(content) // 2])
    assert not lake.take_in(log).error
    before = (lake.content().reading or {})["logs"][name]
    offset = before["progress"]["mark"]["offset"]
    assert 0 < offset <= len(content) // 2

    reader = next(r for r in READERS if name == r.NAME)
    log.write_bytes(content)
    with mock.patch.object(reader, "scan", wraps=reader.scan) as scan:
        outcome = lake.take_in(log)
    assert [call.args[0].since.offset for call in scan.call_args_list] == [offset]
    same_as_at_once(lake, log, outcome)
    assert set(before["points"]) <= set(lake.content().points) or len(lake.content().points) < 3


@pytest.mark.parametrize("name", SQLITE)
@settings(max_examples=8, deadline=None)
@given(legs=LEGS, data=st.data())
def test_rows_added_to_a_store(name: str, legs: list[tuple[int, int]], data: st.DataObject) -> None:
    rows = growing.rows_of(legs)
    keyed = [(key, value, step) for step, values in rows for key, value in values.items()]
    cuts = sorted(data.draw(st.lists(st.integers(1, len(keyed)), min_size=1, max_size=4)))
    with tempfile.TemporaryDirectory() as folder, small_pieces(points=data.draw(st.sampled_from([3, 1 << 18]))):
        log, lake = Path(folder) / "store.db", Lake(Path(folder) / "lake")
        for cut in dict.fromkeys([*cuts, len(keyed)]):
            if name == "mlflow":
                stored = [(k, v if abs(v) < 1e300 else 0.0, s, v != v or abs(v) > 1e300) for k, v, s in keyed[:cut]]
                encode.mlflow(log, {"r": stored})
            else:
                encode.trackio(log, [(step, json.dumps({key: repr(value)})) for key, value, step in keyed[:cut]])
            outcome = lake.take_in(log)
            assert not outcome.error
            same_as_at_once(lake, log, outcome)


CHANGES = {
    "mlflow": [
        "update metrics set value = 2.0 where step = 3",
        "update metrics set key = case key when 'a' then 'b' else 'a' end",
        "delete from metrics where step = 3",
        "update metrics set value = 7.0 where step = 4",
    ],
    "trackio": [
        """update metrics set metrics = '{"a": 2.0}' where step = 3""",
        "update metrics set timestamp = '2026-01-01T00:00:04.5+00:00' where step = 4",
    ],
}


@pytest.mark.parametrize(("name", "change"), [(name, change) for name in SQLITE for change in CHANGES[name]])
def test_a_changed_store_is_read_whole(name: str, change: str, tmp_path: Path) -> None:
    """Also where the sums of its cells stay: keys are swapped, an infinity swallows a value, a text is as long."""
    log, lake = tmp_path / "store.db", Lake(tmp_path / "lake")
    if name == "mlflow":
        rows = [(key, shift + step, step, False) for key, shift in (("a", 0.0), ("b", 5.0)) for step in range(9)]
        encode.mlflow(log, {"r": [("a", sys.float_info.max, 90, False), *rows]})
    else:
        encode.trackio(log, [(step, '{"a": 1.0}') for step in range(9)])
    lake.take_in(log)
    con = sqlite3.connect(log)
    con.execute(change)
    con.execute("update runs set status = 'RUNNING'" if name == "mlflow" else "update configs set config = '{}'")
    con.commit()
    con.close()
    same_as_at_once(lake, log, lake.take_in(log))


@pytest.mark.parametrize("name", growing.FILES)
def test_a_truncated_or_rewritten_log_is_read_whole(name: str, tmp_path: Path) -> None:
    file, write = growing.FILES[name]
    log, lake = tmp_path / file, Lake(tmp_path / "lake")
    first, other = write(growing.rows_of([(0, 30)])), write(growing.rows_of([(5, 40)]))
    for content in (first, first[: len(first) // 3], other, other[:-9], first):
        log.write_bytes(content)
        outcome = lake.take_in(log)
        same_as_at_once(lake, log, outcome)


def test_a_store_that_is_a_folder_is_read_whole(tmp_path: Path) -> None:
    log, lake = tmp_path / "mlruns", Lake(tmp_path / "lake")
    metrics = log / "1/abc/metrics"
    metrics.mkdir(parents=True)
    (log / "1/abc/meta.yaml").write_text("run_name: r\nlifecycle_stage: active\nstatus: 1\n")
    for step in range(3):
        for name in ("loss", "reward"):
            with (metrics / name).open("a") as file:
                file.write(f"{1700000000000 + step} {step}.5 {step}\n")
        outcome = lake.take_in(log)
        assert outcome.point_count == 2 * (step + 1)
        same_as_at_once(lake, log, outcome)
    assert lake.content().reading is None


def test_files_that_are_added_and_files_that_change(tmp_path: Path) -> None:
    """A folder of event files: restarts add files; a change of an earlier file is noticed."""
    log, lake = tmp_path / "run", Lake(tmp_path / "lake")
    log.mkdir()
    legs = [growing.tensorboard(growing.rows_of([leg])) for leg in ((0, 20), (15, 20), (12, 30))]
    for at, content in enumerate(legs):
        for share in (0.4, 1.0):
            (log / f"events.out.tfevents.{at}.h").write_bytes(content[: int(share * len(content))])
            outcome = lake.take_in(log)
            assert not outcome.error
            same_as_at_once(lake, log, outcome)
    (log / "events.out.tfevents.0.h").write_bytes(growing.tensorboard(growing.rows_of([(0, 25)])))
    same_as_at_once(lake, log, lake.take_in(log))
    (log / "events.out.tfevents.0.g").write_bytes(legs[1])  # comes before all others
    same_as_at_once(lake, log, lake.take_in(log))
    (log / "events.out.tfevents.2.h").unlink()
    same_as_at_once(lake, log, lake.take_in(log))


def test_a_new_file_that_repeats_steps_late_moves_what_was_written(tmp_path: Path) -> None:
    """Whether a file is another attempt may show in a later pass than its first points: those are numbered anew."""
    log, lake = tmp_path / "run", Lake(tmp_path / "lake")
    log.mkdir()
    (log / "1.jsonl").write_text("".join(f'{{"step":{s},"data":{{"loss":{s}.5}}}}\n' for s in range(10)))
    lake.take_in(log)
    rows = ['{"step":4,"data":{"val":1.0}}\n', '{"step":5,"data":{"val":2.0}}\n', '{"step":5,"data":{"loss":2.0}}\n']
    for known in (1, 2, 3):
        (log / "2.jsonl").write_text("".join(rows[:known]))
        same_as_at_once(lake, log, lake.take_in(log))
    attempts = {tuple(row[:4]) for row in lake.tables()[0] if row[0] == "'val'"}
    assert attempts == {("'val'", "'step'", "2", "4"), ("'val'", "'step'", "2", "5")}


def test_a_half_written_record_is_no_issue_for_good(tmp_path: Path) -> None:
    log, lake = tmp_path / "log.jsonl", Lake(tmp_path / "lake")
    log.write_text('{"step":1,"data":{"a":1.5}}\n{"step":2,"da')
    assert lake.take_in(log).issue_count == 1
    log.write_text('{"step":1,"data":{"a":1.5}}\n{"step":2,"data":{"a":2.5}}\n')
    outcome = lake.take_in(log)
    assert (outcome.issue_count, outcome.point_count) == (0, 2)


def test_many_passes_leave_few_parts(tmp_path: Path) -> None:
    log, lake = tmp_path / "log.jsonl", Lake(tmp_path / "lake")
    for step in range(100):
        with log.open("a") as file:
            file.write(f'{{"step":{step},"data":{{"a":{step}.5,"b":1e999}}}}\nbad\n')
        if step < 99:
            lake.take_in(log)
    outcome = lake.take_in(log)
    assert (outcome.point_count, outcome.issue_count) == (200, 100)
    assert len(lake.content().points) <= 8
    same_as_at_once(lake, log, outcome)


def test_no_line_of_a_configuration_is_kept_to_go_on(tmp_path: Path) -> None:
    """What a reader must know of the lines before may hold anything: only their place is stored."""
    secret = "planted-host-17"
    console = f"(X pid=1) {{'actor_rollout_ref': {{'owner': '{secret}',\n(X pid=1) 'a': 1}}\n".encode()
    owner = encode.blob(1, encode.blob(1, "owner") + encode.blob(16, f'"{secret}"'))
    logs = {
        "run.log": b"step:1 - a:1.000\n" + console,
        "run-x.wandb": encode.wandb([(1, {"a": 1.0})], extra=[encode.blob(17, encode.blob(4, owner))]),
    }
    for name, content in logs.items():
        (tmp_path / name).write_bytes(content)
        lake = Lake(tmp_path / f"{name}.lake")
        assert not lake.take_in(tmp_path / name).error
        stored = b"".join(p.read_bytes() for p in lake.folder.rglob("*") if p.is_file())
        assert secret.encode() not in stored


@pytest.mark.parametrize("name", ["jsonl", "tensorboard", "verl_console"])
def test_the_star_of_many_passes_is_the_star_of_one(name: str, tmp_path: Path) -> None:
    file, write = growing.FILES[name]
    content = write(growing.rows_of([(0, 30), (20, 30), (45, 10)]))
    chance = random.Random(11)
    cuts = sorted(chance.randrange(len(content) // 10, len(content)) for _ in range(4))
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "migration.yaml").write_text(f"migration: m\nruns:\n  - {{name: r, log: {file}, role: baseline}}\n")
    catalog, stars = current_catalog(), [duckdb.connect(), duckdb.connect()]
    for con in stars:
        con.execute("set timezone = 'UTC'")
        ensure_current(con)
    for cut in [*cuts, len(content)]:
        (folder / file).write_bytes(content[:cut])
        result = ingest_migration(read_manifest(folder / "migration.yaml"), tmp_path / "lake")
        assert not result.failures
        load_lake(stars[0], tmp_path / "lake", catalog)
    ingest_migration(read_manifest(folder / "migration.yaml"), tmp_path / "fresh")
    load_lake(stars[1], tmp_path / "fresh", catalog)
    for table in ("fct_metric", "fct_parse_issue", "dim_run", "dim_step", "dim_metric"):
        columns = "* exclude (loaded_at)" if table == "dim_run" else "*"
        found = [repr(con.execute(f"select {columns} from {table} order by all").fetchall()) for con in stars]
        assert found[0] == found[1], table
    for con in stars:
        con.close()


def test_a_pass_that_is_killed_leaves_the_earlier_state(tmp_path: Path) -> None:
    """Whatever is written before the last file is put in place, the lake holds what it held."""
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "migration.yaml").write_text("migration: m\nruns:\n  - {name: r, log: log.jsonl, role: baseline}\n")
    rows = [f'{{"step":{s},"data":{{"a":{s}.5}}}}\n' for s in range(20)]
    (folder / "log.jsonl").write_text("".join(rows[:10]))
    manifest, lake = read_manifest(folder / "migration.yaml"), tmp_path / "lake"
    ingest_migration(manifest, lake)

    def stored() -> tuple:
        record = lake_files.read_migration(lake, "m")
        assert record is not None
        (run,) = record.runs
        content = lake_files.read_content(lake, "m", "r", run.content_hash)
        where = lake_files.run_folder(lake, "m", "r")
        return run, [lake_files.read_part(where, name).to_pylist() for name in content.points]

    before = stored()
    (folder / "log.jsonl").write_text("".join(rows))
    for function in ("write_part", "write_content", "write_migration"):
        for late in (False, True):
            real = getattr(lake_files, function)

            def killed(*args, real=real, late=late, **kwargs):
                if late:
                    real(*args, **kwargs)
                raise KeyboardInterrupt

            if function == "write_migration" and late:
                continue
            with mock.patch.object(lake_files, function, killed), pytest.raises(KeyboardInterrupt):
                ingest_migration(manifest, lake)
            assert stored() == before, (function, late)
    assert ingest_migration(manifest, lake).point_count == 20
    shutil.rmtree(tmp_path / "fresh", ignore_errors=True)
    ingest_migration(manifest, tmp_path / "fresh")
    assert sum(map(len, stored()[1])) == 20


@pytest.mark.parametrize("reader", READERS, ids=lambda r: r.NAME)
def test_the_fixture_of_every_reader_grows(reader: ModuleType, tmp_path: Path) -> None:
    """A new reader is tried here with nothing but its fixture."""
    file = log_files(FIXTURES / reader.NAME)[0]
    content, log, lake = file.read_bytes(), tmp_path / file.name, Lake(tmp_path / "lake")
    for share in (0.3, 0.55, 0.8, 0.95, 1.0):
        log.write_bytes(content[: int(share * len(content))])
        outcome = lake.take_in(log)
        same_as_at_once(lake, log, outcome)
    assert lake.known


@pytest.mark.parametrize("name", growing.FILES)
@settings(max_examples=8, deadline=None)
@given(legs=LEGS, data=st.data())
def test_a_damaged_log_that_grows_is_read_like_at_once(
    name: str, legs: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Flipped bytes and cuts together: damage that more bytes turn out to be harmless is no damage for good."""
    file, write = growing.FILES[name]
    content = bytearray(write(growing.rows_of(legs)))
    for spot in data.draw(st.lists(st.integers(len(content) // 8, len(content) - 1), min_size=1, max_size=3)):
        content[spot] ^= data.draw(st.integers(1, 255))
    cuts = sorted(data.draw(st.lists(st.integers(1, len(content)), min_size=1, max_size=4)))
    window = data.draw(st.sampled_from([40, 300, 1 << 24]))
    with tempfile.TemporaryDirectory() as folder, small_pieces(window, 40):
        log, lake = Path(folder) / file, Lake(Path(folder) / "lake")
        for cut in dict.fromkeys([*cuts, len(content)]):
            log.write_bytes(content[:cut])
            same_as_at_once(lake, log, lake.take_in(log))


def test_the_proof_made_while_reading_is_that_of_another_look(tmp_path: Path) -> None:
    log, lake = tmp_path / "mlflow.db", Lake(tmp_path / "lake")
    encode.mlflow(log, {"r": [("a" if step % 2 else "b", step / 7, step, False) for step in range(70_000)]})
    with mock.patch("pipelines.ingest.mlflow.digest") as again:
        assert lake.take_in(log).point_count == 70_000
    assert not again.called
    progress = (lake.content().reading or {})["logs"]["mlflow"]["progress"]
    mark = draft.Mark(**progress["mark"])
    assert progress["proof"] == mlflow.proof(draft.LogFile(log, "mlflow.db", mark))
