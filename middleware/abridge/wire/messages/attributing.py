"""Says which thinking led to which call, in a message of Anthropic's."""

from __future__ import annotations

from collections.abc import Iterator
from sys import maxsize
from typing import Any

from abridge.turn.attribution import RAW, Attributor
from abridge.wire.attribution import attributed
from abridge.wire.codec import Json, string

CALL = "tool_use"
"""How the type of every call ends, whoever runs its tool."""


def attribute_content(content: list[Any]) -> list[Any]:
    """The blocks of a message, its calls attributed. Each block of thinking is a part."""
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
