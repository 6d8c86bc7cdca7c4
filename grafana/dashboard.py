"""The dashboard: its variables and its rows."""

from __future__ import annotations

from grafana.panel import DATASOURCE, Json, lay_out
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
        "annotations": {"list": []},
        "links": [],
        "panels": list(_build_panels()),
    }


def _build_panels() -> list[Json]:
    result: list[Json] = []
    for title, panels in ROWS.items():
        y = max((one["gridPos"]["y"] + one["gridPos"]["h"] for one in result), default=0)
        number = len(result) + 1
        result.append(_row(title, number, y))
        result += lay_out(panels, number + 1, y + 1)
    return result


def _row(title: str, number: int, y: int) -> Json:
    return {
        "id": number,
        "type": "row",
        "title": title,
        "collapsed": False,
        "gridPos": {"x": 0, "y": y, "w": 24, "h": 1},
        "panels": [],
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


def _price_variable(name: str, label: str) -> Json:
    """Return a text box for a price, 0 until the user enters one."""
    return {
        "type": "textbox",
        "name": name,
        "label": label,
        "description": "For a million tokens.",
        "query": "0",
        "current": {"text": "0", "value": "0"},
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
    _query_variable("job", "Job", "abridge_build_info"),
    _query_variable("upstream", "Upstream", 'abridge_requests_total{job=~"$job"}'),
    _query_variable("model", "Model", 'abridge_requests_total{job=~"$job", upstream=~"$upstream"}'),
    _query_variable("style", "Style", 'abridge_summaries_total{job=~"$job"}', STYLE_DESCRIPTION),
    _price_variable("model_input", "Price of model input"),
    _price_variable("model_output", "Price of model output"),
    _price_variable("summary_input", "Price of summarizer input"),
    _price_variable("summary_output", "Price of summarizer output"),
]
