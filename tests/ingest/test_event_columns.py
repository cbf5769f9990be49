"""The two ways through an event file give the same points."""

import struct
from pathlib import Path
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest import tensorboard
from pipelines.ingest.draft import Draft
from pipelines.ingest.event_columns import decode
from pipelines.ingest.reading import Unit
from pipelines.ingest.registry import read_units
from pipelines.ingest.tfrecord import HEADER_SIZE, frames
from tests.ingest import encode

STEPS = st.one_of(st.integers(0, 300), st.integers(0, 2**40), st.integers(-(2**63), 2**63 - 1))
TAGS = st.one_of(st.text(min_size=1, max_size=8), st.text("abc/@_", min_size=1, max_size=140))
FLOATS = st.floats(width=32)


def record(tag: str, step: int, value: float, wall: float) -> bytes:
    """Return an event as protobuf writers do: a zero step is left out."""
    told = encode.number(2, step) if step else b""
    return (
        encode.double(1, wall) + told + encode.blob(5, encode.blob(1, encode.blob(1, tag) + encode.float32(2, value)))
    )


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(TAGS, STEPS, FLOATS, st.floats(0, 2e9)), max_size=30))
def test_same_points_either_way(rows: list[tuple[str, int, float, float]], tmp_path_factory) -> None:
    file = Path(tmp_path_factory.mktemp("events")) / "log"
    payloads = [record(*row) for row in rows]
    file.write_bytes(b"".join(map(encode.tfrecord, payloads)))
    fast = read_units(tensorboard, [Unit(file, file.name)])

    slow, at = Draft(log_precision="float32"), 0
    for payload in payloads:
        tensorboard._scan_event(slow, payload, (file.name, at), {})
        at += len(encode.tfrecord(payload))
    with mock.patch.object(tensorboard, "scan", return_value=[slow]):
        one_by_one = read_units(tensorboard, [Unit(file, file.name)])
    assert repr(fast.points.to_pylist()) == repr(one_by_one.points.to_pylist())
    assert fast.points.num_rows + len(fast.issues) == len(rows)


def test_usual_records_are_taken_by_columns() -> None:
    data = b"".join(encode.events([(s, {"actor/grad_norm": s / 7, "critic/rewards/mean": 1.0}) for s in range(500)]))
    found = frames(data)
    scalars = decode(data, found.offset + HEADER_SIZE, found.size)
    # all but the version record, and step 0, which this encoder writes out
    assert scalars.plain.sum() == 2 * 500
    assert scalars.value[1] == struct.unpack("<f", struct.pack("<f", 0.0))[0]
