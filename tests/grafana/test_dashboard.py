"""Test the committed dashboard: up to date, valid for Grafana, querying existing metrics."""

from __future__ import annotations

import importlib
import json
import re
import warnings
from collections.abc import Iterator
from enum import Enum
from typing import Any, get_args, get_type_hints

import pytest

from abridge import Settings
from abridge.apis.token_counters import CHARS_PER_TOKEN
from grafana.dashboard import build_dashboard
from grafana.promql import FILTERS
from grafana.rows import users
from tests.grafana.committed import (
    DASHBOARD,
    FOLDER,
    LABELS,
    PANELS,
    RULES,
    TARGET,
    TOP,
    VARIABLES,
    Expression,
    all_expressions,
    panels,
)
from tests.quality.run import PACE

CHOOSE = {"job", "instance", "upstream", "model", "style"}
BUILT_IN = {"__rate_interval", "__range", "__all"}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


ROWS = [each for each in TOP if each["type"] == "row"]

FAMILIES = {name for name in LABELS if not re.search(r"_(bucket|count|sum|total|info)$", name)}


def thresholds(panel: dict[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    return steps


def test_the_committed_dashboard_is_up_to_date() -> None:
    assert build_dashboard() == DASHBOARD, "python -m grafana > grafana/abridge.json"


class TestPanels:
    def test_each_panel_has_a_title_and_a_description(self) -> None:
        for panel in PANELS:
            assert ": " in panel["title"], "what good looks like"
            assert panel["description"].endswith("."), panel["title"]
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
            edges = [edge["value"] for edge in thresholds(panel)]
            assert edges[0] is None, panel["title"]
            assert edges[1:] == sorted(edges[1:]), panel["title"]
            references = [target["refId"] for target in panel["targets"]]
            assert references, panel["title"]
            assert len(set(references)) == len(references), panel["title"]

    def test_is_green_within_the_bound_of_its_title(self) -> None:
        for panel in PANELS:
            bound = re.search(r": .*\b(within|below|above)\b\D* ([\d.]+) (s|ms|%)$", panel["title"])
            steps = thresholds(panel)
            if bound is None or len(steps) == 1:
                continue
            limit = float(bound[2]) / {"s": 1, "ms": 1000, "%": 100}[bound[3]]
            green = [step["color"] for step in steps].index("green")
            edge = steps[green] if bound[1] == "above" else steps[green + 1]
            assert edge["value"] == pytest.approx(limit), panel["title"]

    def test_a_first_summary_at_a_usual_pace_is_green(self) -> None:
        seconds = Settings().summary.part_chars / CHARS_PER_TOKEN / PACE
        assert 1.5 * seconds < users.SOON < users.LATE

    def test_titles_and_ids_are_unique(self) -> None:
        for key in ("id", "title"):
            found = [panel[key] for panel in (*ROWS, *PANELS)]
            assert len(set(found)) == len(found)

    def test_the_first_row_is_open_and_the_others_are_folded(self) -> None:
        assert [row["collapsed"] for row in ROWS] == [False] + [True] * (len(ROWS) - 1)
        assert all(bool(row["panels"]) == row["collapsed"] for row in ROWS)

    @pytest.mark.parametrize("shown", [TOP, *(row["panels"] for row in ROWS[1:])])
    def test_no_panel_overlaps_another(self, shown: list[dict[str, Any]]) -> None:
        occupied: set[tuple[int, int]] = set()
        for panel in shown:
            at = panel["gridPos"]
            assert at["x"] + at["w"] <= 24
            cells = {
                (x, y)
                for x in range(at["x"], at["x"] + at["w"])
                for y in range(at["y"], at["y"] + at["h"])
            }
            assert not cells & occupied
            occupied |= cells

    def test_each_alert_has_a_panel_that_links_to_its_runbook(self) -> None:
        alerts = {rule["alert"].lower() for rule in RULES if "alert" in rule}
        linked = [link["url"].partition("#") for panel in PANELS for link in panel["links"]]
        assert {page for page, _, _ in linked} == {"${runbooks}"}
        assert {anchor for _, _, anchor in linked} == alerts

    def test_the_distribution_of_every_delay_is_shown(self) -> None:
        shown = [panel for panel in PANELS if panel["type"] == "heatmap"]
        queries = [target["expr"] for panel in shown for target in panel["targets"]]
        for delay in ("first_part", "first_answer", "held", "request", "upstream", "summarizer"):
            assert any(f"abridge_{delay}_seconds_bucket" in query for query in queries)
        assert all("by (le)" in query for query in queries)

    def test_panels_show_the_exemplars_of_their_metrics(self) -> None:
        pages = "\n".join(page.read_text() for page in FOLDER.parent.glob("docs/*.md"))
        documented = re.findall(r"((?:`\w+_seconds`(?:, | and )?)+) have exemplars", pages)
        assert documented
        with_exemplars = {
            re.sub(r"abridge_(\w+)_bucket", r"\1", metric)
            for panel in PANELS
            for target in panel["targets"]
            if target["exemplar"]
            for metric, _ in Expression(panel["title"], target["expr"]).series()
        }
        assert all(with_exemplars == set(re.findall(r"\w+_seconds", text)) for text in documented)

    def test_every_query_uses_the_chosen_data_source(self) -> None:
        sources = [found for found in _every("datasource", DASHBOARD) if found != SOURCE]
        assert not sources


class TestVariables:
    def test_the_variables_in_use_are_those_defined(self) -> None:
        named = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD))) - BUILT_IN
        assert named == set(VARIABLES)

    def test_a_variable_filters_every_metric_with_its_label(self) -> None:
        """Otherwise a ratio would divide one style's tokens by those of all styles."""
        for expression in panels():
            metrics = [metric for metric, _ in expression.series()]
            common = set.intersection(*(LABELS[metric] for metric in metrics)) | TARGET
            for _, labels in expression.series():
                assert labels & CHOOSE == common & CHOOSE, expression
        stated = {f"abridge_{metric}" for metrics in FILTERS.values() for metric in metrics}
        assert stated <= set(LABELS)


