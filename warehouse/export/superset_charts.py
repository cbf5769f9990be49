"""Charts and dashboard of the Superset bundle: from the short form of bi/superset to the settings of Superset.

A chart carries its query beside its settings, so that it can be asked for its data without a browser.
"""

import json
from collections.abc import Iterable
from typing import Any
from uuid import UUID, uuid5

FORMAT = "1.0.0"
_KINDS = {
    "number": "big_number_total",
    "table": "table",
    "bar": "echarts_timeseries_bar",
    "line": "echarts_timeseries_line",
    "steps": "echarts_timeseries_step",
}
_DRAWN = ("bar", "line", "steps")
_TEXT_ROW = "ROW-0"
_ROW_LIMIT = 1_000
_DRAWN_ROW_LIMIT = 50_000
_DRAWN_SETTINGS = {
    "color_scheme": "supersetColors",
    "legendOrientation": "top",
    "legendType": "plain",
    "rich_tooltip": True,
    "show_legend": True,
    "sort_series_type": "name",
    "sort_series_ascending": True,
    "truncate_metric": True,
    "x_axis_sort_asc": True,
    "y_axis_format": "SMART_NUMBER",
}


def named_uuid(names: UUID, what: str, name: str) -> str:
    """Return the identifier of a part of a bundle; the same in every bundle of one database."""
    return str(uuid5(names, f"{what}/{name}"))


def chart_files(charts: Iterable[dict], names: UUID) -> dict[str, dict]:
    """Return the files of the charts by name.

    Args:
        charts: Charts as bi/superset/charts.yaml describes them.
        names: Namespace of the bundle's identifiers.
    """
    return {f"charts/{_file_name(chart['name'])}.yaml": _chart(chart, names) for chart in charts}


def _file_name(name: str) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def _chart(chart: dict, names: UUID) -> dict:
    params = _params(chart)
    context = {
        "datasource": {"id": 0, "type": "table"},  # Superset puts its own number there
        "force": False,
        "queries": [_query(chart, params)],
        "form_data": params,
        "result_format": "json",
        "result_type": "full",
    }
    return {
        "slice_name": chart["name"],
        "description": chart["about"],
        "viz_type": params["viz_type"],
        "params": params,
        "query_context": json.dumps(context),
        "uuid": named_uuid(names, "chart", chart["name"]),
        "version": FORMAT,
        "dataset_uuid": named_uuid(names, "dataset", chart["dataset"]),
    }


def _params(chart: dict) -> dict[str, Any]:
    kind = chart["kind"]
    params: dict[str, Any] = {
        "viz_type": _KINDS[kind],
        "adhoc_filters": [_where(chart["where"])] if "where" in chart else [],
        "row_limit": _DRAWN_ROW_LIMIT if kind in _DRAWN else _ROW_LIMIT,
    }
    metrics = [_metric(label, sql) for label, sql in chart.get("metrics", {}).items()]
    order = chart.get("order", {})
    if kind == "number":
        params |= {"metric": metrics[0], "y_axis_format": ",d"}
    elif kind in _DRAWN:
        params |= _DRAWN_SETTINGS | {"x_axis": chart["x"], "groupby": chart["series"], "metrics": metrics}
        params |= {"seriesType": "end"} if kind == "steps" else {}
    elif "columns" in chart:
        sorting = [json.dumps([column, ascending]) for column, ascending in order.items()]
        params |= {"query_mode": "raw", "all_columns": chart["columns"], "order_by_cols": sorting}
    else:
        params |= {"query_mode": "aggregate", "groupby": chart["x"], "metrics": metrics}
        first = next(iter(order))
        params |= {
            "timeseries_limit_metric": next(metric for metric in metrics if metric["label"] == first),
            "order_desc": not order[first],
        }
    if kind == "table":
        params |= {"show_cell_bars": False, "table_timestamp_format": "smart_date"}
    return params | chart.get("more", {})


def _metric(label: str, sql: str) -> dict:
    return {
        "expressionType": "SQL",
        "sqlExpression": sql,
        "label": label,
        "hasCustomLabel": True,
        "optionName": f"metric_{_file_name(label)}",
    }


def _where(sql: str) -> dict:
    return {"expressionType": "SQL", "clause": "WHERE", "sqlExpression": sql}


def _query(chart: dict, params: dict) -> dict:
    """Return the query that Superset's own page would send for a chart."""
    order = chart.get("order", {})
    metrics = [params["metric"]] if chart["kind"] == "number" else params.get("metrics", [])
    labels = {metric["label"]: metric for metric in metrics}
    columns: list = []
    if chart["kind"] in _DRAWN:
        axis = {"label": chart["x"], "sqlExpression": chart["x"], "expressionType": "SQL", "columnType": "BASE_AXIS"}
        columns = [axis, *chart["series"]]
    elif chart["kind"] == "table":
        columns = chart.get("columns") or chart["x"]
    return {
        "columns": columns,
        "metrics": metrics or None,
        "filters": [],
        "extras": {"where": f"({chart['where']})" if "where" in chart else "", "having": ""},
        "orderby": [[labels.get(name, name), ascending] for name, ascending in order.items()],
        "row_limit": params["row_limit"],
        "series_columns": chart.get("series", []) if chart["kind"] in _DRAWN else [],
        "annotation_layers": [],
        "applied_time_extras": {},
    }


