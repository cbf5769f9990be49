"""When a log that changed is taken in: once it rests, once for each change, and never without bound."""

import os

import pytest

from pipelines.defs.watching import Look, Memory, look, read_memory, write_memory
from pipelines.discovery import find_manifests
from tests.integration.conftest import write_log

SPACING = 900
TICK = 60


class Watch:
    """Looks at a landing folder once a minute, through the cursor, and counts the runs."""

    def __init__(self, landing):
        self.landing = landing
        self.now = 1_000_000.0
        self.cursor: str | None = None
        self.keys: list[str] = []

    def tick(self) -> Look:
        self.now += TICK
        found = look(find_manifests(self.landing).manifests, read_memory(self.cursor), self.now, SPACING)
        self.cursor = write_memory(found.memory)
        if found.changed:
            self.keys.append(found.key)
        return found


@pytest.fixture
def watch(tmp_path):
    write_log(tmp_path / "m" / "gpu.jsonl", [1.0, 2.0])
    write_log(tmp_path / "m" / "npu.jsonl", [1.0, 2.5])
    return Watch(tmp_path)


def grow(watch, steps):
    write_log(watch.landing / "m" / "npu.jsonl", [float(n) for n in range(steps)])


def test_a_log_is_taken_in_when_it_rests_and_once(watch):
    assert watch.tick().waiting == ("m",)
    assert watch.tick().changed == ("m",)
    for _ in range(30):
        found = watch.tick()
        assert found.changed == found.waiting == ()


def test_a_log_that_never_rests_is_taken_in_every_quarter_of_an_hour(watch):
    minutes = 120
    for minute in range(minutes):
        grow(watch, 3 + minute)
        watch.tick()
    assert 7 <= len(watch.keys) <= minutes * TICK // SPACING
    assert len(set(watch.keys)) == len(watch.keys)


def test_a_log_that_grows_now_and_then_is_bounded_too(watch):
    minutes = 120
    for minute in range(minutes):
        if minute % 3 == 0:
            grow(watch, 3 + minute)
        watch.tick()
    assert 2 <= len(watch.keys) <= minutes * TICK // SPACING


def test_growth_after_a_long_rest_is_taken_in_as_soon_as_it_rests(watch):
    for _ in range(20):
        watch.tick()
    grow(watch, 9)
    assert watch.tick().changed == ()
    assert watch.tick().changed == ("m",)


def test_a_touched_log_starts_nothing(watch):
    for _ in range(20):
        watch.tick()
    os.utime(watch.landing / "m" / "npu.jsonl")
    assert [watch.tick().changed for _ in range(20)] == [()] * 20
    assert watch.tick().waiting == ()


def test_going_back_to_an_earlier_content_is_a_change_of_its_own(watch):
    first = (watch.landing / "m" / "npu.jsonl").read_bytes()
    for content in (first, first + first, first, first + first):
        (watch.landing / "m" / "npu.jsonl").write_bytes(content)
        for _ in range(20):
            watch.tick()
    assert len(set(watch.keys)) == 4


def test_a_look_that_is_repeated_after_a_crash_has_the_same_key(watch):
    watch.tick()
    cursor = watch.cursor
    key = watch.tick().key
    watch.cursor = cursor
    assert watch.tick().key == key


def test_content_is_read_only_where_files_changed(watch, monkeypatch):
    read = []
    real = __import__("pipelines.defs.watching", fromlist=["content_hash"]).content_hash
    monkeypatch.setattr("pipelines.defs.watching.content_hash", lambda *args: read.append(args) or real(*args))
    for _ in range(20):
        watch.tick()
    assert len(read) == 2
    write_log(watch.landing / "m2" / "gpu.jsonl", [1.0])
    for _ in range(20):
        watch.tick()
    assert len(read) == 3


def test_only_the_migrations_that_changed_are_named(watch):
    for _ in range(20):
        watch.tick()
    write_log(watch.landing / "m2" / "gpu.jsonl", [1.0])
    watch.tick()
    assert watch.tick().changed == ("m2",)


def test_a_log_that_is_missing_is_asked_for_once(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "migration.yaml").write_text(
        "migration: m\nruns:\n  - {name: gpu, log: nowhere.jsonl, role: baseline}\n", encoding="utf-8"
    )
    watch = Watch(tmp_path)
    for _ in range(30):
        watch.tick()
    assert len(watch.keys) == 1


@pytest.mark.parametrize("cursor", [None, "", "0123abcd", '{"other": 1}', '{"asked": 1, "migrations": {"m": [1]}}'])
def test_a_cursor_of_another_release_is_forgotten(cursor):
    assert read_memory(cursor).migrations.keys() <= {"m"}
    assert read_memory("0123abcd") == Memory()
