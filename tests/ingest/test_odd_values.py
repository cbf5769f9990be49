"""Values, times, steps and names that no tracker should write: each costs itself at most, and is said."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.ingest.base import LogError, RunLog
from pipelines.ingest.registry import read_log
from pipelines.ingest.text_number import from_text, whole_step
from pipelines.ingest.wall_time import seconds_of
from tests.ingest import encode

LARGEST = 1.7976931348623157e308


def written(folder: Path, name: str, text: str) -> RunLog:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return read_log(file)


def store(path: Path, rows: Sequence[tuple], runs: Sequence[tuple] = (("u", "r"),), more: str = "") -> Path:
    """Write an MLflow store without types: rows of key, value, timestamp, step, is_nan of the run `u`."""
    con = sqlite3.connect(path)
    con.executescript(
        "create table runs (run_uuid, name, status, lifecycle_stage); create table params (key, value, run_uuid);"
        f"create table metrics ({more} key, value, timestamp, run_uuid, step, is_nan)"
    )
    con.executemany("insert into runs values (?, ?, 'FINISHED', 'active')", runs)
    con.executemany(
        "insert into metrics (key, value, timestamp, run_uuid, step, is_nan) values (?, ?, ?, 'u', ?, ?)", rows
    )
    con.commit()
    con.close()
    return path


def told(log: RunLog) -> list[tuple[Any, ...]]:
    return [(r["metric_name"], r["step"], r["value"]) for r in log.points.to_pylist()]


def test_the_size_of_a_time_tells_its_unit() -> None:
    times = [1.7e9, 1.7e12, 1.7e15, 1.7e18, 1e300, -1.0, np.inf, 5.0]
    assert seconds_of(np.array(times)).tolist()[:4] == [1.7e9] * 4
    assert np.isnan(seconds_of(np.array(times))[4:7]).all()
    assert seconds_of(np.array(times))[7] == 5.0


@pytest.mark.parametrize("scale", [1, 1e3, 1e6, 1e9])
def test_times_of_any_unit_in_any_log(scale: float, tmp_path: Path) -> None:
    time = 1.7e9 * scale
    logs = [
        written(tmp_path, "a.csv", f"step,wall_time,loss\n1,{time},0.5\n"),
        written(tmp_path, "b.csv", f"metric,step,value,wall_time\nloss,1,0.5,{time}\n"),
        written(tmp_path, "c.jsonl", json.dumps({"step": 1, "data": {"loss": 0.5}, "timestamp": time}) + "\n"),
        written(tmp_path, "d.jsonl", json.dumps({"step": 1, "loss": 0.5, "_timestamp": time}) + "\n"),
        read_log(store(tmp_path / "e.db", [("loss", 0.5, time, 1, 0)])) if scale > 1 else None,
    ]
    assert {r["wall_time"] for log in logs if log for r in log.points.to_pylist()} == {1.7e9}


def test_a_time_that_is_none_costs_no_point(tmp_path: Path) -> None:
    log = read_log(store(tmp_path / "m.db", [("a", 1.0, 1e300, 1, 0), ("a", 2.0, float("inf"), 2, 0)]))
    assert told(log) == [("a", 1, 1.0), ("a", 2, 2.0)]
    assert set(log.points["wall_time"].to_pylist()) == {None}


@pytest.mark.parametrize("digits", [310, 5000])
def test_numbers_of_many_digits_are_infinite(digits: int, tmp_path: Path) -> None:
    number = "9" * digits
    rows = [(1, '{"loss": 0.5}'), (2, json.dumps({"loss": number}))]
    encode.trackio(tmp_path / "t.db", rows)
    logs = [
        written(tmp_path, "a.csv", f"step,loss\n1,0.5\n2,{number}\n"),
        written(tmp_path, "b.log", f"step:1 - a:1 - loss:0.5\nstep:2 - a:1 - loss:{number}\n"),
        read_log(tmp_path / "t.db"),
    ]
    for log in logs:
        (row,) = [r for r in log.points.to_pylist() if r["metric_name"] == "loss" and r["step"] == 2]
        assert (row["value_kind"], row["raw_text"]) == ("pos_inf", number[:80])


def test_zeros_before_a_number_are_no_digits() -> None:
    assert from_text("-" + "0" * 5000 + str(2**53 + 1)) == (-float(2**53), "-" + "0" * 79)
    assert whole_step("0" * 5000 + "7") == 7


@pytest.mark.parametrize("step", [2**53, -(2**63), 2**63 - 1, 10**30])
def test_a_step_beyond_all_counting_is_an_issue(step: int, tmp_path: Path) -> None:
    good = {"a": 0.5}
    (tmp_path / "events.out.tfevents.1.h").write_bytes(b"".join(encode.events([(1, good), (step % 2**63, good)])))
    (tmp_path / "x.swanlab").write_bytes(encode.swanlab([(1, good), (step % 2**63, good)]))
    (tmp_path / "x.wandb").write_bytes(encode.wandb([(1, good), (step, good)]))
    logs = [
        written(tmp_path, "a.csv", f"step,a\n1,0.5\n{step},0.5\n"),
        written(tmp_path, "a.jsonl", f'{{"step": 1, "a": 0.5}}\n{{"step": {step}, "a": 0.5}}\n'),
        written(tmp_path, "a.log", f"step:1 - a:0.5 - b:1\nstep:{step} - a:0.5 - b:1\n"),
        written(tmp_path, "s.log", f"x step 1: {{'a': 0.5, 'b': 1}}\nx step {abs(step)}: {{'a': 0.5, 'b': 1}}\n"),
        written(tmp_path, "m.json", json.dumps({"a": {"1": 0.5, str(step): 0.5}})),
        read_log(tmp_path / "x.wandb"),
    ]
    if step < 2**63:
        logs += [read_log(store(tmp_path / "m.db", [("a", 0.5, 1, 1, 0), ("a", 0.5, 1, step, 0)]))]
    if 0 < step < 2**63:
        logs += [read_log(tmp_path / name) for name in ("x.swanlab", "events.out.tfevents.1.h")]
    for log in logs:
        assert {(n, s) for n, s, _ in told(log) if n == "a"} == {("a", 1)}, log.log_format
        assert "is no whole number between" in log.issues[0].reason, log.log_format
    assert whole_step(2**53 - 1) == 2**53 - 1


def test_a_step_with_a_fraction_is_not_cut(tmp_path: Path) -> None:
    log = read_log(store(tmp_path / "m.db", [("a", 0.5, 1, 1, 0), ("a", 0.5, 1, 1.5, 0)]))
    assert (told(log), len(log.issues)) == ([("a", 1, 0.5)], 1)


@pytest.mark.parametrize("depth", [990, 1500])
def test_nesting_costs_no_other_row(depth: int, tmp_path: Path) -> None:
    good = '{"step": 1, "data": {"a": 0.5}}\n'
    deep = '{"a":' * depth + "1" + "}" * depth
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.yaml").write_text("a: " + "[" * depth + "1" + "]" * depth)
    (tmp_path / "run/wandb-metadata.json").write_text(deep)
    log = written(tmp_path, "run/log.jsonl", f'{deep}\n{good}{{"step": 2, "data": {deep}}}\n{{"data": {deep}}}\n')
    assert ("a", 1, 0.5) in told(log)
    assert read_log(tmp_path / "run").points.num_rows == log.points.num_rows


def test_aliases_of_yaml_have_an_end(tmp_path: Path) -> None:
    level = "a0: &a0 {x: 1}\n" + "".join(
        f"a{n}: &a{n} {{{', '.join(f'k{at}: *a{n - 1}' for at in range(9))}}}\n" for n in range(1, 12)
    )
    (tmp_path / "config.yaml").write_text("seed: 7\n" + level)
    (tmp_path / "log.jsonl").write_text('{"step": 1, "data": {"a": 0.5}}\n')
    assert read_log(tmp_path).metadata["seed"] == "7"


@pytest.mark.parametrize("metrics", [3_000, 10_000])
def test_rows_of_any_width_are_recognised(metrics: int, tmp_path: Path) -> None:
    names = [f"group{at % 40}/metric_{at}" for at in range(metrics)]
    row = {name: 0.123456789 for name in names}
    logs = [
        written(tmp_path, "a.jsonl", "".join(json.dumps({"step": s, "data": row}) + "\n" for s in (1, 2))),
        written(
            tmp_path, "b.csv", ",".join([*names, "step"]) + "\n" + "0.5," * metrics + "1\n" + "0.5," * metrics + "2\n"
        ),
    ]
    assert [log.log_format for log in logs] == ["jsonl", "table"]
    assert [log.points.num_rows for log in logs] == [2 * metrics] * 2


def test_other_events_of_clearml_may_come_first(tmp_path: Path) -> None:
    event = {
        "timestamp": 1.7e12,
        "type": "training_stats_scalar",
        "iter": 1,
        "metric": "a",
        "variant": "a",
        "value": 1.5,
    }
    text = json.dumps([{"type": "log", "msg": "x" * 100_000}]) + "\n" + json.dumps([event]) + "\n"
    assert told(written(tmp_path, "metrics.jsonl", text)) == [("a", 1, 1.5)]


def test_names_of_runs_may_have_any_type(tmp_path: Path) -> None:
    rows = [("a", 1.0, 1, 1, 0)]
    for at, names in enumerate([(b"\xff", b"\xfe"), (5, 6), (None, "x")]):
        path = store(tmp_path / f"{at}.db", rows, [("u", names[0]), ("v", names[1])])
        assert told(read_log(path, run="u")) == [("a", 1, 1.0)]
        with pytest.raises(LogError, match="holds 2 runs"):
            read_log(path)


def test_flags_that_are_texts(tmp_path: Path) -> None:
    flags = ["0", "False", "1", "true", "perhaps", None]
    log = read_log(store(tmp_path / "m.db", [("a", 0.5, 1, step, flag) for step, flag in enumerate(flags)]))
    assert [r["value_kind"] for r in log.points.to_pylist()] == ["finite", "finite", "nan", "nan", "finite"]
    assert [i.source_position for i in log.issues] == [5]


def test_names_that_differ_in_bytes_alone_stay_apart(tmp_path: Path) -> None:
    log = read_log(store(tmp_path / "m.db", [(b"a\xff", 1.0, 1, 1, 0), (b"a\xfe", 2.0, 1, 1, 0)]))
    assert sorted(told(log)) == [("a\\xfe", 1, 2.0), ("a\\xff", 1, 1.0)]
    (tmp_path / "a.log").write_bytes(b"step:1 - a\xff:1.5 - a\xfe:2.5\n")
    assert sorted(told(read_log(tmp_path / "a.log"))) == [("a\\xfe", 1, 2.5), ("a\\xff", 1, 1.5)]


def test_rows_are_read_whatever_their_numbers(tmp_path: Path) -> None:
    rows = [("a", 0.5, 1, step, 0) for step in range(1, 6)]
    low, named = store(tmp_path / "low.db", rows), store(tmp_path / "named.db", rows, more="rowid text,")
    con = sqlite3.connect(low)
    con.execute("update metrics set rowid = rowid - 3")
    con.commit()
    con.close()
    assert [step for _, step, _ in told(read_log(low))] == [1, 2, 3, 4, 5]
    assert [step for _, step, _ in told(read_log(named))] == [1, 2, 3, 4, 5]


def test_what_a_store_lacks_is_named(tmp_path: Path) -> None:
    path = store(tmp_path / "m.db", [("a", 0.5, 1, 1, 0)])
    con = sqlite3.connect(path)
    con.execute("drop table runs")
    con.close()
    with pytest.raises(LogError, match=r"lacks what its tracker writes \(no such table: runs\)"):
        read_log(path)


def test_a_store_without_its_last_bytes_is_refused(tmp_path: Path) -> None:
    path = store(tmp_path / "m.db", [("a", step / 7, 1, step, 0) for step in range(3000)])
    whole = path.read_bytes()
    for cut in (len(whole) - 1, len(whole) - 5000, len(whole) // 2):
        path.write_bytes(whole[:cut])
        with pytest.raises(LogError, match=f"m.db: the store is cut off: {cut} of {len(whole)} bytes"):
            read_log(path)
