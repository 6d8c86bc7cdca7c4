"""Parse an answer's events, and complete those around its blocks: its start, its stop, an error."""

from __future__ import annotations

from collections.abc import Iterable

from abridge.apis.json import as_object, loads_exact, parse_object, string
from abridge.apis.messages.usage import NO_USAGE
from abridge.apis.openai import mint_id
from abridge.core.conversation import Json
from abridge.core.events import FinishReason

REQUIRED_FIELDS: Json = {
    "type": "message",
    "role": "assistant",
    "model": "",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
}
"""Fields that every message has (Anthropic API reference, `Message`), beside `id` and `usage`, with
values that claim nothing which upstream did not say."""

FINISH_REASONS: dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
"""Finish reasons; any other stop reason means `stop`, or `tool_calls` if there were calls. Text
before a refusal stays: the client has seen it."""


def complete_start(message: Json) -> Json:
    """Return a message as a stream starts it: with all its fields, and no content."""
    usage = {**NO_USAGE, **as_object(message.get("usage"))}
    complete = {"id": "", **REQUIRED_FIELDS, **message, "content": [], "usage": usage}
    return {**complete, "id": string(complete["id"]) or mint_id("msg_")}


def complete_whole(message: Json, content: list[Json]) -> Json:
    """Return a whole message with all its fields, and this content."""
    complete = {**complete_start(message), "content": list(map(complete_call, content))}
    if complete["stop_reason"] is None:
        complete |= make_stop(map(block_type, content), complete["usage"])["delta"]
    return complete


def complete_call(content_block: Json) -> Json:
    """Return a call with a name, which clients require; any other block as it is."""
    is_nameless = block_type(content_block) == "tool_use" and "name" not in content_block
    return {**content_block, "name": ""} if is_nameless else content_block


def block_type(content_block: Json) -> str:
    return string(content_block.get("type"))


def complete_error(event: Json, message: str) -> Json:
    """Return an error event in Anthropic's form; some gateways send only a text, or no type."""
    error = {"type": "api_error", "message": message, **as_object(event.get("error"))}
    return {**event, "type": "error", "error": error}


def make_stop(block_types: Iterable[str], usage: Json) -> Json:
    """Return the fields of the `message_delta` that upstream left out. Why an answer stops is told
    by its blocks."""
    reason = "tool_use" if "tool_use" in block_types else "end_turn"
    return {
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 0, **usage},
    }


def read_stop_reason(reason: str, *, has_calls: bool) -> FinishReason:
    """Return why an answer ends, as clients of other APIs are told."""
    return FINISH_REASONS.get(reason, "tool_calls" if has_calls else "stop")


def parse_event(data: bytes) -> Json | None:
    """Parse an event: with exact numbers unless it is a delta, all of which are text. Some gateways
    leave out the type of an error."""
    event = parse_object(data)
    if event is None or event.get("type") == "content_block_delta":
        return event
    exact = parse_object(data, loads_exact) or event
    return {"type": "error", **exact} if "type" not in exact and "error" in exact else exact
