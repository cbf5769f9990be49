"""Charts as inline SVG: Vega-Lite specifications, drawn once, coloured by the variables of the page's style sheet.

A drawing needs no script, prints as it stands and follows the light and dark scheme of the page.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from warehouse.report.data import Row, Series
from warehouse.report.sampling import Floats, envelope, kept_indices, segments

BUCKETS = 150
_SPARK_BUCKETS = 30
_WIDTH = 400

# Stand-ins that no chart library would choose; each becomes a variable of the style sheet.
COLOURS = {
    "ink": "#0a0b01",
    "faint": "#0a0b02",
    "baseline": "#0a0b03",
    "candidate": "#0a0b04",
    "band": "#0a0b05",
    "drift": "#0a0b06",
    "decouple": "#0a0b07",
    "first-diff": "#0a0b08",
    "reference": "#0a0b09",
}
# Plain numbers where they are short, powers of ten otherwise; d3 alone writes 10 as 1e+1.
_TICK_TEXT = (
    "datum.value != 0 && (abs(datum.value) >= 1e5 || abs(datum.value) < 1e-3)"
    " ? format(datum.value, '.2~e') : format(datum.value, '.6~r')"
)
_STEP_AXIS = {"format": "d", "tickCount": 5, "tickMinStep": 1, "labelSeparation": 8}
_CONFIG = {
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "gridColor": COLOURS["faint"],
        "gridOpacity": 0.5,
        "domainColor": COLOURS["faint"],
        "tickColor": COLOURS["faint"],
        "labelColor": COLOURS["ink"],
        "labelFontSize": 11,
        "title": None,
    },
}


def vega_svg(spec: dict[str, Any]) -> str:
    """Return a Vega-Lite specification as SVG in which the colours are stand-ins."""
    import vl_convert

    return vl_convert.vegalite_to_svg(json.dumps({"background": None, "config": _CONFIG, **spec}))


def draw(spec: dict[str, Any]) -> str:
    """Return a Vega-Lite specification as SVG for a page, with the style sheet's colours."""
    svg = vega_svg(spec)
    for name, stand_in in COLOURS.items():
        svg = svg.replace(stand_in, f"var(--{name})")
    return svg.replace("<svg ", '<svg role="img" ', 1)


def metric_chart(series: Series, band: tuple[Floats, Floats], metric: Row, restarts: Sequence[int]) -> str:
    """Return the curves of a metric with the noise of equal runs, and below them the difference.

    Args:
        series: Both runs.
        band: Edges of where an equal run would lie; two arrays like `series.steps`.
        metric: Its onsets: drift, onset_step_low, onset_step_high, decouple.
        restarts: Steps at which an attempt began.
    """
    has_sigma = bool(np.isfinite(series.standardised).any())
    lower = series.standardised if has_sigma else series.delta
    marks = _onset_marks(metric, restarts)
    upper_layers = [*marks, _band_layer(series, band), *_line_layers(series), *_broken_layers(series)]
    lower_layers = [*marks, *([_sigma_layer(series)] if has_sigma else []), _line(series, lower, "candidate", 1.2)]
    x_domain = [int(series.steps[0]), int(series.steps[-1])]
    return draw(
        {
            "vconcat": [
                {"width": _WIDTH, "height": 140, "layer": [_with_x(layer, x_domain, False) for layer in upper_layers]},
                {"width": _WIDTH, "height": 60, "layer": [_with_x(layer, x_domain, True) for layer in lower_layers]},
            ],
            "spacing": 12,
            "resolve": {"scale": {"x": "shared"}},
        }
    )


def _with_x(layer: dict[str, Any], domain: list[int], has_labels: bool) -> dict[str, Any]:
    axis = {**_STEP_AXIS, "labels": has_labels, "ticks": has_labels}
    x = {"field": "x", "type": "quantitative", "scale": {"domain": domain, "nice": False}, "axis": axis, "title": None}
    encoding = {"x": x, **layer["encoding"]}
    encoding["x"] = {**x, **layer["encoding"].get("x", {})}
    return {**layer, "encoding": encoding}


def _y(field: str = "y") -> dict[str, Any]:
    axis = {"tickCount": 4, "minExtent": 46, "maxExtent": 46, "labelExpr": _TICK_TEXT, "labelLimit": 44}
    return {"field": field, "type": "quantitative", "scale": {"zero": False}, "axis": axis, "title": None}


