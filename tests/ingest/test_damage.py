"""Damaged logs: nothing crashes, nothing is invented, and what is lost is said."""

import gzip
import random
import tempfile
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest.base import LogError, RunLog
from pipelines.ingest.reading import Unit
from pipelines.ingest.registry import READERS, log_files, read_log, read_units
from tests.ingest import encode
from tests.ingest.test_fixtures import FIXTURES

CHECKSUMMED = ("tensorboard", "wandb", "swanlab")
WHOLE_DOCUMENTS = ("metric_map", "trainer_state", "mlflow", "trackio")
BY_NAME = {reader.NAME: reader for reader in READERS}

Point = tuple[str, str, int, str]


def points(log: RunLog) -> list[Point]:
    """Return what the points say, comparable also where they are not finite."""
    rows = log.points.select(["metric_name", "step_axis", "step", "value", "value_kind"]).to_pylist()
    return [(r["metric_name"], r["step_axis"], r["step"], f"{r['value']!r} {r['value_kind']}") for r in rows]


def scan(reader: ModuleType, content: bytes, folder: Path) -> RunLog | None:
    """Read content as a file of a format, whatever detection would say; None for a clear refusal."""
    file = folder / "log"
    file.write_bytes(content)
    try:
        return read_units(reader, [Unit(file, file.name)])
    except LogError:
        return None


def contents(reader: ModuleType) -> list[bytes]:
    return [file.read_bytes() for file in log_files(FIXTURES / reader.NAME)]


@pytest.mark.parametrize("name", [r.NAME for r in READERS if r.NAME not in WHOLE_DOCUMENTS])
def test_cut_at_every_byte(name: str, tmp_path: Path) -> None:
    reader = BY_NAME[name]
    content = contents(reader)[0]
    full = scan(reader, content, tmp_path)
    assert full is not None
    whole = points(full)
    most = 0
    for cut in range(len(content)):
        log = scan(reader, content[:cut], tmp_path)
        read = points(log) if log is not None else []
        assert set(read) <= set(whole), f"cut at {cut}: {set(read) - set(whole)}"
        # console, table and trl rows may lose their last value, which can't be told from a cut one
        assert len(read) >= most - 2, f"cut at {cut}: {len(read)} points after {most}"
        most = max(most, len(read))
    assert most >= len(whole) - 2


@pytest.mark.parametrize("name", WHOLE_DOCUMENTS)
def test_cut_documents_are_refused_or_right(name: str, tmp_path: Path) -> None:
    reader = BY_NAME[name]
    content = contents(reader)[0]
    full = scan(reader, content, tmp_path)
    assert full is not None
    whole = points(full)
    step = max(1, len(content) // 200)
    for cut in range(0, len(content), step):
        log = scan(reader, content[:cut], tmp_path)
        assert log is None or set(points(log)) <= set(whole)


@pytest.mark.parametrize("name", [r.NAME for r in READERS])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_flipped_bytes(name: str, data: st.DataObject) -> None:
    reader = BY_NAME[name]
    content = bytearray(contents(reader)[0])
    spots = data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4))
    for spot in spots:
        content[spot] ^= data.draw(st.integers(1, 255))
    with tempfile.TemporaryDirectory() as folder:
        log = scan(reader, bytes(content), Path(folder))
        whole = scan(reader, contents(reader)[0], Path(folder))
    if name in CHECKSUMMED and log is not None and whole is not None:
        # wandb: a lost definition of an axis puts its metric back on the axis `step`
        known = {(name, value) for name, _, _, value in points(whole)}
        assert {(name, value) for name, _, _, value in points(log)} <= known, "a value was changed"
        assert len(log.issues) > 0 or points(log) == points(whole)


@pytest.mark.parametrize("name", CHECKSUMMED)
def test_flipped_bit_costs_one_record(name: str, tmp_path: Path) -> None:
    """Behind a damaged record, of header or body, everything is read."""
    rows = [(step, {"loss": step / 7, "reward": -step / 3}) for step in range(1, 40)]
    content = {
        "tensorboard": b"".join(encode.events(rows)),
        "wandb": encode.wandb(rows),
        "swanlab": encode.swanlab(rows),
    }
    reader = BY_NAME[name]
    per_record = 2 if name == "wandb" else 1
    chance = random.Random(7)
    for _ in range(150):
        damaged = bytearray(content[name])
        spot = chance.randrange(12 if name == "tensorboard" else 7, len(damaged))
        damaged[spot] ^= 1 << chance.randrange(8)
        log = scan(reader, bytes(damaged), tmp_path)
        assert log is not None
        assert log.points.num_rows >= 78 - per_record, spot
        assert len(log.issues) == 1, spot


def test_bad_lines_are_counted(tmp_path: Path) -> None:
    """One line in a hundred is damaged: points read and quarantined add up to points written."""
    chance = random.Random(3)
    lines, written = [], 0
    for step in range(1, 20_001):
        line = f'{{"step": {step}, "data": {{"a": {step / 7}, "b": {step}, "c": NaN}}}}'
        written += 3
        if step % 100 == 0:
            line = line.replace(": NaN", ": NaN" + chance.choice(["NaN", " x", '"', "}{"]))
        lines.append(line)
    (tmp_path / "log.jsonl").write_text("\n".join(lines) + "\n")
    log = read_log(tmp_path / "log.jsonl")
    assert len(log.issues) == 200
    assert log.points.num_rows + sum(i.lost_points or 0 for i in log.issues) == written
    assert [i.source_position for i in log.issues] == list(range(100, 20_001, 100))


def test_cut_gzip(tmp_path: Path) -> None:
    text = "".join(f'{{"step": {s}, "data": {{"a": {s / 7}, "b": {s % 13}}}}}\n' for s in range(1, 3000))
    packed = gzip.compress(text.encode())
    (tmp_path / "log.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    log = read_log(tmp_path / "log.jsonl.gz")
    assert log.points.num_rows > 1000
    assert "damaged or cut off" in log.issues[-1].reason


def test_snippets_hold_no_secrets(tmp_path: Path) -> None:
    bad = '{"step": 1, "api_key": "sk-abcdefghijklmnop", "owner": "some.one@example.com", "hostname": "node-17"\n'
    (tmp_path / "log.jsonl").write_text('{"step": 1, "data": {"a": 1.0}}\n' + bad)
    told = repr(read_log(tmp_path / "log.jsonl").issues)
    assert "[redacted]" in told
    assert not any(secret in told for secret in ("sk-abc", "example.com", "node-17"))
