"""The dashboard: its variables and its rows."""

from __future__ import annotations

from collections.abc import Iterator

from grafana.panel import DATASOURCE, RUNBOOKS, Json, lay_out
from grafana.promql import series
from grafana.rows import ROWS

SCHEMA_VERSION = 39
"""The schema of Grafana 10 and 11; newer releases migrate it."""

DESCRIPTION = (
    "What people get of Abridge's summaries, what these cost, and whether all is well. Each "
    "panel's title says what good looks like, its description what to do where it is not so."
)


def build_dashboard() -> Json:
    return {
        "uid": "abridge",
        "title": "Abridge",
        "description": DESCRIPTION,
        "tags": ["abridge", "llm"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": VARIABLES},
        "annotations": {"list": ANNOTATIONS},
        "links": [DOCUMENTATION],
        "panels": list(_build_panels()),
    }


def _build_panels() -> Iterator[Json]:
    """Yield the rows, the first with its panels below it, the others folded over theirs."""
    number, y = 1, 0
    for title, panels in ROWS.items():
        shown = [*lay_out(panels, number + 1, y + 1)]
        is_first = number == 1
        yield _row(title, number, y, [] if is_first else shown)
        yield from shown if is_first else ()
        number += 1 + len(shown)
        y = (
            max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in shown)
            if is_first
            else y + 1
        )


def _row(title: str, number: int, y: int, folded: list[Json]) -> Json:
    return {
        "id": number,
        "type": "row",
        "title": title,
        "collapsed": bool(folded),
        "gridPos": {"x": 0, "y": y, "w": 24, "h": 1},
        "panels": folded,
    }


def _query_variable(name: str, label: str, metric: str, text: str = "") -> Json:
    """Return a variable that offers the values of a label; several may be chosen."""
    query = f"label_values({metric}, {name})"
    return {
        "type": "query",
        "name": name,
        "label": label,
        "description": text,
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"qryType": 1, "query": query, "refId": f"Variable-{name}"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def _text_variable(name: str, label: str, text: str, default: str) -> Json:
    return {
        "type": "textbox",
        "name": name,
        "label": label,
        "description": text,
        "query": default,
        "current": {"text": default, "value": default},
    }


def _price_variable(name: str, label: str) -> Json:
    """Return a text box for a price, 0 until the user enters one."""
    return _text_variable(name, label, "For a million tokens.", "0")


def _annotation(name: str, colour: str, expr: str, **fields: Json | str | bool) -> Json:
    """Return vertical lines where an expression has a value."""
    return {
        "name": name,
        "datasource": DATASOURCE,
        "enable": True,
        "iconColor": colour,
        "expr": expr,
        "titleFormat": name,
        **fields,
    }


STYLE_DESCRIPTION = (
    "Chooses among summaries, their tokens and seconds held. Requests and their models have none."
)

VARIABLES = [
    {
        "type": "datasource",
        "name": "datasource",
        "label": "Data source",
        "query": "prometheus",
        "current": {},
    },
    _query_variable("job", "Job", "abridge_upstream_info"),
    _query_variable("instance", "Instance", 'abridge_upstream_info{job=~"$job"}'),
    _query_variable("upstream", "Upstream", 'abridge_requests_total{job=~"$job"}'),
    _query_variable("model", "Model", 'abridge_requests_total{job=~"$job", upstream=~"$upstream"}'),
    _query_variable("style", "Style", 'abridge_summaries_total{job=~"$job"}', STYLE_DESCRIPTION),
    _price_variable("model_input", "Price of model input"),
    _price_variable("model_output", "Price of model output"),
    _price_variable("summary_input", "Price of summarizer input"),
    _price_variable("summary_output", "Price of summarizer output"),
    _text_variable(
        RUNBOOKS,
        "Runbooks",
        "The address at which you keep docs/metrics.md.",
        "https://git.example/abridge/docs/metrics.md",
    ),
]

DOCUMENTATION = {
    "type": "link",
    "title": "Metrics and alerts",
    "tooltip": "What each metric means, and what to do about each alert.",
    "icon": "doc",
    "url": f"${{{RUNBOOKS}}}",
    "targetBlank": True,
}

_BUILDS = series("build_info")

ANNOTATIONS = [
    _annotation(
        "Process started",
        "blue",
        f"{series('start_time_seconds')} * 1000",
        textFormat="{{instance}}",
        useValueForTime=True,
    ),
    _annotation(
        "New version",
        "purple",
        f"count by (version) ({_BUILDS}) unless count by (version) ({_BUILDS} offset 10m)",
        textFormat="{{version}}",
    ),
]
