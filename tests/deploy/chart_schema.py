"""Print the schema of the chart's values, with that of Abridge's own settings:
`python -m tests.deploy.chart_schema > schema && mv schema deploy/helm/abridge/values.schema.json`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from abridge.config.settings import Settings
from tests.deploy.manifests import CHART

SCHEMA = CHART / "values.schema.json"

PROSE = ("description", "title", "default", "gt")
"""What a schema says to people, and a keyword that draft 7 does not have."""


def values_schema() -> dict[str, Any]:
    """Return the chart's schema, in which `settings` are Abridge's: Helm then refuses a wrong key,
    at which a pod would not start."""
    settings = _without_prose(Settings.model_json_schema(ref_template="#/definitions/{model}"))
    schema: dict[str, Any] = json.loads(SCHEMA.read_text())
    schema["definitions"] = settings.pop("$defs")
    schema["properties"]["settings"] = settings
    return schema


def _without_prose(schema: Any, *, names_keys: bool = False) -> Any:
    """Return a schema without its words; `names_keys`, if the keys are those of settings."""
    if isinstance(schema, list):
        return [_without_prose(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_prose(value, names_keys=key in ("properties", "$defs") and not names_keys)
        for key, value in schema.items()
        if names_keys or key not in PROSE
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(values_schema(), indent=2) + "\n")
