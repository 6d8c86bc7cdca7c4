"""Reasoning items, and the form in which the client is shown them.

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
"""The lane of every event: a response has just one."""

KNOWN = ("id", "type", "status", "summary", "encrypted_content")

LINES = 16
"""Look for at most this many lines of the reasoning, the longest, in opaque state."""

_BY_CHANCE = re.compile(r"[A-Za-z0-9+/=_-]{0,15}")
"""Matches a line that may occur in base64 ciphertext by chance."""


def is_reasoning(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "reasoning"


def is_call(item: Any) -> bool:
    """Return whether the item calls a tool, whoever runs it. A call's output is no call."""
    return isinstance(item, dict) and string(item.get("type")).endswith("_call")


def texts(parts: Any) -> list[str]:
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
    """Count the fields, other than `content`, that `without_reasoning` drops as unknown."""
    return sum(item[key] is not None for key in item.keys() - set(KNOWN) - {"content"})


def conceal(item: Json) -> Json:
    """Return the item without its raw reasoning, rebuilt from known fields.

    Keep opaque state, unless the reasoning can be read in it.
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
    """Remove raw reasoning that is not shown from an item of another type, or of none."""
    content = item.get("content") if isinstance(item, dict) else None
    if display.raw or not isinstance(content, list):
        return item
    kept = [part for part in content if not _is_raw(part)]
    return item if len(kept) == len(content) else {**item, "content": kept}


def _is_raw(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "reasoning_text"


def dress(item: Json, summary: Summary, display: Display, blob: str = "") -> Json:
    """Return the item as the client is shown it.

    Abridge's summary parts come before upstream's own. A blob takes the place of
    `encrypted_content`: its envelope holds the whole item, opaque state included.
    """
    shown = dict(item) if display.raw else conceal(item)
    native = objects(item.get("summary")) if display.summary else []
    shown["summary"] = summary_parts(summary.parts) + native
    if summary.trouble is not None:
        shown["summary_error"] = summary.trouble.as_dict()
    if blob:
        shown["encrypted_content"] = blob
    return shown


def is_sealed(item: Json) -> bool:
    """Return whether neither the reasoning nor its summary can be read in the opaque state."""
    state = item.get("encrypted_content")
    return all(_is_opaque(state, texts(item.get(name))) for name in ("content", "summary"))


def _is_opaque(state: Any, raw: list[str]) -> bool:
    """Return whether no line of the reasoning occurs in `state`, plain or escaped as JSON.

    Compare lines, because servers that put reasoning there join and escape its parts in their own
    ways.
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