class TestMetrics:
    def test_every_queried_metric_exists_with_its_labels(self) -> None:
        for expression in all_expressions():
            for metric, labels in (*expression.series(), *expression.grouped()):
                assert metric in LABELS, expression.place
                assert labels <= LABELS[metric] | TARGET, expression.place

    def test_every_metric_is_queried(self) -> None:
        queried = {metric for each in all_expressions() for metric, _ in each.series()}
        families = {re.sub(r"_(bucket|count|sum|total|info)$", "", metric) for metric in queried}
        assert {name for name in FAMILIES if name not in families | queried} == set()


def _every(key: str, tree: Any) -> Iterator[Any]:
    """Yield every value of a key, at any depth."""
    if isinstance(tree, dict):
        yield from (tree[key],) if key in tree else ()
        for value in tree.values():
            yield from _every(key, value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _every(key, value)


@pytest.fixture(scope="module")
def known() -> Any:
    """Return the dashboard as grafana-foundation-sdk reads it."""
    pytest.importorskip("grafana_foundation_sdk")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it would have the next schema
        models = importlib.import_module("grafana_foundation_sdk.models.dashboard")
        importlib.import_module("grafana_foundation_sdk.cog.plugins").register_default_plugins()
    return models.Dashboard.from_json(DASHBOARD)


class TestGrafana:
    """Check against grafana-foundation-sdk, whose types are generated from Grafana's schemas."""

    def test_every_field_is_known(self, known: Any) -> None:
        encoder = importlib.import_module("grafana_foundation_sdk.cog.encoder").JSONEncoder
        assert _lost(DASHBOARD, json.loads(encoder().encode(known))) == []

    def test_every_enumerated_value_is_known(self, known: Any) -> None:
        assert [*_odd(known, "")] == []


def _lost(committed: Any, stored: Any, path: str = "") -> list[str]:
    """Yield the paths of values that the library does not keep."""
    if isinstance(committed, dict) and isinstance(stored, dict):
        return [
            place
            for key, value in committed.items()
            for place in _lost(value, stored.get(key), f"{path}.{key}")
        ]
    if isinstance(committed, list) and isinstance(stored, list) and len(committed) == len(stored):
        return [
            place
            for number, pair in enumerate(zip(committed, stored, strict=True))
            for place in _lost(*pair, f"{path}[{number}]")
        ]
    return [] if committed == stored else [path]


def _odd(model: Any, path: str) -> Iterator[str]:
    """Yield the paths of values that their type does not allow."""
    if isinstance(model, list):
        for number, each in enumerate(model):
            yield from _odd(each, f"{path}[{number}]")
    elif isinstance(model, dict):
        for key, each in model.items():
            yield from _odd(each, f"{path}.{key}")
    elif hasattr(model, "to_json"):
        hints = get_type_hints(type(model))
        for name, value in vars(model).items():
            kinds = [hints[name], *get_args(hints[name])]
            enums = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum)]
            if enums and value is not None and value not in [each.value for each in enums[0]]:
                yield f"{path}.{name}: {value}"
            yield from _odd(value, f"{path}.{name}")
