"""Attribute the tool calls of an Anthropic message to the thinking that led to them.

Every block whose type ends in `tool_use` is a call, whoever runs its tool.
"""

from __future__ import annotations

import sys
from typing import Any

from abridge.apis.attribution_fields import attribute_call
from abridge.apis.display import Display
from abridge.apis.json import string
from abridge.stages.attribution import RAW, Attributor, CallAttribution

TOOL_USE_SUFFIX = "tool_use"


def follow_calls(display: Display, limit: int) -> CallAttribution:
    """Return the stage that attributes the calls of an answer, each stretch of whose reasoning has
    a block of its own."""
    return CallAttribution(
        0 if display.drops_reasoning else limit,
        shows_raw=display.show_raw,
        shows_summary=display.show_summary,
        native=display.native,
        shows_state=display.seal is None,
    )


def attribute_content(content: list[Any]) -> list[Any]:
    """Return the content blocks with their calls attributed. Each thinking block is one part."""
    attributor = Attributor(sys.maxsize)
    return [_attribute(block, number, attributor) for number, block in enumerate(content)]


def _attribute(block: Any, number: int, attributor: Attributor) -> Any:
    """Take the next block; return a call with its attribution, anything else unchanged."""
    kind = string(block.get("type")) if isinstance(block, dict) else ""
    if kind == "thinking":
        attributor.add_reasoning(RAW, string(block.get("thinking")), stretch=number)
    elif kind == "redacted_thinking":
        attributor.add_redacted(stretch=number)
    elif kind.endswith(TOOL_USE_SUFFIX):
        return attribute_call(block, attributor.attribute_call(), string(block.get("id")))
    return block
