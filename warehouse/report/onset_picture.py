"""The onsets of many pairs as one picture that stands alone, for places without the style sheet of the pages."""

from typing import Any

import duckdb

from warehouse.report.charts import COLOURS, vega_svg
from warehouse.report.data import Row, rows

MOST_PAIRS = 30
_WIDTH = 520
_PAPER = "#ffffff"
# The light scheme of the pages.
_INK = {
    "ink": "#1c2530",
    "faint": "#ccd3da",
    "baseline": "#2368b0",
    "candidate": "#c2550a",
    "band": "#9aa7b4",
    "drift": "#b3123f",
    "decouple": "#7a4fa3",
    "first-diff": "#3f7f56",
    "reference": "#5d6b78",
}
_KINDS = (
    ("first difference", "first_different_step", "diamond", "first-diff"),
    ("equality lost", "decoupled_at", "square", "decouple"),
    ("drift", "first_onset_step", "circle", "drift"),
    ("not finite", "nonfinite_step", "cross", "candidate"),
)


def onset_rows(con: duckdb.DuckDBPyConnection) -> list[Row]:
    """Return verdict and onsets of every pair of a migration, in the order of the drifts; those without come last.

    Args:
        con: A connection to the working or the published file.
    """
    return rows(
        con,
        """
        select
            pairs.migration, pairs.candidate_run_name as candidate, pairs.baseline_run_name as baseline,
            verdicts.verdict, verdicts.grade, verdicts.first_metric, verdicts.first_stage,
            verdicts.first_onset_step, ranked.onset_step_low as low, ranked.onset_step_high as high,
            verdicts.first_different_step, verdicts.decoupled_at, verdicts.last_common_step,
            list_min([found.step for found in verdicts.nonfinite_metrics]) as nonfinite_step
        from mart_pair_verdict as verdicts
        inner join dim_migration as pairs on verdicts.pair_id = pairs.pair_id
        left join mart_first_drift as ranked on verdicts.pair_id = ranked.pair_id and ranked.rank = 1
        where pairs.pair_kind = 'migration'
        order by
            verdicts.first_onset_step nulls last, nonfinite_step nulls last, pairs.migration, candidate
        """,
    )


def onset_picture(pairs: list[Row]) -> str:
    """Return the onsets of pairs on one axis of steps as SVG, one line a pair; at most `MOST_PAIRS` of them.

    Args:
        pairs: Rows of `onset_rows`.
    """
    shown = pairs[:MOST_PAIRS]
    lanes = [{**pair, "name": f"{pair['migration']}: {pair['candidate']}"} for pair in shown]
    order = [lane["name"] for lane in lanes]
    marks = [
        {"name": lane["name"], "kind": kind, "step": lane[field]}
        for lane in lanes
        for kind, field, _, _ in _KINDS
        if lane[field] is not None
    ]
    svg = vega_svg(
        {
            "background": _PAPER,
            "padding": 12,
            "width": _WIDTH,
            "height": {"step": 30},
            "layer": [_lanes(lanes, order), _intervals(lanes, order), _marks(marks, order), *_words(lanes, order)],
        }
    )
    for name, stand_in in COLOURS.items():
        svg = svg.replace(stand_in, _INK[name])
    return svg


def _y(order: list[str]) -> dict[str, Any]:
    axis = {"title": None, "labelLimit": 320, "ticks": False, "domain": False, "labelPadding": 8}
    return {"field": "name", "type": "nominal", "sort": order, "scale": {"domain": order}, "axis": axis}


def _x(field: str) -> dict[str, Any]:
    axis = {"title": "step", "format": "d", "tickMinStep": 1, "titleColor": COLOURS["ink"], "titleFontWeight": "normal"}
    return {"field": field, "type": "quantitative", "axis": axis, "scale": {"zero": True, "nice": False}}


def _lanes(lanes: list[Row], order: list[str]) -> dict[str, Any]:
    values = [{"name": lane["name"], "from": 0, "to": lane["last_common_step"] or 0} for lane in lanes]
    return {
        "data": {"values": values},
        "mark": {"type": "rule", "color": COLOURS["faint"], "strokeWidth": 1.5},
        "encoding": {"x": _x("from"), "x2": {"field": "to"}, "y": _y(order)},
    }


def _intervals(lanes: list[Row], order: list[str]) -> dict[str, Any]:
    values = [
        {"name": lane["name"], "from": lane["low"], "to": lane["high"]}
        for lane in lanes
        if lane["low"] is not None and lane["high"] is not None
    ]
    return {
        "data": {"values": values},
        "mark": {"type": "rule", "color": COLOURS["drift"], "strokeWidth": 9, "opacity": 0.3},
        "encoding": {"x": _x("from"), "x2": {"field": "to"}, "y": _y(order)},
    }


def _marks(marks: list[Row], order: list[str]) -> dict[str, Any]:
    domain = [kind for kind, _, _, _ in _KINDS]
    legend = {"orient": "bottom", "title": None, "labelColor": COLOURS["ink"], "labelFontSize": 11}
    colours = {"domain": domain, "range": [COLOURS[colour] for _, _, _, colour in _KINDS]}
    shapes = {"domain": domain, "range": [shape for _, _, shape, _ in _KINDS]}
    return {
        "data": {"values": marks},
        "mark": {"type": "point", "filled": True, "size": 75, "opacity": 1},
        "encoding": {
            "x": _x("step"),
            "y": _y(order),
            "color": {"field": "kind", "type": "nominal", "scale": colours, "legend": legend},
            "shape": {"field": "kind", "type": "nominal", "scale": shapes, "legend": legend},
        },
    }


def _words(lanes: list[Row], order: list[str]) -> list[dict[str, Any]]:
    """Return the verdict at the end of each lane, and the stage beside the drift."""
    verdicts = [
        {"name": lane["name"], "step": lane["last_common_step"] or 0, "text": f"{lane['verdict']}, {lane['grade']}"}
        for lane in lanes
    ]
    stages = [
        {
            "name": lane["name"],
            "step": lane["first_onset_step"],
            "text": f"{lane['first_onset_step']} {lane['first_stage']}",
        }
        for lane in lanes
        if lane["first_onset_step"] is not None
    ]
    return [_text(verdicts, order, {"dx": 8}, "ink"), _text(stages, order, {"dx": 9, "dy": -9}, "drift")]


def _text(values: list[Row], order: list[str], place: dict[str, int], colour: str) -> dict[str, Any]:
    return {
        "data": {"values": values},
        "mark": {
            "type": "text",
            "align": "left",
            "baseline": "middle",
            "fontSize": 11,
            "color": COLOURS[colour],
            **place,
        },
        "encoding": {"x": _x("step"), "y": _y(order), "text": {"field": "text", "type": "nominal"}},
    }
