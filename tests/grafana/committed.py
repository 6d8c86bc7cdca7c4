"""Load the committed dashboard and rules, and each expression in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry

from abridge.observability.metrics import Metrics

FOLDER = Path(__file__).resolve().parents[2] / "grafana"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "abridge.json").read_text())
RULES_FILE = FOLDER / "rules" / "abridge.yaml"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(RULES_FILE.read_text())["groups"] for rule in group["rules"]
]
TOP = DASHBOARD["panels"]
PANELS = [panel for top in TOP for panel in (top["panels"] if top["type"] == "row" else [top])]
"""All panels, those of folded rows too."""

VARIABLES: dict[str, dict[str, Any]] = {
    variable["name"]: variable for variable in DASHBOARD["templating"]["list"]
}

SERIES = re.compile(r"\b(abridge_\w+)(?:\{(.*?)\})?")
MATCHER = re.compile(r"(\w+)(?:=~|!~|!=|=)\"")
BY = re.compile(r"\bby \(([^)]*)\) \(")
TARGET = {"job", "instance"}
"""Labels that Prometheus adds to every scraped series."""


def collectors() -> dict[str, set[str]]:
    """Return the label names of each of Abridge's series."""
    registry = CollectorRegistry()
    Metrics(registry)
    return {
        name: set(collector._labelnames) | ({"le"} if name.endswith("_bucket") else set())  # type: ignore[attr-defined]
        for name, collector in registry._names_to_collectors.items()
        if not name.endswith("_created")
    }


LABELS = collectors()


@dataclass(frozen=True)
class Expression:
    """An expression of a panel or rule; `place` names it."""

    place: str
    text: str

    def series(self) -> Iterator[tuple[str, set[str]]]:
        """Yield each metric in it and the labels that select its series."""
        yield from _series(self.text)

    def grouped(self) -> Iterator[tuple[str, set[str]]]:
        """Yield each metric that is aggregated and the labels it is grouped by."""
        for by in BY.finditer(self.text):
            labels = set(by[1].split(", "))
            for metric, _ in _series(_inside(self.text, by.end())):
                yield metric, labels


def panels() -> list[Expression]:
    return [
        Expression(f"{panel['title']} [{target['refId']}]", target["expr"])
        for panel in PANELS
        for target in panel["targets"]
    ]


def rules() -> list[Expression]:
    return [Expression(rule.get("record") or rule["alert"], rule["expr"]) for rule in RULES]


def annotations() -> list[Expression]:
    return [
        Expression(annotation["name"], annotation["expr"])
        for annotation in DASHBOARD["annotations"]["list"]
    ]


def all_expressions() -> list[Expression]:
    queries = [
        Expression(f"${name}", variable["definition"])
        for name, variable in VARIABLES.items()
        if variable["type"] == "query"
    ]
    return [*panels(), *rules(), *annotations(), *queries]


def _series(text: str) -> Iterator[tuple[str, set[str]]]:
    for found in SERIES.finditer(text):
        yield found[1], set(MATCHER.findall(found[2] or ""))


def _inside(text: str, start: int) -> str:
    """Return the text from `start` to the closing parenthesis."""
    depth = 1
    for end in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if not depth:
            return text[start:end]
    raise ValueError("a parenthesis is open")
