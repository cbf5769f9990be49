"""Making the Data Docs of Great Expectations fit for a machine that asks nobody else.

As generated, the pages load scripts, styles and a logo from other people's servers, and their index is drawn
by one of those scripts. Here they lose every such reference, and the index is written anew as plain HTML.
"""

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Final

_SCRIPT: Final = re.compile(r"<script\b.*?</script>", re.S | re.I)
_OUTSIDE_TAG: Final = re.compile(r"<(?:link|img)\b[^>]*\b(?:href|src)\s*=\s*[\"']?https?:[^>]*>", re.I)
_OUTSIDE_LINK: Final = re.compile(r"<a\b[^>]*\bhref\s*=\s*[\"']?https?:.*?</a>", re.S | re.I)
_OUTSIDE_STYLE: Final = re.compile(r"@import\s+(?:url\()?[\"']?https?:[^;]*;", re.I)
_STYLE: Final = """<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; } td, th { border: 1px solid #ccc; padding: .3rem .6rem; text-align: left; }
.failed { color: #b00020; font-weight: 600; } .passed { color: #2e7d32; }
</style>"""


def keep_pages_local(folder: Path) -> None:
    """Remove from every page below `folder` what a browser would fetch from elsewhere."""
    for path in folder.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for pattern in (_SCRIPT, _OUTSIDE_TAG, _OUTSIDE_LINK, _OUTSIDE_STYLE):
            text = pattern.sub("", text)
        path.write_text(text.replace("</head>", f"{_STYLE}\n</head>", 1), encoding="utf-8")


def write_index(folder: Path, suites: Iterable[tuple[str, int, int]]) -> None:
    """Write the first page: one row for each suite, with links to its pages.

    Args:
        folder: The folder of the pages.
        suites: Name of each suite, how many expectations it has, and how many of them failed.
    """
    rows = []
    for name, count, failed in suites:
        verdict = f'<td class="failed">{failed} failed</td>' if failed else '<td class="passed">all met</td>'
        links = [_link(folder, f"expectations/{name}.html", "expectations")]
        pages = sorted((folder / "validations" / name).rglob("*.html"))
        links += [_link(folder, page.relative_to(folder).as_posix(), "results") for page in pages[-1:]]
        rows.append(f"<tr><td>{escape(name)}</td><td>{count}</td>{verdict}<td>{' &middot; '.join(links)}</td></tr>")
    text = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Expectations of the catalogue</title>\n'
        f"{_STYLE}</head>\n<body><h1>Expectations of the catalogue</h1>\n"
        "<p>What the metric catalogue makes one expect of every run, and whether the runs meet it.</p>\n"
        "<table><tr><th>suite</th><th>expectations</th><th>outcome</th><th>pages</th></tr>\n"
        + "\n".join(rows)
        + "\n</table></body></html>\n"
    )
    (folder / "index.html").write_text(text, encoding="utf-8")


def _link(folder: Path, target: str, label: str) -> str:
    return f'<a href="{escape(target)}">{label}</a>' if (folder / target).is_file() else label
