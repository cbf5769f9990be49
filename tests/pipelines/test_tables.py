"""Tables of the terminal: whatever the width, no name is cut or broken."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pipelines.tables import number_text, print_shortened, print_table, room_of

METRIC = "rollout_is/mismatch/rollout_is_ratio_fraction_high"
NAMES = st.text("abc_/", min_size=1, max_size=30)
CELLS = st.one_of(st.none(), NAMES, st.lists(NAMES, min_size=1, max_size=9).map(" ".join), st.integers(), st.booleans())


def printed(columns, rows, width, show=print_table) -> str:
    written = io.StringIO()
    console = Console(file=written, width=width, force_terminal=True, color_system=None, highlight=False)
    show(columns, rows, console)
    text = written.getvalue()
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=4), st.integers(40, 200))
def test_every_name_is_whole_at_any_width(rows, width):
    words = printed(("one", "other", "third"), rows, width).split()
    wanted = [word for row in rows for cell in row for word in number_text(cell).split()]
    for word in set(wanted):
        assert words.count(word) >= wanted.count(word)


def test_what_has_no_room_as_a_table_is_a_record_a_row():
    columns, row = ("candidate", "metric", "category"), ("npu", METRIC, "importance_sampling")
    wide, narrow = (printed(columns, [row, row], width) for width in (110, 60))
    assert len(wide.splitlines()) == 3
    assert narrow.splitlines()[:4] == [
        "── 1 ──",
        "candidate  npu",
        f"metric     {METRIC}",
        "category   importance_sampling",
    ]
    assert max(map(len, narrow.splitlines())) <= 61


def test_the_last_columns_make_room_and_are_named():
    rows = [(METRIC, 60, 0.5, "importance_sampling")] * 30
    lines = printed(("metric", "onset_step", "q_value", "category"), rows, 80, print_shortened).splitlines()
    assert len(lines) == 32
    assert all(METRIC in line and "importance" not in line for line in lines[1:-1])
    assert lines[-1] == "No room for category."


def test_a_sentence_wraps_between_its_words():
    text = printed(("n", "sentence"), [(1, f"{METRIC} is off from step 60 and stays there to the end.")], 60)
    assert METRIC in text
    assert "── 1 ──" not in text
    assert " ".join(text.split()).endswith("stays there to the end.")


def test_a_pipe_has_room_for_everything(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    file = io.StringIO()
    console = Console(file=file, width=80, highlight=False)
    print_table(("a", "b", "c"), [(METRIC, METRIC, f"{METRIC} is off {'and ' * 90}on")] * 2, console)
    assert len(file.getvalue().splitlines()) == 3
    monkeypatch.setenv("COLUMNS", "80")
    assert room_of(console) == 80


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([{"metric": "a/b", "step": 60}, {"metric": "c", "step": 1}], "metric a/b, step 60; metric c, step 1"),
        ([1, None, 0.25], "1, , 0.25"),
        ({}, ""),
        (True, "yes"),
    ],
)
def test_a_cell_reads_as_words(value, text):
    assert number_text(value) == text


def test_brackets_of_a_log_are_no_markup():
    assert "[red]x[/red]" in printed(("name",), [("[red]x[/red]",)], 80)
