"""Test that the chart knows Abridge's settings, so that Helm refuses what a pod would not start
with."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml

from tests.deploy.chart_schema import SCHEMA, values_schema
from tests.deploy.manifests import CHART

USUAL = yaml.safe_load((CHART / "values.yaml").read_text())


def with_values(values: Any, more: Any) -> Any:
    """Return values with more in their place, as Helm has it: null takes a key out."""
    if not (isinstance(values, dict) and isinstance(more, dict)):
        return more
    merged = {key: with_values(values.get(key), more[key]) for key in more}
    return {key: value for key, value in {**values, **merged}.items() if value is not None}


def test_the_chart_has_the_schema_of_the_settings() -> None:
    assert json.loads(SCHEMA.read_text()) == values_schema()


@pytest.mark.parametrize("name", ["values.yaml", "values-sidecar.yaml"])
def test_its_own_values_are_valid(name: str) -> None:
    values = with_values(USUAL, yaml.safe_load((CHART / name).read_text()))
    assert not list(jsonschema.Draft7Validator(values_schema()).iter_errors(values))


@pytest.mark.parametrize(
    "settings",
    [
        {"sumary": {"default": "auto"}},
        {"summary": {"defualt": "auto"}},
        {"summary": {"default": "loud"}},
        {"upstreams": [{"base_ulr": "http://vllm:8000/v1"}]},
        {"limits": {"in_flight": "many"}},
    ],
)
def test_a_typo_in_the_settings_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"settings": settings}, values_schema())


def test_what_needs_the_operator_is_off_by_default() -> None:
    assert USUAL["monitoring"]["enabled"] is False
