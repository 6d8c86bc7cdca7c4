"""Check requests against the types of Anthropic's official client."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest
from pydantic import TypeAdapter

ANTHROPIC = find_spec("anthropic") is not None
needs_anthropic = pytest.mark.skipif(not ANTHROPIC, reason="the anthropic package is not installed")

SAMPLING = ("temperature", "top_p", "top_k")
"""Parameters that older models still accept, but the client's newest types leave out."""


@cache
def _types() -> Any:
    from anthropic.types.message_create_params import MessageCreateParams

    return TypeAdapter(MessageCreateParams)


def check_request(body: dict[str, Any]) -> None:
    """Raise if the body is no request or has a key that no type knows."""
    stated = {key: value for key, value in body.items() if key not in SAMPLING}
    assert _plain(_types().validate_python(stated)) == stated


def _plain(value: Any) -> Any:
    """Turn iterables into lists, since they are validated only as they are read."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, str | int | float | None):
        return value
    return [_plain(inner) for inner in value]
