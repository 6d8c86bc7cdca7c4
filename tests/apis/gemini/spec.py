"""Check requests and answers against the types of Google's official client."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest

GENAI = find_spec("google") is not None and find_spec("google.genai") is not None
needs_genai = pytest.mark.skipif(not GENAI, reason="the google-genai package is not installed")

FIELDS = (
    *("contents", "systemInstruction", "tools", "toolConfig", "generationConfig"),
    *("safetySettings", "cachedContent", "labels"),
)
"""Fields of a request (ai.google.dev: api/generate-content)."""


@cache
def _types() -> Any:
    from google.genai import types

    return types


def check_request(body: dict[str, Any]) -> None:
    """Raise if the body is no request or has a key that no type knows."""
    assert body.keys() <= set(FIELDS)
    types = _types()
    for content in [*body["contents"], body.get("systemInstruction", {})]:
        types.Content.model_validate(content)
    for tool in body.get("tools", []):
        types.Tool.model_validate(tool)
    types.ToolConfig.model_validate(body.get("toolConfig", {}))
    types.GenerationConfig.model_validate(body.get("generationConfig", {}))


def check_answer(body: dict[str, Any]) -> None:
    """Raise if the body is no answer."""
    _types().GenerateContentResponse.model_validate(body)