def dashboard_file(board: dict, charts: list[dict], names: UUID) -> dict:
    """Return the dashboard.

    Args:
        board: The dashboard as bi/superset/dashboard.yaml describes it.
        charts: The charts of the bundle.
        names: Namespace of the bundle's identifiers.
    """
    # Superset replaces these numbers by its own at the import, wherever they stand.
    numbers = {chart["name"]: index for index, chart in enumerate(charts, start=1)}
    return {
        "dashboard_title": board["title"],
        "description": board["about"],
        "css": "",
        "slug": None,
        "uuid": named_uuid(names, "dashboard", ""),
        "position": _position(board, numbers, names),
        "metadata": {
            "color_scheme": "supersetColors",
            "label_colors": board["colours"],
            "cross_filters_enabled": True,
            "native_filter_configuration": [_filter(entry, numbers, names) for entry in board["filters"]],
            "refresh_frequency": 0,
            "timed_refresh_immune_slices": [],
            "expanded_slices": {},
        },
        "version": FORMAT,
        "published": True,
    }


def _position(board: dict, numbers: dict[str, int], names: UUID) -> dict:
    rows = [f"ROW-{index}" for index, _ in enumerate(board["rows"], start=1)]
    position: dict[str, Any] = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
        "GRID_ID": {"type": "GRID", "id": "GRID_ID", "children": [_TEXT_ROW, *rows], "parents": ["ROOT_ID"]},
        "HEADER_ID": {"type": "HEADER", "id": "HEADER_ID", "meta": {"text": board["title"]}},
    }
    position |= _text_row(board["text"])
    for row, entry in zip(rows, board["rows"], strict=True):
        places = {name: f"CHART-{numbers[name]}" for name in entry["charts"]}
        position[row] = {
            "type": "ROW",
            "id": row,
            "children": list(places.values()),
            "parents": ["ROOT_ID", "GRID_ID"],
            "meta": {"background": "BACKGROUND_TRANSPARENT"},
        }
        for name, place in places.items():
            position[place] = {
                "type": "CHART",
                "id": place,
                "children": [],
                "parents": ["ROOT_ID", "GRID_ID", row],
                "meta": {
                    "chartId": numbers[name],
                    "uuid": named_uuid(names, "chart", name),
                    "sliceName": name,
                    "width": entry["charts"][name],
                    "height": entry["height"],
                },
            }
    return position


def _text_row(text: str) -> dict[str, Any]:
    return {
        _TEXT_ROW: {
            "type": "ROW",
            "id": _TEXT_ROW,
            "children": ["MARKDOWN-0"],
            "parents": ["ROOT_ID", "GRID_ID"],
            "meta": {"background": "BACKGROUND_TRANSPARENT"},
        },
        "MARKDOWN-0": {
            "type": "MARKDOWN",
            "id": "MARKDOWN-0",
            "children": [],
            "parents": ["ROOT_ID", "GRID_ID", _TEXT_ROW],
            "meta": {"code": text, "width": 12, "height": 10},
        },
    }


def _filter(entry: dict, numbers: dict[str, int], names: UUID) -> dict:
    applies_to = entry.get("charts", list(numbers))
    is_several = entry.get("several", False)
    return {
        "id": f"NATIVE_FILTER-{_file_name(entry['name'])}",
        "name": entry["name"],
        "filterType": "filter_select",
        "type": "NATIVE_FILTER",
        "description": "",
        "targets": [
            {"datasetUuid": named_uuid(names, "dataset", entry["dataset"]), "column": {"name": entry["column"]}}
        ],
        "adhoc_filters": [_where(entry["where"])] if "where" in entry else [],
        # The charts wait until the first value is known.
        "requiredFirst": not is_several,
        "controlValues": {
            "multiSelect": is_several,
            # A curve of several pairs or metrics at once says nothing.
            "defaultToFirstItem": not is_several,
            "enableEmptyFilter": not is_several,
            "inverseSelection": False,
            "searchAllOptions": False,
            "sortAscending": True,
        },
        "defaultDataMask": {"extraFormData": {}, "filterState": {}},
        "cascadeParentIds": [],
        "scope": {
            "rootPath": ["ROOT_ID"],
            "excluded": [number for name, number in numbers.items() if name not in applies_to],
        },
    }