def _number(value: np.floating | float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


def _line(series: Series, values: Floats, colour: str, width: float) -> dict[str, Any]:
    # A step that was not logged interrupts nothing: some metrics are logged every tenth step.
    logged = np.flatnonzero(np.isfinite(values) | series.candidate_broken | series.baseline_broken)
    kept = logged[kept_indices(values[logged], BUCKETS)]
    points = [{"x": int(series.steps[i]), "y": _number(float(values[i]))} for i in kept.tolist()]
    point = {"size": 12, "filled": True, "color": COLOURS[colour]} if len(points) <= 20 else False
    return {
        "data": {"values": points},
        "mark": {"type": "line", "color": COLOURS[colour], "strokeWidth": width, "point": point},
        "encoding": {"y": _y()},
    }


def _line_layers(series: Series) -> list[dict[str, Any]]:
    return [_line(series, series.baseline, "baseline", 1.4), _line(series, series.candidate, "candidate", 1.4)]


def _band_layer(series: Series, band: tuple[Floats, Floats]) -> dict[str, Any]:
    points = [
        {"x": int(series.steps[i]), "low": _number(low), "high": _number(high)}
        for i, low, high in envelope(*band, BUCKETS)
    ]
    return {
        "data": {"values": points},
        "mark": {"type": "area", "color": COLOURS["band"], "opacity": 0.35},
        "encoding": {"y": _y("low"), "y2": {"field": "high"}},
    }


def _sigma_layer(series: Series) -> dict[str, Any]:
    ends = {"x": int(series.steps[0]), "end": int(series.steps[-1]), "low": -2, "high": 2}
    return {
        "data": {"values": [ends]},
        "mark": {"type": "rect", "color": COLOURS["band"], "opacity": 0.35},
        "encoding": {"x2": {"field": "end"}, "y": _y("low"), "y2": {"field": "high"}},
    }


def _broken_layers(series: Series) -> list[dict[str, Any]]:
    """Return a bar on the axis over every stretch of steps that are not finite, and a cross at its beginning."""
    layers = []
    for run, is_broken in (("baseline", series.baseline_broken), ("candidate", series.candidate_broken)):
        stretches = [{"x": first, "end": last} for first, last in segments(series.steps, is_broken)]
        if not stretches:
            continue
        height = {"value": 137 if run == "candidate" else 131}
        layers += [
            {
                "data": {"values": stretches},
                "mark": {"type": "rule", "color": COLOURS[run], "strokeWidth": 4},
                "encoding": {"x2": {"field": "end"}, "y": height},
            },
            {
                "data": {"values": stretches},
                "mark": {"type": "point", "shape": "cross", "angle": 45, "size": 45, "color": COLOURS[run]},
                "encoding": {"y": height},
            },
        ]
    return layers


def _onset_marks(metric: Row, restarts: Sequence[int]) -> list[dict[str, Any]]:
    layers: list[dict[str, Any]] = []
    if metric["drift"] is not None:
        low, high = metric["onset_step_low"], metric["onset_step_high"]
        if low is not None and high is not None:
            layers.append(
                {
                    "data": {"values": [{"x": low, "end": high}]},
                    "mark": {"type": "rect", "color": COLOURS["drift"], "opacity": 0.18},
                    "encoding": {"x2": {"field": "end"}},
                }
            )
        layers.append(_rule([metric["drift"]], "drift", [], 1.6))
    if metric["decouple"] is not None:
        layers.append(_rule([metric["decouple"]], "decouple", [5, 3], 1.2))
    if restarts:
        layers.append(_rule(restarts, "ink", [1, 3], 1.2))
    return layers


def _rule(steps: Sequence[int], colour: str, dash: list[int], width: float) -> dict[str, Any]:
    return {
        "data": {"values": [{"x": step} for step in steps]},
        "mark": {"type": "rule", "color": COLOURS[colour], "strokeDash": dash, "strokeWidth": width},
        "encoding": {},
    }


def timeline_chart(onsets: list[Row], reference: dict[str, float], language: str) -> str:
    """Return the onsets of all categories on one axis of steps.

    Args:
        onsets: Earliest onset by category and kind, with its interval, or the last step where there is none.
        reference: By category, the median step at which equal runs decouple.
        language: "en" or "zh", for the names of the categories.
    """
    label = f"label_{language}"
    order = list(dict.fromkeys(row[label] for row in onsets))
    names = {row["category"]: row[label] for row in onsets}
    last = max((row["last_step"] or 0 for row in onsets), default=0)
    layers: list[dict[str, Any]] = []
    for kind, colour, shift in (("first_diff", "first-diff", -6), ("decouple", "decouple", 0), ("drift", "drift", 6)):
        found = [row for row in onsets if row["onset_kind"] == kind]
        moved = [
            {
                "name": row[label],
                "x": row["onset_step"],
                "low": row["onset_step"] if row["low"] is None else row["low"],
                "high": row["onset_step"] if row["high"] is None else row["high"],
            }
            for row in found
            if row["onset_step"] is not None
        ]
        layers += _timeline_layers(moved, colour, shift, order, kind)
        if kind == "drift":
            stayed = [{"name": row[label], "x": last} for row in found if row["onset_step"] is None]
            layers.append(_timeline_marks(stayed, colour, shift, order, {"shape": "triangle-right", "filled": False}))
    ticks = [{"name": names[c], "x": step} for c, step in sorted(reference.items()) if c in names]
    layers.append(_timeline_marks(ticks, "reference", 0, order, {"shape": "stroke", "angle": 90, "size": 160}))
    return draw({"width": 250, "height": {"step": 26}, "layer": layers})


def _timeline_layers(moved: list[Row], colour: str, shift: int, order: list[str], kind: str) -> list[dict[str, Any]]:
    x = {"field": "low", "type": "quantitative", "title": None}
    bars = {
        "data": {"values": moved},
        "mark": {"type": "rule", "color": COLOURS[colour], "strokeWidth": 4, "opacity": 0.45, "yOffset": shift},
        "encoding": {"x": x, "x2": {"field": "high"}, "y": _rows(order)},
    }
    shape = {"first_diff": "diamond", "decouple": "square", "drift": "circle"}[kind]
    return [bars, _timeline_marks(moved, colour, shift, order, {"shape": shape, "filled": True})]


def _timeline_marks(
    values: list[Row], colour: str, shift: int, order: list[str], style: dict[str, Any]
) -> dict[str, Any]:
    return {
        "data": {"values": values},
        "mark": {"type": "point", "color": COLOURS[colour], "size": 55, "opacity": 1, "yOffset": shift, **style},
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "title": None, "axis": _STEP_AXIS},
            "y": _rows(order),
        },
    }


