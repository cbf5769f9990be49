"""What the terminal prints: curves of one line, and the table for a pull request."""

import io
import json
import math
import re
import shutil

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pipelines.pull_request import pull_request_text
from pipelines.show import migration_views, print_views
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


def test_the_table_for_a_pull_request_says_what_its_verdicts_mean(published):
    section, other = pull_request_text(published).split("### npu_ess_overflow_at60 against gpu_n0")
    assert re.search(r"^Time: task_time/p50 1\.\d\d times slower from the first step;", section, re.M)
    assert re.search(r"\| `task_time/p95` .* \| 1\.\d\d times slower from the first step \|$", section, re.M)
    assert "not judged" not in section + other
    assert "\nAlso: not finite from 60.\n" in other
    assert "Also:" not in section
    for text in (section, other):
        assert "The interval is that of the mean difference over these steps." in text.rstrip().splitlines()[-1]


def shown(con, width, monkeypatch) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    written = io.StringIO()
    console = Console(file=written, width=width, highlight=False)
    print_views(migration_views(con), console)
    return written.getvalue()


@pytest.fixture
def copy(demo_home, tmp_path):
    path = tmp_path / "copy.duckdb"
    shutil.copyfile(demo_home / "published" / "firstdrift.duckdb", path)
    path.chmod(0o644)
    with duckdb.connect(path) as con:
        yield con


@pytest.mark.parametrize("width", [80, 112, 200])
def test_the_summary_names_what_the_verdict_leaves_alone(copy, width, monkeypatch):
    copy.execute(
        """
        update mart_time_shift set shift_kind = 'change', onset_step = 60, ratio = 2.97
        where metric = 'time/generation_time' and pair_id = (
            select pair_id from dim_migration where candidate_run_name = 'npu_attn_mask_at60')
        """
    )
    rows = shown(copy, width, monkeypatch).splitlines()[2:5]
    assert re.match(r"candidate +verdict +onset step +also +grade", rows[0])
    assert re.match(r"npu_attn_mask_at60 +drift +60 \(59 to 61\) +slower from 60 +[AB]\b", rows[1])
    assert re.match(r"npu_ess_overflow_at60 +decoupled_only +not finite from 60 +[AB]\b", rows[2])


def test_stage_and_step_lead_where_many_metrics_tie(copy, monkeypatch):
    section = shown(copy, 200, monkeypatch).split("npu_attn_mask_at60 against gpu_n0")[1].splitlines()
    assert re.match(
        r"  rollout_or_weight_sync moved first, at step 60 \(59 to 61\): \d\d metrics are tied, and with prob",
        section[1],
    )
    assert section[2].startswith("  rollout_is/")


def test_a_metric_that_drifted_alone_is_not_tied(copy, monkeypatch):
    copy.execute("delete from mart_first_drift where rank > 1")
    copy.execute("update mart_first_drift set onset_step_low = 60, onset_step_high = 60, is_tied = false")
    text = shown(copy, 80, monkeypatch)
    assert "tied" not in text
    assert "      step 60, P(first)" in text
    assert "60 (60" not in text
    copy.execute("update mart_first_drift set is_tied = true")
    assert "tied" not in shown(copy, 80, monkeypatch)


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
    assert re.search(r"\b(59|60|61) \(\d.*[▁▂▃▄▅▆▇█]{10}", text)
    assert "\x1b" not in text
    assert json.loads(firstdrift(demo_home, "show", "-f", "json").stdout)[0]["migration"] == "sorting-npu"
    wrong = firstdrift(demo_home, "show", "-f", "yaml", check=False)
    assert (wrong.returncode, "write one of text, markdown, json" in wrong.stderr) == (1, True)


def test_one_thing_has_no_plural() -> None:
    assert [counted(n, "row") for n in (0, 1, 2, 71_550)] == ["0 rows", "1 row", "2 rows", "71,550 rows"]
