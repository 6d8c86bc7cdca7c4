"""The committed dashboard: that it is what the code makes, that Grafana knows all that is in it,
and that it asks for metrics that there are."""

from __future__ import annotations

import importlib
import json
import re
import warnings
from collections.abc import Iterator
from enum import Enum
from typing import Any, get_args, get_type_hints

import pytest

from grafana.dashboard import build_dashboard
from grafana.promql import FILTERS
from tests.grafana.committed import (
    DASHBOARD,
    FOLDER,
    LABELS,
    PANELS,
    TARGET,
    VARIABLES,
    Expression,
    everything,
    panels,
    rules,
)

CHOOSE = {"job", "upstream", "model", "style"}
BUILT_IN = {"__rate_interval", "__range", "__all"}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


FAMILIES = {name for name in LABELS if not re.search(r"_(bucket|count|sum|total|info)$", name)}


def test_it_is_what_the_code_makes() -> None:
    assert build_dashboard() == DASHBOARD, "python -m grafana > grafana/abridge.json"


class TestPanels:
    @pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
    def test_each_says_what_it_shows(self, panel: dict[str, Any]) -> None:
        assert ": " in panel["title"], "what good looks like"
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert steps[0]["value"] is None
        assert [step["value"] for step in steps[1:]] == sorted(step["value"] for step in steps[1:])
        references = [target["refId"] for target in panel["targets"]]
        assert references
        assert len(set(references)) == len(references)

    def test_titles_and_ids_are_each_their_own(self) -> None:
        for key in ("id", "title"):
            found = [panel[key] for panel in DASHBOARD["panels"]]
            assert len(set(found)) == len(found)

    def test_no_panel_overlaps_another(self) -> None:
        occupied: set[tuple[int, int]] = set()
        for panel in DASHBOARD["panels"]:
            at = panel["gridPos"]
            assert at["x"] + at["w"] <= 24
            cells = {
                (x, y)
                for x in range(at["x"], at["x"] + at["w"])
                for y in range(at["y"], at["y"] + at["h"])
            }
            assert not cells & occupied
            occupied |= cells

    def test_whatever_has_exemplars_shows_them(self) -> None:
        readme = (FOLDER.parent / "README.md").read_text()
        match = re.search(r"((?:`\w+_seconds`(?:, | and )?)+) have exemplars", readme)
        assert match
        with_exemplars = {
            re.sub(r"abridge_(\w+)_bucket", r"\1", metric)
            for panel in PANELS
            for target in panel["targets"]
            if target["exemplar"]
            for metric, _ in Expression(panel["title"], target["expr"]).series()
        }
        assert with_exemplars == set(re.findall(r"\w+_seconds", match[1]))

    def test_what_every_query_asks_is_the_chosen_source(self) -> None:
        sources = [found for found in _every("datasource", DASHBOARD) if found != SOURCE]
        assert not sources


class TestVariables:
    def test_each_that_is_named_is_there_and_each_that_is_there_is_named(self) -> None:
        named = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD))) - BUILT_IN
        assert named == set(VARIABLES)

    def test_each_filters_all_of_an_expression_that_it_can(self) -> None:
        """And all of it alike, or a share of one style would be one of the tokens of all styles."""
        for expression in panels():
            metrics = [metric for metric, _ in expression.series()]
            common = set.intersection(*(LABELS[metric] for metric in metrics)) | {"job"}
            for _, labels in expression.series():
                assert labels & CHOOSE == common & CHOOSE, expression
        stated = {f"abridge_{metric}" for metrics in FILTERS.values() for metric in metrics}
        assert stated <= set(LABELS)


class TestMetrics:
    @pytest.mark.parametrize("expression", everything(), ids=lambda each: each.place)
    def test_there_is_each_that_is_asked_for_with_its_labels(self, expression: Expression) -> None:
        for metric, labels in (*expression.series(), *expression.grouped()):
            assert metric in LABELS
            assert labels <= LABELS[metric] | TARGET

    def test_each_that_there_is_is_asked_for(self) -> None:
        queried = {metric for each in (*panels(), *rules()) for metric, _ in each.series()}
        families = {re.sub(r"_(bucket|count|sum|total|info)$", "", metric) for metric in queried}
        assert {name for name in FAMILIES if name not in families | queried} == set()


def _every(key: str, tree: Any) -> Iterator[Any]:
    """All that stands under a key, at whatever depth."""
    if isinstance(tree, dict):
        yield from (tree[key],) if key in tree else ()
        for value in tree.values():
            yield from _every(key, value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _every(key, value)


@pytest.fixture(scope="module")
def known() -> Any:
    """The dashboard as grafana-foundation-sdk reads it."""
    pytest.importorskip("grafana_foundation_sdk")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it would have the next schema
        models = importlib.import_module("grafana_foundation_sdk.models.dashboard")
        importlib.import_module("grafana_foundation_sdk.cog.plugins").register_default_plugins()
    return models.Dashboard.from_json(DASHBOARD)


class TestGrafana:
    """What that library's types say, which are made of Grafana's own schemas."""

    def test_it_knows_each_field(self, known: Any) -> None:
        encoder = importlib.import_module("grafana_foundation_sdk.cog.encoder").JSONEncoder
        assert _lost(DASHBOARD, json.loads(encoder().encode(known))) == []

    def test_it_knows_each_value_where_there_are_only_some(self, known: Any) -> None:
        assert [*_odd(known, "")] == []


def _lost(given: Any, stored: Any, path: str = "") -> list[str]:
    """Where something that is given is not kept."""
    if isinstance(given, dict) and isinstance(stored, dict):
        return [
            place
            for key, value in given.items()
            for place in _lost(value, stored.get(key), f"{path}.{key}")
        ]
    if isinstance(given, list) and isinstance(stored, list) and len(given) == len(stored):
        return [
            place
            for number, pair in enumerate(zip(given, stored, strict=True))
            for place in _lost(*pair, f"{path}[{number}]")
        ]
    return [] if given == stored else [path]


def _odd(thing: Any, path: str) -> Iterator[str]:
    """Where a value stands that is none of its type's."""
    if isinstance(thing, list):
        for number, each in enumerate(thing):
            yield from _odd(each, f"{path}[{number}]")
    elif isinstance(thing, dict):
        for key, each in thing.items():
            yield from _odd(each, f"{path}.{key}")
    elif hasattr(thing, "to_json"):
        hints = get_type_hints(type(thing))
        for name, value in vars(thing).items():
            kinds = [hints[name], *get_args(hints[name])]
            enums = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum)]
            if enums and value is not None and value not in [each.value for each in enums[0]]:
                yield f"{path}.{name}: {value}"
            yield from _odd(value, f"{path}.{name}")
