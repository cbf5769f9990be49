"""Writing the pages: rendering, file names, and leaving alone what has not changed."""

import hashlib
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from warehouse.connection import open_reader
from warehouse.report import words
from warehouse.report.charts import metric_chart, sparkline, survival_chart, timeline_chart
from warehouse.report.data import (
    Answers,
    MigrationPage,
    PairPage,
    Row,
    migration_names,
    question_rows,
    read_migration,
    rows,
)
from warehouse.report.scales import noise_band
from warehouse.report.survival import contrasts, hardware_curves, version_curves

INDEX_NAME = "index.html"
_TEMPLATES = Path(__file__).parent / "templates"
_SHOWN_FIRST = 6
_FEWEST_FOCUS = 4
_KEY = re.compile(r'<meta name="firstdrift-content" content="([0-9a-f]*)">')
_HEAD_BYTES = 2000


def write_reports(published: Path, folder: Path) -> list[Path]:
    """Write a page for each migration and the index over all of them.

    A page whose content has not changed is left as it is; pages of migrations that are gone are removed.

    Args:
        published: The published file.
        folder: Where the pages go; made where it does not exist.

    Returns:
        Paths of all pages, the index first.

    Raises:
        NothingPublishedError: If there is no published file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open_reader(published) as con:
        names = migration_names(con)
        files = {name: page_name(name) for name in names}
        version = _version(con)
        pages = []
        answers: Answers = {}
        for name in names:
            path = folder / files[name]
            key = _content_key(con, name)
            if _written_key(path) != key:
                _write_whole(path, migration_html(read_migration(con, name, answers), key, version))
            pages.append(path)
        index = folder / INDEX_NAME
        _write_whole(index, _index_html(con, files, version))
    for path in folder.glob("*.html"):
        if path not in pages and path != index and _written_key(path) is not None:
            path.unlink()
    return [index, *pages]


def page_name(migration: str) -> str:
    """Return the file name of a migration's page: its name, as far as every file system takes it."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", migration).strip("-.")[:80]
    if plain == migration and plain.lower() != "index":
        return f"{plain}.html"
    return f"{plain or 'migration'}-{hashlib.sha256(migration.encode()).hexdigest()[:8]}.html"


def migration_html(page: MigrationPage, content_key: str, version: str) -> str:
    """Return the page of a migration as HTML.

    Args:
        page: What is shown.
        content_key: Hash of the content; kept in the page, so that an unchanged one need not be drawn again.
        version: Version of the publication.
    """
    pairs = [_pair_parts(pair) for pair in page.pairs]
    return _render("migration.html", page=page, pairs=pairs, content_key=content_key, version=version)


def _pair_parts(pair: PairPage) -> Row:
    charted = [m for m in pair.metrics if (m["metric"], m["step_axis"]) in pair.series]
    focus = sorted((m for m in charted if m["focus_rank"] is not None), key=lambda m: (m["focus_rank"], m["metric"]))
    focus += _stand_ins(focus, charted)
    others = [m for m in charted if m not in focus]
    first = [m for m in others if m["rank"] is not None][:_SHOWN_FIRST]
    first += [m for m in others if m not in first and _is_broken(pair, m)][:_SHOWN_FIRST]
    labels = {m["metric"]: m["label_zh"] for m in pair.metrics}
    first_metric = pair.verdict.get("first_metric")
    return {
        "page": pair,
        "anchor": anchor(pair.pair),
        "reason_zh": words.chinese_reason(pair.verdict, labels.get(first_metric, first_metric or "")),
        "time_zh": words.chinese_time(pair.verdict.get("time_verdict"), pair.time_shifts),
        "timeline_en": Markup(timeline_chart(pair.onsets, pair.reference, "en")) if pair.onsets else "",
        "timeline_zh": Markup(timeline_chart(pair.onsets, pair.reference, "zh")) if pair.onsets else "",
        "focus": [_charted(pair, metric) for metric in focus],
        "first": [_charted(pair, metric) for metric in first],
        "ranked": [{**m, "spark": Markup(_spark(pair, m))} for m in pair.metrics],
    }


def _stand_ins(focus: list[Row], charted: list[Row]) -> list[Row]:
    """Return the metrics that are drawn where a log holds few of those to look at first."""
    told = sum(m["stage"] != "time" for m in focus)
    others = [m for m in charted if m not in focus and m["stage"] != "time" and not m["duplicates_of"]]
    return others[: max(_FEWEST_FOCUS - told, 0)]


def _is_broken(pair: PairPage, metric: Row) -> bool:
    """Tell whether a run logged something that is not finite."""
    series = pair.series[(metric["metric"], metric["step_axis"])]
    return bool((series.baseline_broken | series.candidate_broken).any())


