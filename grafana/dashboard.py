"""The dashboard: its variables and its rows."""

from __future__ import annotations

from grafana.panel import SOURCE, Json, laid_out
from grafana.rows import ROWS

SCHEMA = 39
"""The schema of Grafana 10 and 11; newer releases migrate it."""

TEXT = (
    "What people get of Abridge's summaries, what these cost, and whether all is well. Each "
    "panel's title says what good looks like, its description what to do where it is not so."
)


def dashboard() -> Json:
    return {
        "uid": "abridge",
        "title": "Abridge",
        "description": TEXT,
        "tags": ["abridge", "llm"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": VARIABLES},
        "annotations": {"list": []},
        "links": [],
        "panels": list(_panels()),
    }


def _panels() -> list[Json]:
    made: list[Json] = []
    for title, panels in ROWS.items():
        y = max((one["gridPos"]["y"] + one["gridPos"]["h"] for one in made), default=0)
        number = len(made) + 1
        made.append(_row(title, number, y))
        made += laid_out(panels, number + 1, y + 1)
    return made


def _row(title: str, number: int, y: int) -> Json:
    return {
        "id": number,
        "type": "row",
        "title": title,
        "collapsed": False,
        "gridPos": {"x": 0, "y": y, "w": 24, "h": 1},
        "panels": [],
    }


def _chosen(name: str, label: str, metric: str, text: str = "") -> Json:
    """Return a variable that offers the values of a label; several may be chosen."""
    query = f"label_values({metric}, {name})"
    return {
        "type": "query",
        "name": name,
        "label": label,
        "description": text,
        "datasource": SOURCE,
        "definition": query,
        "query": {"qryType": 1, "query": query, "refId": f"Variable-{name}"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def _price(name: str, label: str) -> Json:
    """Return a text box for a price, 0 until the user enters one."""
    return {
        "type": "textbox",
        "name": name,
        "label": label,
        "description": "For a million tokens.",
        "query": "0",
        "current": {"text": "0", "value": "0"},
    }


STYLES = (
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
    _chosen("job", "Job", "abridge_build_info"),
    _chosen("upstream", "Upstream", 'abridge_requests_total{job=~"$job"}'),
    _chosen("model", "Model", 'abridge_requests_total{job=~"$job", upstream=~"$upstream"}'),
    _chosen("style", "Style", 'abridge_summaries_total{job=~"$job"}', STYLES),
    _price("model_input", "Price of model input"),
    _price("model_output", "Price of model output"),
    _price("summary_input", "Price of summarizer input"),
    _price("summary_output", "Price of summarizer output"),
]
