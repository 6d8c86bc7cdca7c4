"""Attributes the tool calls of an Anthropic message to the thinking that led to them."""

from __future__ import annotations

from collections.abc import Iterator
from sys import maxsize
from typing import Any

from abridge.turn.attribution import RAW, Attributor
from abridge.wire.attribution import attributed
from abridge.wire.codec import Json, string

CALL = "tool_use"
"""Suffix of the type of every tool call, whoever runs the tool."""


def attribute_content(content: list[Any]) -> list[Any]:
    """Return the content blocks with their calls attributed. Each thinking block is one part."""
    return list(_read(content))


def _read(content: list[Any]) -> Iterator[Any]:
    turn: Attributor[str] = Attributor(maxsize)
    for place, block in enumerate(content):
        kind = string(block.get("type")) if isinstance(block, dict) else ""
        if kind == "thinking":
            turn.think(RAW, string(block.get("thinking")), part=place)
        elif kind == "redacted_thinking":
            turn.redact()
        elif kind.endswith(CALL):
            yield _attributed(block, turn)
            continue
        yield block


def _attributed(block: Json, turn: Attributor[str]) -> Json:
    led = turn.call(string(block.get("id")))
    return attributed(block, led.parts, led.ref or "")
