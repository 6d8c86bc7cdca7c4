"""Test docs/metrics.md: all metrics and alerts are there, and everything that it names exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from prometheus_client import CollectorRegistry

import abridge
from abridge.config.settings import Settings
from abridge.config.upstreams import UpstreamSettings
from abridge.observability.metrics import Metrics
from tests.grafana.committed import FOLDER, PANELS, RULES

PAGE = (FOLDER.parent / "docs" / "metrics.md").read_text()
ALERTS = [rule["alert"] for rule in RULES if "alert" in rule]
RUNBOOKS = PAGE.partition("\n## Alerts\n")[2]
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| ?([\w, ]*?) ?\| (.+) \|$", re.MULTILINE)


class Metric(NamedTuple):
    name: str
    kind: str
    labels: str
    meaning: str


def _registered() -> list[Metric]:
    registry = CollectorRegistry()
    return [
        Metric(
            collector._name + ("_total" if collector._type == "counter" else ""),
            collector._type,
            ", ".join(collector._labelnames),
            collector._documentation,
        )
        for collector in vars(Metrics(registry)).values()
    ]


ROWS = {found[1]: Metric(*found.groups()) for found in ROW.finditer(PAGE)}


def test_a_metric_is_listed_with_its_labels_and_help() -> None:
    for metric in _registered():
        row = ROWS[metric.name]
        assert row[:3] == metric[:3]
        assert row.meaning.startswith(metric.meaning), metric.name


def test_no_other_metric_is_listed() -> None:
    assert ROWS.keys() == {metric.name for metric in _registered()}


def test_each_alert_has_a_runbook_and_no_other_does() -> None:
    assert re.findall(r"^### (\w+)$", RUNBOOKS, re.MULTILINE) == ALERTS


def test_every_alert_that_a_runbook_names_exists() -> None:
    named = re.findall(r"\bAbridge[A-Z]\w+", RUNBOOKS)
    assert set(named) == set(ALERTS)
    assert set(re.findall(r"\(#(abridge\w+)\)", RUNBOOKS)) <= {name.lower() for name in ALERTS}


def test_every_panel_that_a_runbook_names_exists() -> None:
    named = re.findall(r"`([A-Z][a-zA-Z ]+)`", RUNBOOKS)
    titles = [panel["title"] for panel in PANELS]
    assert named
    assert [name for name in named if not any(each.startswith(name) for each in titles)] == []


def test_every_setting_that_the_page_names_exists() -> None:
    tables = Settings().model_dump() | {"upstreams": UpstreamSettings.model_fields}
    named = re.findall(r"`([a-z]+)\.([a-z_]+)(?: = [^`]*)?`", PAGE)
    assert named
    assert [name for name in named if name[1] not in tables.get(name[0], ())] == []


def test_every_log_line_that_a_runbook_names_exists() -> None:
    code = "".join(file.read_text() for file in Path(abridge.__file__).parent.rglob("*.py"))
    lines = re.findall(r"`((?:summarizer|review|upstream|store)\b [^`]*)`", RUNBOOKS)
    assert lines
    for line in lines:
        assert f'"{re.sub("…|NAME", "%s", line)}' in code, line
