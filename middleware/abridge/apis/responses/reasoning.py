"""Read reasoning items, show them to the client, and recognize raw reasoning in a summary.

Shape: `{"id", "type": "reasoning", "summary": [{"type": "summary_text", "text"}], "content":
[{"type": "reasoning_text", "text"}], "encrypted_content", "status"}`; id, type and summary are
required (openai-openapi, `ReasoningItem`).

Some providers put raw reasoning into the summary. Ollama puts it into `summary[0].text`, into
`reasoning_summary_text.delta` and, in the clear, into `encrypted_content`, by which a finished item
can be recognized (ollama openai/responses.go).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from heapq import nlargest
from typing import Any

from abridge.apis.display import Display
from abridge.apis.json import as_object, first_string, objects, string
from abridge.apis.shapes import (
    DropCount,
    by_type,
    each,
    fields,
    opaque_state,
    streamed_text,
    unknown,
)
from abridge.core.conversation import Json
from abridge.core.events import ItemSummary
from abridge.providers.profile import Profile

REASONING_PREFIX = "response.reasoning"
"""Begins the types of events about reasoning."""

SHOWN_ITEM = fields(
    names="id type status",
    summary=each(by_type({"summary_text": fields(names="type", text=streamed_text)})),
    content=unknown("reasoning items"),  # the raw reasoning, which is not shown
    encrypted_content=opaque_state,
)
"""What clients are shown of an item."""

MAX_LINES_COMPARED = 16
"""Look for at most this many lines of the reasoning, the longest, in opaque state."""

_BASE64_LIKE = re.compile(r"[A-Za-z0-9+/=_-]{0,15}")
"""Matches a line that may occur in base64 ciphertext by chance."""


def is_reasoning(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "reasoning"


def is_tool_call(item: Any) -> bool:
    """Return whether the item calls a tool, whoever runs it. A call's output is no call."""
    return isinstance(item, dict) and string(item.get("type")).endswith("_call")


def call_id_of(item: Json) -> str:
    """Return the id of a call, or of its output: shell calls and those of a server's tools may have
    no `call_id`."""
    return first_string(item, "call_id", "id")


def part_texts(parts: Any) -> list[str]:
    return [string(part.get("text")) for part in objects(parts)]


def raw_text(item: Json) -> str:
    return "".join(part_texts(item.get("content")))


def summary_text(item: Json) -> str:
    return "\n\n".join(part_texts(item.get("summary")))


def summary_parts(texts: Iterable[str]) -> list[Json]:
    return [{"type": "summary_text", "text": text} for text in texts]


def raw_parts(texts: Iterable[str]) -> list[Json]:
    return [{"type": "reasoning_text", "text": text} for text in texts]


def make_reasoning(item_id: str, status: str, text: str = "") -> Json:
    """Return a reasoning item of thinking that upstream wrote elsewhere."""
    content = raw_parts([text] if text else [])
    return {"id": item_id, "type": "reasoning", "status": status, "summary": [], "content": content}


def without_reasoning(item: Json, display: Display) -> Json:
    """Return the item without its raw reasoning, rebuilt from known fields.

    Keep opaque state, unless the reasoning can be read in it.
    """
    rebuilt: Json = SHOWN_ITEM(item, DropCount.of(display))
    if "content" in rebuilt:
        rebuilt["content"] = []
    if rebuilt.get("encrypted_content") is not None and not is_opaque(item):
        del rebuilt["encrypted_content"]
    return rebuilt


def without_raw_content(item: Any, display: Display) -> Any:
    """Remove raw reasoning that is not shown from an item of another type, or of none."""
    content = item.get("content") if isinstance(item, dict) else None
    if display.show_raw or not isinstance(content, list):
        return item
    parts = [part for part in content if as_object(part).get("type") != "reasoning_text"]
    return item if len(parts) == len(content) else {**item, "content": parts}


def as_shown(item: Json, summary: ItemSummary, display: Display, blob: str = "") -> Json:
    """Return the item as the client is shown it.

    Abridge's summary parts come before upstream's own. A blob takes the place of
    `encrypted_content`: its envelope holds the whole item, opaque state included.
    """
    shown = dict(item) if display.show_raw else without_reasoning(item, display)
    native = objects(shown.get("summary")) if display.show_summary else []
    shown["summary"] = summary_parts(summary.parts) + native
    if summary.error is not None:
        shown["summary_error"] = summary.error.as_dict()
    if blob:
        shown["encrypted_content"] = blob
    return shown


def is_opaque(item: Json) -> bool:
    """Return whether neither the reasoning nor its summary can be read in the opaque state."""
    state = item.get("encrypted_content")
    return all(_hides(state, part_texts(item.get(key))) for key in ("content", "summary"))


def _hides(state: Any, texts: list[str]) -> bool:
    """Return whether no line of the reasoning occurs in `state`, plain or escaped as JSON.

    Compare lines, because servers that put reasoning there join and escape its parts in their own
    ways.
    """
    if not isinstance(state, str) or (state and state.strip() == "".join(texts).strip()):
        return False
    lines = {line.strip() for text in texts for line in text.splitlines()}
    distinctive = (line for line in lines if not _BASE64_LIKE.fullmatch(line))
    return not any(
        form in state
        for line in nlargest(MAX_LINES_COMPARED, distinctive, key=len)
        for form in (line, json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1])
    )


def summary_is_raw(profile: Profile, display: Display) -> bool:
    """Return whether upstream's summaries are taken for reasoning: where they are to be replaced
    and, where raw reasoning is hidden, all that nobody vouches for."""
    is_doubtful = display.hides_raw and not profile.makes_summaries
    return profile.summary_is_raw or display.replaces_native or is_doubtful


def rename_raw_summary_in_response(
    response: Json, part_type: str = "reasoning_text", *, always: bool = True
) -> Json:
    """Rename the raw summaries in a response: every one if `always`, else those recognized."""
    output = response.get("output")
    if not isinstance(output, list):
        return response
    return {
        **response,
        "output": [
            rename_raw_summary(item, part_type) if always or is_raw_summary(item) else item
            for item in output
        ],
    }


def is_raw_summary(item: Any) -> bool:
    """Return whether an item's "summary" equals the state that stands for its reasoning."""
    summary = summary_text(item) if is_reasoning(item) else ""
    return bool(summary.strip()) and item.get("encrypted_content") == summary


def rename_raw_summary(item: Any, part_type: str = "reasoning_text") -> Any:
    """Move an item's "summary" behind its content, unless that says the same."""
    if not is_reasoning(item) or not item.get("summary"):
        return item
    content, renamed = objects(item.get("content")), objects(item["summary"])
    if part_texts(content) != part_texts(renamed):
        content = [*content, *({**part, "type": part_type} for part in renamed)]
    return {**item, "summary": [], "content": content}


def as_sent(item: Json) -> Json:
    """Return an item as upstream sent it, whose summary was moved as `summary_text`."""
    content = objects(item.get("content")) if is_reasoning(item) else []
    summary = [part for part in content if part.get("type") == "summary_text"]
    if not summary:
        return item
    rest = [part for part in content if part.get("type") != "summary_text"]
    sent = {key: item[key] for key in item if key != "content"}
    return {**sent, "summary": summary, **({"content": rest} if rest else {})}
