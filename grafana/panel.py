"""Panels as data, and their JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any, Literal, TypeAlias

from grafana.promql import quantile, rate

Json: TypeAlias = dict[str, Any]
Kind: TypeAlias = Literal["timeseries", "stat", "table", "heatmap"]
Colour: TypeAlias = Literal["green", "yellow", "red"]

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
GRID_WIDTH = 24
"""The width of a dashboard."""

FORMATS: Mapping[Kind, str] = {"table": "table", "heatmap": "heatmap"}
"""The formats of queries, by the kind of their panel; else `time_series`."""

RUNBOOKS = "runbooks"
"""The variable that holds the address of docs/metrics.md."""

EXEMPLAR_METRICS = (
    "first_answer_seconds",
    "first_part_seconds",
    "held_seconds",
    "request_seconds",
)
"""Metrics whose buckets have exemplars that link to traces."""


@dataclass(frozen=True)
class Query:
    expr: str
    legend: str = ""
    instant: bool = False  # evaluate once, at the end of the time range shown
    exemplar: bool = False  # fetch the metric's exemplars, too


@dataclass(frozen=True)
class Column:
    """A column of a table panel."""

    title: str
    expr: str
    unit: str = "short"


@dataclass(frozen=True)
class Panel:
    title: str  # says what good values look like
    description: str
    unit: str = "short"
    queries: Sequence[Query] = ()
    kind: Kind = "timeseries"
    steps: Mapping[float, Colour] = field(default_factory=dict)  # colours by their lower threshold
    base: Colour = "green"  # below the first threshold
    width: int = 8
    height: int = 8
    stacked: bool = False
    columns: Sequence[Column] = ()  # of a table
    rows: Sequence[str] = ()  # labels that identify a table's rows
    alerts: Sequence[str] = ()  # the runbooks it links to

    def to_json(self, panel_id: int, x: int, y: int) -> Json:
        return {
            "id": panel_id,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": DATASOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "links": [runbook_link(alert) for alert in self.alerts],
            "targets": list(self._targets()),
            "fieldConfig": {"defaults": self._defaults(), "overrides": self._overrides()},
            "options": self._options(),
            "transformations": self._transformations(),
        }

    def _targets(self) -> Iterator[Json]:
        columns = [Query(column.expr, instant=True) for column in self.columns]
        for letter, query in zip(ascii_uppercase, [*self.queries, *columns], strict=False):
            yield {
                "refId": letter,
                "datasource": DATASOURCE,
                "editorMode": "code",
                "expr": query.expr,
                "legendFormat": query.legend,
                "format": FORMATS.get(self.kind, "time_series"),
                "instant": query.instant,
                "range": not query.instant,
                "exemplar": query.exemplar,
            }

    def _defaults(self) -> Json:
        steps: list[Json] = [{"value": None, "color": self.base}]
        steps += [{"value": value, "color": colour} for value, colour in self.steps.items()]
        defaults: Json = {"unit": self.unit, "thresholds": {"mode": "absolute", "steps": steps}}
        if self.kind == "timeseries":
            defaults |= {
                "min": 0,
                "custom": self._custom_options(),
                "color": {"mode": "palette-classic"},
            }
        elif self.kind == "stat":
            defaults |= {"color": {"mode": "thresholds"}}
        return defaults

    def _custom_options(self) -> Json:
        return {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 30 if self.stacked else 5,
            "showPoints": "never",
            "stacking": {"mode": "normal" if self.stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": "dashed" if self.steps else "off"},
        }

    def _overrides(self) -> list[Json]:
        return [
            {
                "matcher": {"id": "byName", "options": column.title},
                "properties": [{"id": "unit", "value": column.unit}],
            }
            for column in self.columns
        ]

    def _options(self) -> Json:
        if self.kind == "table":
            return {"showHeader": True, "cellHeight": "sm"}
        if self.kind == "stat":
            reduce_options = {"calcs": ["lastNotNull"], "fields": "", "values": False}
            return {"reduceOptions": reduce_options, "colorMode": "value", "graphMode": "none"}
        if self.kind == "heatmap":
            return {
                "calculate": False,  # the queries return buckets
                "color": {"mode": "scheme", "scheme": "Oranges", "exponent": 0.5, "steps": 64},
                "filterValues": {"le": 1e-9},  # leave empty cells blank
                "yAxis": {"unit": self.unit, "axisPlacement": "left"},
                "tooltip": {"mode": "single", "yHistogram": True},
                "legend": {"show": False},
            }
        return {
            "legend": {
                "displayMode": "table",
                "placement": "bottom",
                "showLegend": True,
                "calcs": ["mean", "max"],
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        }

    def _transformations(self) -> list[Json]:
        """Merge the results of a table's queries, and name and order the columns."""
        if not self.columns:
            return []
        column_titles = {
            f"Value #{ascii_uppercase[n]}": c.title for n, c in enumerate(self.columns)
        }
        order = {name: index for index, name in enumerate([*self.rows, *column_titles])}
        organize = {
            "excludeByName": {"Time": True},
            "indexByName": order,
            "renameByName": column_titles,
        }
        return [{"id": "merge", "options": {}}, {"id": "organize", "options": organize}]


def quantile_queries(metric: str) -> tuple[Query, ...]:
    """Return queries for the p50, p95 and p99 of a metric."""
    exemplar = metric in EXEMPLAR_METRICS
    return tuple(
        Query(quantile(q, metric), f"p{q * 100:.0f}", exemplar=exemplar) for q in (0.5, 0.95, 0.99)
    )


def rate_by(metric: str, label: str) -> Query:
    """Return the query for the rate of a counter by a label, whose values are the legend."""
    return Query(rate(metric, by=label), f"{{{{{label}}}}}")


def heatmap(title: str, description: str, metric: str, *, width: int = 8) -> Panel:
    """Return a panel on how often each delay occurred: what quantiles do not show."""
    buckets = rate(f"{metric}_bucket", by="le")
    query = Query(buckets, "{{le}}", exemplar=metric in EXEMPLAR_METRICS)
    return Panel(title, description, "s", [query], kind="heatmap", width=width)


def runbook_link(alert: str) -> Json:
    """Return a link to what to do about an alert."""
    url = f"${{{RUNBOOKS}}}#{alert.lower()}"
    return {"title": f"Runbook: {alert}", "url": url, "targetBlank": True}


def lay_out(panels: Sequence[Panel], first_id: int, y: int) -> Iterator[Json]:
    """Yield the panels' JSON, placed left to right and top to bottom, ids from `number` on."""
    x = row_height = 0
    for index, panel in enumerate(panels):
        if x + panel.width > GRID_WIDTH:
            x, y = 0, y + row_height
            row_height = 0
        yield panel.to_json(first_id + index, x, y)
        x += panel.width
        row_height = max(row_height, panel.height)
