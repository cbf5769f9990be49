"""The pages in a real browser: no console errors, readable on a desk and on a phone, quick to open."""

import html as html_entities
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.report.pages import made_page
from warehouse.report import write_reports
from warehouse.report.write import migration_html

pytestmark = pytest.mark.browser
WIDTHS = (1280, 390)

# Measures the page from within and leaves the result where --dump-dom shows it.
_PROBE = """
<script>
addEventListener("load", function () {
  var visible = function (node) { return node.getClientRects().length > 0; };
  var text = function (selector) {
    return Array.from(document.querySelectorAll(selector)).filter(visible).map(function (n) { return n.textContent; });
  };
  var sizes = Array.from(document.querySelectorAll("figure svg text")).filter(visible)
    .map(function (n) { return n.getBoundingClientRect().height; }).filter(function (h) { return h > 0; });
  var result = {
    loaded: performance.now(), inner: innerWidth, width: document.documentElement.scrollWidth,
    smallest: Math.min.apply(null, sizes.concat([99])), charts: document.querySelectorAll("figure svg").length,
    paper: getComputedStyle(document.body).backgroundColor, english: text("h3 span[lang=en]").length
  };
  document.getElementById("language").click();
  result.chinese = text("h3 span[lang=zh]").length;
  result.left = text("h3 span[lang=en]").length;
  document.getElementById("scheme").click();
  result.other_paper = getComputedStyle(document.body).backgroundColor;
  var out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify(result);
  parent.document.body.append(out);
});
</script></body>"""


@pytest.fixture(scope="session")
def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    pytest.skip("no Chromium on the PATH (make test-browser installs it on Debian and Ubuntu)")


def run_browser(chromium: str, profile: Path, width: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        chromium,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={profile}",
        "--enable-logging=stderr",
        "--v=0",
        f"--window-size={max(width, 800)},900",
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def probe(chromium: str, path: Path, width: int, folder: Path) -> dict:
    """Open a page, press its buttons, and return what was measured; errors of the console fail the test."""
    text = path.read_text(encoding="utf-8").replace("</body>", _PROBE)
    # A window can't be made narrower than 500 pixels, a frame can.
    source = html_entities.escape(text, quote=True)
    frame = f'<!doctype html><body style="margin:0"><iframe width={width} height=900 frameborder=0 srcdoc="{source}">'
    probed = folder / f"probed-{width}-{path.name}"
    probed.write_text(frame, encoding="utf-8")
    done = run_browser(chromium, folder / "profile", width, "--dump-dom", probed.as_uri())
    assert not re.findall(r"CONSOLE.*", done.stderr), done.stderr
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.S)
    assert found, done.stderr
    return json.loads(html_entities.unescape(found[1]))


@pytest.fixture(scope="module")
def reports(demo_home, tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    write_reports(demo_home / "published" / "firstdrift.duckdb", folder)
    return folder


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["index.html", "sorting-npu.html"])
def test_a_page_opens_without_errors_and_fits(chromium, reports, tmp_path, name, width):
    found = probe(chromium, reports / name, width, tmp_path)
    assert found["inner"] == width
    assert found["width"] <= width, "the page scrolls sideways"
    assert found["smallest"] >= 7, "the text of a chart is too small to read"
    assert found["charts"] >= 2
    assert found["paper"] != found["other_paper"]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_language_can_be_switched(chromium, reports, tmp_path, width):
    found = probe(chromium, reports / "sorting-npu.html", width, tmp_path)
    assert found["english"] == found["chinese"] > 5
    assert found["left"] == 0


def test_a_page_of_100_metrics_and_2000_steps_opens_within_5_seconds(chromium, tmp_path):
    page = tmp_path / "large.html"
    page.write_text(migration_html(made_page(100, 2000), "0", "v"), encoding="utf-8")
    assert page.stat().st_size < 5_000_000
    found = probe(chromium, page, 1280, tmp_path)
    assert found["loaded"] <= 5000


def test_a_console_error_would_be_seen(chromium, tmp_path):
    page = tmp_path / "wrong.html"
    page.write_text("<body><button id='language'></button><script>nothing.at.all()</script></body>", encoding="utf-8")
    with pytest.raises(AssertionError, match="CONSOLE"):
        probe(chromium, page, 1280, tmp_path)


def test_a_page_prints(chromium, reports, tmp_path):
    target = tmp_path / "page.pdf"
    run_browser(
        chromium, tmp_path / "profile", 1280, f"--print-to-pdf={target}", (reports / "sorting-npu.html").as_uri()
    )
    assert target.read_bytes()[:5] == b"%PDF-"
    assert target.stat().st_size > 50_000
