"""Small writers of the binary formats, for fixtures and for damage tests: the inverse of the readers.

Independent of the readers' code; the tests in tests/trackers hold the readers against the trackers' own writers.
Run as a module, it writes the binary fixtures anew.
"""

import json
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import google_crc32c

FIXTURES = Path(__file__).parent / "fixtures"
BLOCK = 32 * 1024
Rows = Iterable[tuple[int, dict[str, float]]]


def varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def blob(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def float32(field: int, value: float) -> bytes:
    return varint(field << 3 | 5) + struct.pack("<f", value)


def tfrecord(payload: bytes) -> bytes:
    def crc(data: bytes) -> bytes:
        value = google_crc32c.value(data)
        return struct.pack("<I", (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(payload))
    return length + crc(length) + payload + crc(payload)


def events(rows: Rows) -> list[bytes]:
    """Return the records of an event file, one scalar each, behind the one of the version."""
    out = [tfrecord(double(1, 1.7e9) + blob(3, "brain.Event:2"))]
    for step, values in rows:
        for name, value in values.items():
            summary = blob(1, blob(1, name) + float32(2, value))
            out.append(tfrecord(double(1, 1.7e9 + step) + number(2, step) + blob(5, summary)))
    return out


def leveldb(signature: bytes, payloads: Iterable[bytes]) -> bytes:
    """Return a log of 32 KiB blocks."""
    out = bytearray(signature)
    for payload in payloads:
        rest, first = payload, True
        while first or rest:
            left = BLOCK - len(out) % BLOCK
            if left < 7:
                out += bytes(left)
                left = BLOCK
            body, rest = rest[: left - 7], rest[left - 7 :]
            kind = (1 if not rest else 2) if first else (4 if not rest else 3)
            out += struct.pack("<IHB", zlib.crc32(bytes([kind]) + body), len(body), kind) + body
            first = False
    return bytes(out)


def wandb(rows: Rows, *, extra: Sequence[bytes] = (), ended: bool = True) -> bytes:
    """Return a transaction log; `extra` are records before the history."""

    def item(key: str, text: str) -> bytes:
        return blob(1, blob(2, key) + blob(16, text))

    history = (
        b"".join(item(k, json.dumps(v)) for k, v in {**values, "_step": step, "_timestamp": 1.7e9 + step}.items())
        for step, values in rows
    )
    payloads = chain(extra, (blob(2, row) for row in history), [blob(18, b"")] if ended else [])
    return leveldb(b":W&B\xe1\xbe\x00", (number(1, n) + p for n, p in enumerate(payloads, 1)))


def swanlab(rows: Rows, *, name: str = "fixture", started: int = 1_700_000_000) -> bytes:
    stamp = number(1, started)
    payloads = [blob(10, blob(4, name) + blob(10, "id") + blob(12, stamp))]
    for step, values in rows:
        for key, value in values.items():
            scalar = blob(1, key) + number(2, step) + number(3, 1) + blob(4, number(1, started + step))
            payloads.append(blob(13, scalar + blob(5, double(1, value))))
    payloads.append(blob(11, number(1, 1)))
    return leveldb(b":SWL\xd6\xe1\x02", (number(1, n) + p for n, p in enumerate(payloads, 1)))


def mlflow(path: Path, runs: dict[str, Sequence[tuple[str, float, int, bool]]]) -> None:
    """Write a SQLite store: name of the run to rows of key, stored value, step, is_nan."""
    path.unlink(missing_ok=True)
    con = sqlite3.connect(path)
    con.executescript(
        """
        create table runs (run_uuid varchar primary key, name varchar, status varchar, lifecycle_stage varchar);
        create table params (key varchar, value varchar, run_uuid varchar);
        create table metrics (key varchar not null, value float not null, timestamp bigint not null,
            run_uuid varchar not null, step bigint not null, is_nan boolean not null,
            primary key (key, timestamp, step, run_uuid, value, is_nan));
        """
    )
    for index, (name, rows) in enumerate(runs.items()):
        uuid = f"{index:032x}"
        con.execute("insert into runs values (?, ?, 'FINISHED', 'active')", (uuid, name))
        con.execute("insert into params values ('seed', '7', ?)", (uuid,))
        for at, (key, value, step, is_nan) in enumerate(rows):
            con.execute(
                "insert into metrics values (?,?,?,?,?,?)", (key, value, 1700000000000 + at, uuid, step, is_nan)
            )
    con.commit()
    con.close()


def trackio(path: Path, rows: Sequence[tuple[int, str]]) -> None:
    """Write a project of one run: rows of step and JSON."""
    path.unlink(missing_ok=True)
    con = sqlite3.connect(path)
    con.executescript(
        """
        create table metrics (id integer primary key autoincrement, run_id text not null, timestamp text not null,
            run_name text not null, step integer not null, metrics text not null);
        create table configs (id integer primary key autoincrement, run_id text, run_name text, config text);
        """
    )
    for step, content in rows:
        moment = f"2026-01-01T00:00:{step:02d}+00:00"
        con.execute("insert into metrics values (null, 'id', ?, 'fixture', ?, ?)", (moment, step, content.encode()))
    con.execute("insert into configs values (null, 'id', 'fixture', ?)", (b'{"seed": 7, "dtype": "bfloat16"}',))
    con.commit()
    con.close()


def main() -> None:
    """Write the binary fixtures."""
    inf, nan, big = float("inf"), float("nan"), 1.7976931348623157e308
    for name in ("wandb", "swanlab", "mlflow", "trackio"):
        (FIXTURES / name).mkdir(parents=True, exist_ok=True)
    rows: Rows = [(1, {"loss": 0.5, "a@b": 1.0}), (2, {"loss": nan, "a@b": inf}), (3, {"loss": -inf, "n": 16836497})]
    resumed: Rows = [(3, {"loss": 0.25}), (4, {"loss": 0.125})]
    defined = blob(12, blob(1, "val/acc") + blob(4, "val/step"))
    config = blob(17, blob(4, blob(1, blob(1, "seed") + blob(16, "7"))))
    own_axis: Rows = [*rows, (4, {"val/step": 100, "val/acc": 0.75})]
    for folder, content in (
        ("offline-run-20260101_000000-x", wandb(own_axis, extra=[config, defined])),
        ("offline-run-20260101_010000-x", wandb(resumed, ended=False)),
    ):
        (FIXTURES / "wandb" / folder).mkdir(exist_ok=True)
        (FIXTURES / "wandb" / folder / "run-x.wandb").write_bytes(content)
    (FIXTURES / "swanlab/run-b.swanlab").write_bytes(swanlab(rows))
    (FIXTURES / "swanlab/run-a.swanlab").write_bytes(swanlab(resumed, started=1_700_000_100))
    keyed = [
        ("loss", 0.5, 1, False),
        ("loss", 0.0, 2, True),
        ("loss", big, 3, False),
        ("loss", -big, 3, False),
        ("system/cpu", 0.25, 0, False),
        ("loss", 0.75, 2, False),
    ]
    mlflow(FIXTURES / "mlflow/mlflow.db", {"fixture": keyed})
    texts = ['{"loss":0.5,"hist":[1,2]}', '{"loss":"NaN","a@b":"Infinity"}', '{"loss":"-Infinity"}', '{"loss":0.25}']
    trackio(FIXTURES / "trackio/project.db", list(zip((1, 2, 3, 2), texts, strict=True)))


if __name__ == "__main__":
    main()
