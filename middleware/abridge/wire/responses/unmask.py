"""Rename the "summary" of providers that put the raw reasoning there.

Ollama puts the raw thinking into `summary[0].text`, into `reasoning_summary_text.delta` and, in the
clear, into `encrypted_content`, by which a finished item can be recognized (ollama
openai/responses.go).
"""

from __future__ import annotations

from typing import Any

from abridge.wire.codec import Json, objects
from abridge.wire.responses.items import is_reasoning, summary_text

_TRUE_NAMES = {
    "response.reasoning_summary_part.added": "response.content_part.added",
    "response.reasoning_summary_text.delta": "response.reasoning_text.delta",
    "response.reasoning_summary_text.done": "response.reasoning_text.done",
    "response.reasoning_summary_part.done": "response.content_part.done",
}


def unmask_event(event: Json) -> Json:
    event = dict(event)
    if event.get("type") in _TRUE_NAMES:
        event["type"] = _TRUE_NAMES[event["type"]]
        event["content_index"] = event.pop("summary_index", 0)
    if isinstance(event.get("part"), dict) and event["part"].get("type") == "summary_text":
        event["part"] = {**event["part"], "type": "reasoning_text"}
    if "item" in event:
        event["item"] = unmask_item(event["item"])
    if isinstance(event.get("response"), dict):
        event["response"] = unmask_response(event["response"])
    return event


def unmask_response(response: Json, *, sure: bool = True) -> Json:
    """Rename the raw summaries in a response: every one if `always`, else those recognized."""
    output = response.get("output")
    if not isinstance(output, list):
        return response
    return {
        **response,
        "output": [unmask_item(item) if sure or is_masked(item) else item for item in output],
    }


def is_masked(item: Any) -> bool:
    """Return whether an item's "summary" equals the state that stands for its reasoning."""
    said = summary_text(item) if is_reasoning(item) else ""
    return bool(said.strip()) and item.get("encrypted_content") == said


def unmask_item(item: Any) -> Any:
    if not is_reasoning(item) or not item.get("summary"):
        return item
    content = [{**part, "type": "reasoning_text"} for part in objects(item["summary"])]
    return {**item, "summary": [], "content": content}
