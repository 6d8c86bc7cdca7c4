"""Reasoning items: what is in them, and what a client gets to see of it.

Shape: `{"id", "type": "reasoning", "summary": [{"type": "summary_text", "text"}], "content":
[{"type": "reasoning_text", "text"}], "encrypted_content", "status"}`; id, type and summary are
required (openai-openapi, `ReasoningItem`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from heapq import nlargest
from typing import Any

from abridge.turn.events import Summary
from abridge.wire.codec import Json, objects, string
from abridge.wire.display import Display

LANE = 0
"""All of a response waits together."""

KNOWN = ("id", "type", "status", "summary", "encrypted_content")

LINES = 16
"""So many lines of the reasoning, the longest, are looked for in what should be opaque."""

_BY_CHANCE = re.compile(r"[A-Za-z0-9+/=_-]{0,15}")
"""A line that may well stand in a ciphertext's base64."""


def is_reasoning(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "reasoning"


def is_call(item: Any) -> bool:
    """Whether it calls a tool, whoever runs that; what came of it is none."""
    return isinstance(item, dict) and string(item.get("type")).endswith("_call")


def texts(parts: Any) -> list[str]:
    """What each of a list of parts says."""
    return [string(part.get("text")) for part in objects(parts)]


def raw_text(item: Json) -> str:
    return "".join(texts(item.get("content")))


def summary_text(item: Json) -> str:
    return "\n\n".join(texts(item.get("summary")))


def summary_parts(said: Iterable[str]) -> list[Json]:
    return [{"type": "summary_text", "text": text} for text in said]


def raw_parts(said: Iterable[str]) -> list[Json]:
    return [{"type": "reasoning_text", "text": text} for text in said]


def unknown_keys(item: Json) -> int:
    """How many fields go when the item is concealed."""
    return sum(item[key] is not None for key in item.keys() - set(KNOWN) - {"content"})


def conceal(item: Json) -> Json:
    """The item without its raw reasoning, made of known keys only.

    Opaque state stays, unless the reasoning stands in it in the clear.
    """
    kept: Json = {key: item[key] for key in KNOWN if key in item}
    if not isinstance(kept.get("status", ""), str | None):
        del kept["status"]
    if "content" in item:
        kept["content"] = []
    if kept.get("encrypted_content") is not None and not is_sealed(item):
        del kept["encrypted_content"]
    return kept


def without_raw(item: Any, display: Display) -> Any:
    """An item of another type, or of none, less raw reasoning in its content that is not shown."""
    content = item.get("content") if isinstance(item, dict) else None
    if display.raw or not isinstance(content, list):
        return item
    kept = [part for part in content if not _is_raw(part)]
    return item if len(kept) == len(content) else {**item, "content": kept}


def _is_raw(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "reasoning_text"


def dress(item: Json, summary: Summary, display: Display, blob: str = "") -> Json:
    """The item as the client gets it. Parts of ours come before upstream's own; a blob holds all of
    it, opaque state included."""
    shown = dict(item) if display.raw else conceal(item)
    native = objects(item.get("summary")) if display.summary else []
    shown["summary"] = summary_parts(summary.parts) + native
    if summary.trouble is not None:
        shown["summary_error"] = summary.trouble.as_dict()
    if blob:
        shown["encrypted_content"] = blob
    return shown


def is_sealed(item: Json) -> bool:
    """Whether its opaque state is opaque: neither the reasoning nor its summary stands in it in the
    clear."""
    state = item.get("encrypted_content")
    return all(_is_opaque(state, texts(item.get(name))) for name in ("content", "summary"))


def _is_opaque(state: Any, raw: list[str]) -> bool:
    """Whether no line of the reasoning is in it, as it is or as JSON spells it.

    Lines, because whoever puts reasoning there joins and escapes its parts in a way of his own.
    """
    if not isinstance(state, str) or (state and state.strip() == "".join(raw).strip()):
        return False
    lines = {line.strip() for text in raw for line in text.splitlines()}
    telling = (line for line in lines if not _BY_CHANCE.fullmatch(line))
    return not any(
        spelling in state
        for line in nlargest(LINES, telling, key=len)
        for spelling in (line, json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1])
    )
