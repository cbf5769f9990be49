"""The pages, read as a person would."""

import re
import shutil
from html.parser import HTMLParser

import duckdb
import pytest

from tests.report.pages import made_page
from warehouse.connection import NothingPublishedError
from warehouse.report import write_reports
from warehouse.report.words import (
    ADVICE_ZH,
    ALSO_ZH,
    FINDINGS,
    STAGES,
    TIME_ZH,
    VERDICTS,
    WORDS,
    advice_word,
    also_word,
)
from warehouse.report.write import migration_html, page_name
from warehouse.settings import project_folder

_VOID = {"meta", "link", "br"}


class Reader(HTMLParser):
    """Collects the text of a page in one language, and everything it refers to; notes tags that do not close."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self.hidden = "zh" if language == "en" else "en"
        self.stack: list[tuple[str, bool]] = []
        self.words: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.unbalanced: list[str] = []

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        self.links += [values[name] for name in ("href", "src") if values.get(name)]
        if "id" in values:
            self.anchors.add(values["id"])
        is_silent = tag in ("style", "script", "svg") or (values.get("lang") == self.hidden and tag != "html")
        if tag not in _VOID:
            self.stack.append((tag, is_silent))

    def handle_endtag(self, tag):
        if self.stack and self.stack[-1][0] == tag:
            self.stack.pop()
        else:
            self.unbalanced.append(tag)

    def handle_data(self, data):
        if data.strip() and not any(is_silent for _, is_silent in self.stack):
            self.words.append(data.strip())

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def read(html: str, language: str = "en") -> Reader:
    reader = Reader(language)
    reader.feed(html)
    assert not reader.unbalanced
    assert not reader.stack
    return reader


@pytest.fixture(scope="module")
def reports(demo_home, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    write_reports(demo_home / "published" / "firstdrift.duckdb", folder)
    return folder


def test_the_page_names_the_stage_that_moved_first_and_the_step(reports):
    text = read((reports / "sorting-npu.html").read_text(encoding="utf-8")).text
    section = text[text.index("npu_attn_mask_at60 against gpu_n0") : text.index("npu_ess_overflow_at60 against")]
    assert re.search(r"drift · Grade [AB] · rollout or weight sync", section)
    assert re.search(r"is off from step (59|60|61)\b", section)
    assert "What would raise the grade : " in section
    assert "noise floor from 2 replicates of the baseline and 1 of the candidate" in section
    assert "hardware lab-gpu lab-npu" in section
    assert "response/prompt_len/mean : equal through step 150" in section
    assert "gpu_n0 150 0 84 9 / 9" in section
    assert re.search(r"time/step [\d.]+ [\d.]+ 1\.[12]\d* 100%", section)


def test_the_page_says_that_an_infinite_ess_is_no_drift(reports):
    text = read((reports / "sorting-npu.html").read_text(encoding="utf-8")).text
    section = text[text.index("npu_ess_overflow_at60 against gpu_n0") : text.index("Replicates: pairs")]
    assert section[:80].count("drift · Grade") <= 1
    assert "Not finite : rollout_is/mismatch/rollout_is_eff_sample_size (60)" in section
    assert "a finite number" in section


def test_the_chinese_page_says_the_same(reports):
    text = read((reports / "sorting-npu.html").read_text(encoding="utf-8"), "zh").text
    assert re.search(r"自第 (59|60|61) 步起偏离，指向：推理或权重同步", text)
    assert "K3 KL 稳健估计" in text
    assert re.search(r"自首步起慢至 1\.\d\d 倍", text)
    assert "What would raise" not in text
    assert "times slower" not in text


def test_the_demo_ends_by_naming_the_page(demo_home):
    printed = (demo_home / "first_output.txt").read_text(encoding="utf-8").replace("\n", "")
    assert str(demo_home / "reports" / "index.html") in printed
    assert (demo_home / "reports" / "sorting-npu.html").exists()


def test_every_metric_that_is_not_finite_is_drawn():
    page = made_page(30, 60)
    pair = page.pairs[0]
    series = pair.series[("group/metric_25", "step")]
    series.candidate_broken[40:] = True
    html = migration_html(page, "0", "v")
    assert "<br><code>group/metric_25</code>" in re.sub(
        r"</?small.*?>|\n(?=<br>)", "", html.split("All metrics, ranked")[0]
    )


def test_the_index_shows_which_version_drifts_earlier(demo_home, tmp_path):
    copy = tmp_path / "copy.duckdb"
    shutil.copyfile(demo_home / "published" / "firstdrift.duckdb", copy)
    copy.chmod(0o644)
    with duckdb.connect(copy) as con:
        con.execute("delete from mart_component_contrast")
        con.execute(
            """
            insert into mart_component_contrast by name
            select 'attention_kernel' as component_kind, 'dense 9' as arm, 'all' as metric_group,
                'drift' as onset_kind, 'earlier' as finding, 7 as pairs, 6 as events, 12 as other_pairs,
                1 as other_events, 5.5 as hazard_ratio, 2.0 as hazard_ratio_low, 9.0 as hazard_ratio_high,
                0.004 as p_adjusted
            """
        )
    write_reports(copy, tmp_path / "pages")
    text = read((tmp_path / "pages" / "index.html").read_text(encoding="utf-8")).text
    assert "attention_kernel dense 9 6 / 7 1 / 12 5.5 (2–9) 0.004 earlier" in text


def test_the_index_leads_to_every_pair(reports):
    index = read((reports / "index.html").read_text(encoding="utf-8"))
    page = read((reports / "sorting-npu.html").read_text(encoding="utf-8"))
    wanted = [link.partition("#") for link in index.links if link.startswith("sorting-npu")]
    assert {anchor for _, _, anchor in wanted if anchor} <= page.anchors
    assert len({anchor for _, _, anchor in wanted if anchor}) == 2
    assert re.search(
        r"npu_attn_mask_at60 drift [AB] (59|60|61) rollout or weight sync (mismatch|rollout_is|entropy)/", index.text
    )
    assert "by hardware of the candidate" in index.text


def test_the_index_names_what_the_verdict_leaves_alone(reports):
    html = (reports / "index.html").read_text(encoding="utf-8")
    assert re.search(r"npu_ess_overflow_at60 decoupled, no drift [AB] not finite from 60 gpu_n0", read(html).text)
    assert "自第 60 步起非有限" in read(html, "zh").text


def test_whatever_stands_beside_a_verdict_has_a_translation():
    sql = (project_folder("sql") / "queries" / "verdicts.sql").read_text(encoding="utf-8")
    kinds = set(re.findall(r"'([a-z ]+ from) ' \|\|", sql))
    assert kinds == set(ALSO_ZH)
    assert "自第 7 步起变慢，自第 9 步起违反规则" in also_word("slower from 7, rule broken from 9")
    assert also_word(None).striptags() == ""


def test_the_caption_says_that_the_band_holds_the_offset_between_the_stacks(reports):
    html = (reports / "sorting-npu.html").read_text(encoding="utf-8")
    assert (
        "the baseline moved by the offset between the stacks, so the baseline itself may lie outside" in read(html).text
    )


def test_pages_need_nothing_from_outside(reports):
    for path in reports.glob("*.html"):
        html = path.read_text(encoding="utf-8")
        links = read(html).links
        assert not [link for link in links if re.match(r"https?:|//|file:", link)]
        assert all((reports / link.partition("#")[0]).exists() for link in links if link[0] not in "#d")
        assert "@import" not in html
        assert not re.search(r"url\((?!#)", html)


def test_an_unchanged_page_is_left_alone_and_an_orphan_removed(demo_home, reports):
    page = reports / "sorting-npu.html"
    before = page.stat().st_mtime_ns
    shutil.copyfile(page, reports / "gone.html")
    (reports / "mine.html").write_text("<p>not a report</p>", encoding="utf-8")
    paths = write_reports(demo_home / "published" / "firstdrift.duckdb", reports)
    assert [path.name for path in paths] == ["index.html", "sorting-npu.html"]
    assert page.stat().st_mtime_ns == before
    assert not (reports / "gone.html").exists()
    assert (reports / "mine.html").exists()
    (reports / "mine.html").unlink()


def test_a_changed_verdict_makes_a_new_page(demo_home, tmp_path):
    copy = tmp_path / "copy.duckdb"
    shutil.copyfile(demo_home / "published" / "firstdrift.duckdb", copy)
    copy.chmod(0o644)
    write_reports(copy, tmp_path / "pages")
    with duckdb.connect(copy) as con:
        con.execute("update mart_pair_verdict set reason = 'Changed since.' where verdict = 'drift'")
    write_reports(copy, tmp_path / "pages")
    assert "Changed since." in (tmp_path / "pages" / "sorting-npu.html").read_text(encoding="utf-8")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NothingPublishedError, match=r"firstdrift run"):
        write_reports(tmp_path / "none.duckdb", tmp_path / "pages")


def test_names_out_of_a_log_can_not_break_the_page():
    evil = "</code><script>alert(1)</script>\"'&"
    html = migration_html(made_page(2, 40, [evil, "group/other"]), "0", "v")
    assert "<script>alert" not in html
    assert html.count("<script>") == 1
    assert evil in read(html).text


def test_values_that_are_not_finite_are_marked_on_the_axis():
    html = migration_html(made_page(2, 60), "0", "v")
    sound, broken = re.findall(r"<figure>.*?</figure>", html, re.S)[:2]
    assert 'stroke-width="4"' not in sound
    assert broken.count('stroke-width="4"') == 1


def test_a_page_of_100_metrics_and_2000_steps_is_small():
    html = migration_html(made_page(100, 2000), "0", "v")
    assert len(html.encode()) < 5_000_000


@pytest.mark.parametrize(
    ("migration", "expected"),
    [("sorting-npu", r"sorting-npu\.html"), ("a/b c", r"a-b-c-\w{8}\.html"), ("迁移", r"migration-\w{8}\.html")],
)
def test_a_page_is_named_after_its_migration(migration, expected):
    assert re.fullmatch(expected, page_name(migration))


def test_no_two_migrations_share_a_page():
    names = ["a b", "a-b", "a/b", "index", "Index", "..", "x" * 200, "x" * 201]
    assert len({page_name(name).lower() for name in names}) == len(names)
    assert "index.html" not in {page_name(name).lower() for name in names}


def test_every_word_exists_in_both_languages():
    for table in (WORDS, VERDICTS, STAGES, FINDINGS):
        for key, (english, chinese) in table.items():
            assert english, key
            assert chinese, key
            assert key == "language" or re.search(r"[\u4e00-\u9fff]", chinese) or key in {"in_sigma"}, key


def test_every_advice_of_the_question_has_a_translation():
    sql = (project_folder("sql") / "queries" / "what_would_raise_the_grade.sql").read_text(encoding="utf-8")
    pieces = re.findall(r"(?:then|else)\s+'((?:[^']|'')+)'|\|\| '((?:[^']|'')+)'|concat_ws\(\s*'([^']+)'", sql)
    assert {"".join(found).replace("''", "'") for found in pieces} == set(ADVICE_ZH)
    shown = str(advice_word("run again: 1 more on the baseline's stack and 2 more on the candidate's stack"))
    assert "再次运行：1 次（基线栈），2 次（候选栈）" in shown


def test_an_empty_warehouse_and_a_migration_without_pair_have_pages(demo_home, tmp_path):
    copy = tmp_path / "copy.duckdb"
    shutil.copyfile(demo_home / "published" / "firstdrift.duckdb", copy)
    copy.chmod(0o644)
    with duckdb.connect(copy) as con:
        for table in ("dim_migration", "mart_pair_verdict", "mart_drift_survival", "mart_component_contrast"):
            con.execute(f"delete from {table}")
    index, page = write_reports(copy, tmp_path / "pages")
    assert "sorting-npu : No pair: nothing says which run is the baseline." in read(index.read_text("utf-8")).text
    assert "No pair: nothing says which run is the baseline." in read(page.read_text("utf-8")).text
    with duckdb.connect(copy) as con:
        con.execute("delete from dim_run")
    assert write_reports(copy, tmp_path / "pages") == [index]
    assert not page.exists()
    assert "No migrated run has been judged yet." in read(index.read_text("utf-8")).text


def test_metrics_that_nobody_described_are_drawn_too(demo_home, tmp_path):
    copy = tmp_path / "copy.duckdb"
    shutil.copyfile(demo_home / "published" / "firstdrift.duckdb", copy)
    copy.chmod(0o644)
    with duckdb.connect(copy) as con:
        con.execute("update dim_metric set focus_rank = null")
    _, page = write_reports(copy, tmp_path / "pages")
    assert page.read_text("utf-8").count("<figure>") >= 8


def test_verdicts_about_time_without_a_shift_have_a_translation():
    sql = (project_folder("models") / "marts" / "mart_pair_verdict.sql").read_text(encoding="utf-8")
    assert set(re.findall(r"'(no stage [^']+)'", sql)) == set(TIME_ZH)