def anchor(pair: Row) -> str:
    """Return the anchor of a pair within its page."""
    return f"pair-{pair['pair_id']}"


def _charted(pair: PairPage, metric: Row) -> Row:
    series = pair.series[(metric["metric"], metric["step_axis"])]
    band = noise_band(series.baseline, series.offset, series.sigma, metric["scale"], metric["scale_constant"])
    return {"metric": metric, "svg": Markup(metric_chart(series, band, metric, pair.restarts))}


def _spark(pair: PairPage, metric: Row) -> str:
    series = pair.series.get((metric["metric"], metric["step_axis"]))
    return sparkline(series) if series else ""


def _index_html(con: duckdb.DuckDBPyConnection, files: dict[str, str], version: str) -> str:
    pairs = rows(
        con,
        """
        select
            pairs.pair_id, pairs.migration, pairs.candidate_run_name as candidate,
            pairs.baseline_run_name as baseline, verdicts.verdict, verdicts.grade, verdicts.first_metric,
            verdicts.first_stage, verdicts.first_onset_step
        from dim_migration as pairs
        inner join mart_pair_verdict as verdicts on pairs.pair_id = verdicts.pair_id
        where pairs.pair_kind = 'migration'
        order by pairs.migration, candidate, baseline
        """,
    )
    also = {_named(row): row["also"] for row in question_rows(con, {}, "verdicts", {}, {})}
    shown = [
        {**row, "also": also[_named(row)], "file": files[row["migration"]], "anchor": anchor(row)} for row in pairs
    ]
    judged = {row["migration"] for row in pairs}
    lonely = [{"migration": name, "file": file} for name, file in files.items() if name not in judged]
    hardware, versions = hardware_curves(con), version_curves(con)
    return _render(
        "index.html",
        pairs=shown,
        lonely=lonely,
        hardware_chart=Markup(survival_chart(hardware)) if hardware else "",
        version_chart=Markup(survival_chart(versions)) if versions else "",
        contrasts=contrasts(con),
        content_key="",
        version=version,
    )


def _named(row: Row) -> tuple[str, str, str]:
    return row["migration"], row["candidate"], row["baseline"]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.globals |= {
        "word": words.word,
        "both": words.both,
        "verdict_word": words.verdict_word,
        "finding_word": words.finding_word,
        "stage_word": words.stage_word,
        "advice_word": words.advice_word,
        "also_word": words.also_word,
        "evidence": words.evidence,
        "pairing_word": words.pairing_word,
        "named_steps": words.named_steps,
        "plain": words.plain,
        "percent": lambda value: "" if value is None else f"{value:.0%}",
        "style": Markup((_TEMPLATES / "page.css").read_text(encoding="utf-8")),
        "script": Markup((_TEMPLATES / "page.js").read_text(encoding="utf-8")),
    }
    return environment


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


def _version(con: duckdb.DuckDBPyConnection) -> str:
    found = con.execute("select version from publication").fetchall()
    return str(found[0][0]) if found else ""


@cache
def _code_key() -> str:
    """Return a hash of the code, words and templates that make the pages."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.suffix in {".py", ".html", ".css", ".js"}:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _content_key(con: duckdb.DuckDBPyConnection, migration: str) -> str:
    """Return a hash of what the page of a migration is made from."""
    found = con.execute(
        """
        select 'run', bit_xor(hash(t)) from (select * exclude (loaded_at) from dim_run where migration = $name) as t
        union all select 'pair', bit_xor(hash(t)) from dim_migration as t where migration = $name
        union all select 'verdict', bit_xor(hash(t)) from mart_pair_verdict as t where migration = $name
        union all select 'onset', bit_xor(hash(t)) from mart_divergence_onset as t where migration = $name
        union all select 'rank', bit_xor(hash(t)) from mart_first_drift as t where migration = $name
        union all select 'anomaly', bit_xor(hash(t)) from mart_anomaly as t where migration = $name
        union all select 'time', bit_xor(hash(t)) from mart_time_shift as t where migration = $name
        union all select 'health', bit_xor(hash(t)) from mart_run_health as t where migration = $name
        union all select 'metric', bit_xor(hash(t)) from dim_metric as t
        union all select 'component', bit_xor(hash(t)) from bridge_run_component as t
        order by 1
        """,
        {"name": migration},
    ).fetchall()
    return hashlib.sha256(repr((_code_key(), found)).encode()).hexdigest()[:16]


def _written_key(path: Path) -> str | None:
    """Return the content key of a page that was written earlier; None where there is no page of ours."""
    if not path.exists():
        return None
    with path.open("rb") as stream:
        matched = _KEY.search(stream.read(_HEAD_BYTES).decode("utf-8", "replace"))
    return matched[1] if matched else None


def _write_whole(path: Path, text: str) -> None:
    draft = path.with_suffix(f".{os.getpid()}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
