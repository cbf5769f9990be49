"""What the terminal prints: curves of one line, and the table for a pull request."""

import json
import math
import re

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.pull_request import pull_request_text
from pipelines.sparkline import NOT_FINITE, sparkline
from tests.integration.conftest import firstdrift
from warehouse.wording import counted


@given(st.lists(st.one_of(st.none(), st.floats()), min_size=1, max_size=300), st.integers(1, 60))
def test_a_line_shows_the_extreme_and_everything_that_is_not_finite(values, width):
    line = sparkline(values, width)
    assert len(line) == min(width, len(values))
    broken = [v for v in values if v is not None and not math.isfinite(v)]
    assert (NOT_FINITE in line) == bool(broken)
    finite = [abs(v) for v in values if v is not None and math.isfinite(v)]
    if finite and max(finite) > 0 and not broken:
        assert "█" in line


def test_a_line_rises_with_the_values():
    assert sparkline([0.0, 0.0, 1.0, -2.0, 8.0, None], 6) == "▁▁▂▃█ "
    assert sparkline([], 6) == ""
    assert sparkline([0.0, 0.0], 6) == "▁▁"


@pytest.fixture(scope="module")
def published(demo_home):
    con = duckdb.connect(demo_home / "published" / "firstdrift.duckdb", read_only=True)
    yield con
    con.close()


def test_the_table_for_a_pull_request_tells_the_known_answer(published):
    text = pull_request_text(published)
    section, other = text.split("### npu_ess_overflow_at60 against gpu_n0")
    assert section.startswith("### npu_attn_mask_at60 against gpu_n0\n\n**drift**")
    assert re.search(r"is off from step (59|60|61)\b", section)
    assert "| hardware | lab-gpu | lab-npu |" in section
    first, everything = section.split("All steps:")
    assert re.search(r"\| `mismatch/\w+` .* \| 150 \| \*\*drift from step 6[01]\*\* \|", everything)
    assert "drift from" not in first.split("First 20 steps:")[1]
    assert re.search(r"\| `response/prompt_len/mean` \| 5.5\d+ \| 5.5\d+ \| 0 \| 20 \| equal \|", first)
    assert "**not finite from step 60**" in other


def test_every_row_of_a_table_has_as_many_cells_as_its_header(published):
    tables = re.findall(r"(?:^\|.*\|\n?)+", pull_request_text(published), re.M)
    assert len(tables) == 6
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def test_an_unknown_migration_is_named(published):
    with pytest.raises(ValueError, match="no pair to show in nowhere"):
        pull_request_text(published, "nowhere")


def test_the_command_line_prints_each_form(demo_home):
    markdown = firstdrift(demo_home, "show", "--format", "markdown").stdout
    assert "| metric | baseline mean | candidate mean | difference (95% interval) | n | verdict |" in markdown
    text = firstdrift(demo_home, "show").stdout
    assert re.search(r"step (59|60|61) .*[▁▂▃▄▅▆▇█]{10}", text)
    assert "\x1b" not in text
    assert json.loads(firstdrift(demo_home, "show", "-f", "json").stdout)[0]["migration"] == "sorting-npu"
    wrong = firstdrift(demo_home, "show", "-f", "yaml", check=False)
    assert (wrong.returncode, "write one of text, markdown, json" in wrong.stderr) == (1, True)


def test_one_thing_has_no_plural() -> None:
    assert [counted(n, "row") for n in (0, 1, 2, 71_550)] == ["0 rows", "1 row", "2 rows", "71,550 rows"]
