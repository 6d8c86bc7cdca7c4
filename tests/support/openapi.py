"""Validate bodies and events against OpenAI's published API description.

The description is stricter than the live API in places its README names: `usage`, `logprobs`,
`finish_reason` and `user` are null on the wire where it does not allow it.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator

from tests.support.shared import OPENAPI

NULL_ON_THE_WIRE = ("usage", "logprobs", "finish_reason", "user")


@cache
def _description() -> dict[str, Any]:
    description: dict[str, Any] = json.loads(OPENAPI.read_text())
    _allow_nulls(description)
    return description


def _allow_nulls(node: Any) -> None:
    """Spell OpenAPI 3.0's `nullable`, and the known exceptions, as JSON Schema does."""
    if isinstance(node, list):
        for entry in node:
            _allow_nulls(entry)
    if not isinstance(node, dict):
        return
    properties: Any = node.get("properties")
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        if isinstance(schema, dict) and (name in NULL_ON_THE_WIRE or schema.get("nullable")):
            properties[name] = {"anyOf": [{"type": "null"}, schema]}
    for value in node.values():
        _allow_nulls(value)


@cache
def _validator(schema: str) -> Validator:
    description = _description()
    return Draft202012Validator(
        {"$ref": f"#/components/schemas/{schema}", "components": description["components"]}
    )


@cache
def _event_schemas() -> dict[str, str]:
    """Return the schema of each type of stream event."""
    found = {}
    schemas = _description()["components"]["schemas"]
    for entry in schemas["ResponseStreamEvent"]["anyOf"]:
        name = entry["$ref"].rsplit("/", 1)[1]
        for kind in schemas[name]["properties"]["type"].get("enum", ()):
            found[kind] = name
    return found


def check(schema: str, body: Any) -> None:
    """Assert that a body is valid; do nothing without the description."""
    if OPENAPI.is_file():
        assert not faults(schema, body)


def faults(schema: str, value: Any) -> set[str]:
    """Return where `value` violates a schema, in a comparable form."""
    return {
        f"{_place(error)}: {error.validator}"
        for outer in _validator(schema).iter_errors(value)
        for error in _leaves(outer, value)
    }


def event_faults(event: dict[str, Any]) -> set[str]:
    schema = _event_schemas().get(event["type"])
    return faults(schema, event) if schema is not None else set()


def _place(error: Any) -> str:
    """Return the path with indexes masked, so that equal faults of several items are one."""
    return "/".join("#" if isinstance(part, int) else str(part) for part in error.absolute_path)


def _leaves(error: Any, _: Any) -> list[Any]:
    """Return the innermost causes; of alternatives, those of the closest match."""
    if not error.context:
        return [error]
    branches: dict[int, list[Any]] = {}
    for inner in error.context:
        branches.setdefault(inner.schema_path[0], []).append(inner)
    best = min(branches.values(), key=len)
    return [leaf for inner in best for leaf in _leaves(inner, None)]
