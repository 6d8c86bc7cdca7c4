"""Write the request's tools, and the tool choice."""

from __future__ import annotations

from typing import Any

from abridge.apis.gemini.tools import MODES, choose_functions, write_function
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, TranslatedRequest

_VALUES = frozenset({"default", "const", "enum", "examples"})
"""Keywords of a schema that hold no schemas."""


def write_tools(
    request: ModelRequest, translated: TranslatedRequest
) -> tuple[list[Json], str | Json | None]:
    """Write the tools that are offered, and the choice among them (google-genai, `ToolChoice`)."""
    tools, choice = choose_functions(request, translated)
    written = [{"type": "function", **write_function(tool, "parameters")} for tool in tools]
    for tool in written:
        if "parameters" in tool:
            tool["parameters"] = _without_empty_lists(tool["parameters"])
    if choice is None:
        return written, None
    mode = MODES[choice.mode].lower()
    named = {"allowed_tools": {"mode": mode, "tools": list(choice.names)}}
    return written, named if choice.names else mode


def _without_empty_lists(schema: Any) -> Any:
    """Return a schema without empty lists of required properties, which the API refuses, and which
    say nothing (earendil-works/pi pull 2172)."""
    if isinstance(schema, list):
        return [_without_empty_lists(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value if key in _VALUES else _without_empty_lists(value)
        for key, value in schema.items()
        if not (key == "required" and value == [])
    }