def _rows(order: list[str]) -> dict[str, Any]:
    axis = {"labelLimit": 130, "grid": True, "ticks": False, "domain": False}
    return {"field": "name", "type": "nominal", "sort": order, "scale": {"domain": order}, "title": None, "axis": axis}


def survival_chart(curves: list[Row]) -> str:
    """Return Kaplan-Meier curves, one line a group.

    Args:
        curves: Rows of group, step and share of pairs that have not drifted up to the step; a group has a line for
            each name it goes under.
    """
    groups = list(dict.fromkeys(row["group"] for row in curves))
    palette = ["baseline", "candidate", "drift", "decouple", "first-diff", "reference", "ink"]
    colours = [COLOURS[palette[i % len(palette)]] for i in range(len(groups))]
    return draw(
        {
            "width": _WIDTH,
            "height": 180,
            "data": {"values": [{"x": r["step"], "y": r["share"], "group": r["group"]} for r in curves]},
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
            "encoding": {
                "x": {"field": "x", "type": "quantitative", "title": None, "axis": _STEP_AXIS},
                "y": {
                    "field": "y",
                    "type": "quantitative",
                    "title": None,
                    "scale": {"domain": [0, 1]},
                    "axis": {"format": "%", "tickCount": 4},
                },
                "color": {
                    "field": "group",
                    "type": "nominal",
                    "scale": {"domain": groups, "range": colours},
                    "legend": {
                        "orient": "bottom",
                        "columns": 1,
                        "title": None,
                        "labelExpr": "split(datum.label, '\\n')",
                        "labelLimit": 380,
                        "labelFontSize": 12,
                        "labelColor": COLOURS["ink"],
                    },
                },
            },
        }
    )


def sparkline(series: Series) -> str:
    """Return both curves as a drawing the size of a table cell; extremes and broken steps are kept."""
    finite = np.concatenate([series.baseline, series.candidate])
    finite = finite[np.isfinite(finite)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    span = (high - low) or 1.0
    first, length = int(series.steps[0]), max(int(series.steps[-1] - series.steps[0]), 1)
    parts = []
    for run, values in (("baseline", series.baseline), ("candidate", series.candidate)):
        logged = np.flatnonzero(np.isfinite(values))
        kept = logged[kept_indices(values[logged], _SPARK_BUCKETS)] if len(logged) else []
        points = " ".join(
            f"{(series.steps[i] - first) / length * 118 + 1:.0f},{25 - (values[i] - low) / span * 22:.1f}" for i in kept
        )
        parts.append(f'<polyline points="{points}" style="stroke:var(--{run})"/>')
    for start, end in segments(series.steps, series.baseline_broken | series.candidate_broken):
        x, width = (start - first) / length * 118 + 1, max((end - start) / length * 118, 2)
        parts.append(f'<rect x="{x:.0f}" y="26" width="{width:.0f}" height="2" style="fill:var(--drift)"/>')
    return f'<svg class="spark" viewBox="0 0 120 28" aria-hidden="true">{"".join(parts)}</svg>'
