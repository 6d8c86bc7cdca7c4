"""Attribute the tool calls of an Anthropic message to the thinking that led to them."""

from __future__ import annotations

from collections.abc import Iterator
from sys import maxsize
from typing import Any

from abridge.apis.attribution_fields import attribute_call
from abridge.apis.json import string
from abridge.attribution.attributor import RAW, Attributor
from abridge.core.conversation import Json

TOOL_USE_SUFFIX = "tool_use"
"""Suffix of the type of every tool call, whoever runs the tool."""


def attribute_content(content: list[Any]) -> list[Any]:
    """Return the content blocks with their calls attributed. Each thinking block is one part."""
    return list(_attribute_blocks(content))


def _attribute_blocks(content: list[Any]) -> Iterator[Any]:
    attributor: Attributor[str] = Attributor(maxsize)
    for index, block in enumerate(content):
        kind = string(block.get("type")) if isinstance(block, dict) else ""
        if kind == "thinking":
            attributor.add_reasoning(RAW, string(block.get("thinking")), part=index)
        elif kind == "redacted_thinking":
            attributor.add_redacted()
        elif kind.endswith(TOOL_USE_SUFFIX):
            yield _attribute_call(block, attributor)
            continue
        yield block


def _attribute_call(block: Json, attributor: Attributor[str]) -> Json:
    attribution = attributor.attribute_call(string(block.get("id")))
    return attribute_call(block, attribution.parts, attribution.ref or "")
