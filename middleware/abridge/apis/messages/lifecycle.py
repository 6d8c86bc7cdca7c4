"""Parse an answer's events, and complete those around its blocks: its start, its stop, an error."""

from __future__ import annotations

from collections.abc import Iterable

from abridge.apis.endings import reason_of_parts
from abridge.apis.frames import encode_event
from abridge.apis.json import as_object, loads_exact, objects, parse_object, string
from abridge.apis.messages.usage import NO_USAGE, merge_usage
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


def unfold_start(event: Json) -> list[Json]:
    """Return the events that an answer consists of which begins with content; none of any other.

    Where a tool of the server's calls one of the client's, all of the answer is in its start: the
    call, and why it stops (Anthropic's programmatic tool calling, recorded by the AI SDK).
    """
    message = as_object(event.get("message"))
    content = objects(message.get("content"))
    if event.get("type") != "message_start" or not content:
        return []
    change = {key: message[key] for key in ("stop_reason", "stop_sequence") if message.get(key)}
    start = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    events: list[Json] = [{**event, "message": start}]
    for index, content_block in enumerate(content):
        address = {"index": index}
        events.append({"type": "content_block_start", **address, "content_block": content_block})
        events.append({"type": "content_block_stop", **address})
    if change:
        usage = as_object(message.get("usage"))
        delta = {"stop_reason": None, "stop_sequence": None, **change}
        events.append({"type": "message_delta", "delta": delta, "usage": usage})
    return events


class MessageStop:
    """What upstream has said so far of why its answer stops.

    It waits until something else than the answer follows, or the end: upstream may go on after it,
    or have another reason then.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.is_last_word = False  # nothing more of the answer has come since
        self._frame: bytes | None = None
        self._event: Json = {}

    def note(self, event: Json) -> None:
        """Note an event that may go on with the answer."""
        if event.get("type") in ("content_block_start", "content_block_delta"):
            self.is_last_word = False

    def take(self, event: Json, frame: bytes | None) -> bool:
        """Take a `message_delta` that says why the answer stops, or one that follows it; return
        whether it was taken."""
        delta = as_object(event.get("delta"))
        reason = string(delta.get("stop_reason"))
        if not (reason or self.reason):
            return False
        self.reason, self.is_last_word = reason or self.reason, True
        if self._event:
            told = {key: value for key, value in delta.items() if value is not None}
            usage = merge_usage(as_object(self._event.get("usage")), event.get("usage"))
            delta = {**as_object(self._event.get("delta")), **told}
            event = {**self._event, **event, "delta": delta, "usage": usage}
            frame = frame and encode_event("message_delta", event)
        self._event, self._frame = event, frame
        return True

    def release(self) -> bytes | None:
        """Return the frame that says so, once."""
        frame, self._frame, self._event = self._frame, None, {}
        return frame


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
    return FINISH_REASONS.get(reason) or reason_of_parts(has_calls=has_calls)


def parse_event(data: bytes) -> Json | None:
    """Parse an event: with exact numbers unless it is a delta, all of which are text. Some gateways
    leave out the type of an error."""
    event = parse_object(data)
    if event is None or event.get("type") == "content_block_delta":
        return event
    exact = parse_object(data, loads_exact) or event
    return {"type": "error", **exact} if "type" not in exact and "error" in exact else exact
