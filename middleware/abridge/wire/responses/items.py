"""Reasoning items: what is in them, and what a client gets to see of it.

Shape: `{"id", "type": "reasoning", "summary": [{"type": "summary_text", "text"}], "content":
[{"type": "reasoning_text", "text"}], "encrypted_content", "status"}`; id, type and summary are
required (openai-openapi, `ReasoningItem`).
"""

from __future__ import annotations

from typing import Any

from abridge.turn.events import Summary
from abridge.wire.codec import Json, objects, string
from abridge.wire.display import Display

KNOWN = ("id", "type", "status", "summary", "encrypted_content")


def is_reasoning(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "reasoning"


def raw_text(item: Json) -> str:
    return "".join(string(part.get("text")) for part in objects(item.get("content")))


def summary_text(item: Json) -> str:
    return "\n\n".join(string(part.get("text")) for part in objects(item.get("summary")))


def unknown_keys(item: Json) -> int:
    """How many fields go when the item is concealed."""
    return sum(item[key] is not None for key in item.keys() - set(KNOWN) - {"content"})


def conceal(item: Json) -> Json:
    """The item without its raw reasoning, made of known keys only.

    Opaque state stays, unless it is no more than the reasoning in the clear.
    """
    kept: Json = {key: item[key] for key in KNOWN if key in item}
    if "content" in item:
        kept["content"] = []
    raw = raw_text(item).strip()
    if raw and raw in string(item.get("encrypted_content")):
        del kept["encrypted_content"]
    return kept


def dress(item: Json, summary: Summary, display: Display) -> Json:
    """The item as the client gets it. Parts of ours come before upstream's own."""
    shown = dict(item) if display.raw else conceal(item)
    native = objects(item.get("summary")) if display.summary else []
    ours = [{"type": "summary_text", "text": text} for text in summary.parts]
    shown["summary"] = ours + native
    if summary.trouble is not None:
        shown["summary_error"] = summary.trouble.as_dict()
    return shown
