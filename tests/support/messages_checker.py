"""Check Messages: assert Anthropic's order on any stream that a test produces, and read it.

Every test that sees a Messages stream or a whole message uses it. It shares no code with Abridge;
what it accepts, the `anthropic` package accepts as well: each event is validated by its models, and
the message that its stream helper adds up must be the one that is added up here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types.parsed_message import ParsedMessage
from pydantic import TypeAdapter

from tests.support.checker import (
    attribution_of,
    check_attributions,
    check_chat,
    check_responses,
    frames,
)

STOP_REASONS = (
    *("end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"),
    "model_context_window_exceeded",
)
ERROR_TYPES = (
    *("invalid_request_error", "authentication_error", "billing_error", "permission_error"),
    *("not_found_error", "request_too_large", "rate_limit_error", "timeout_error", "api_error"),
    *("overloaded_error", "conflict_error"),
)
DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""By the type of a delta, the type of its block, and the field that holds its text."""
CALL_TYPES = ("tool_use", "server_tool_use", "mcp_tool_use")
CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")

RAW_EVENT: TypeAdapter[RawMessageStreamEvent] = TypeAdapter(RawMessageStreamEvent)
KNOWN_EVENTS = (
    *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
    *("message_delta", "message_stop"),
)


@dataclass
class MessagesStream:
    """The contents of a stream. `message` is the whole message that it adds up to."""

    events: list[dict[str, Any]] = field(default_factory=list)
    message: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    pings: int = 0
    stopped: bool = False
    open_block: int | None = None

    @property
    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]

    @property
    def blocks(self) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = self.message.get("content", [])
        return blocks

    @property
    def stop_reason(self) -> str | None:
        return self.message.get("stop_reason")

    @property
    def usage(self) -> dict[str, Any]:
        usage: dict[str, Any] = self.message["usage"]
        return usage

    @property
    def text(self) -> str:
        return "".join(block["text"] for block in self.blocks if block["type"] == "text")

    @property
    def thinking(self) -> list[str]:
        return [block["thinking"] for block in self.blocks if block["type"] == "thinking"]

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [block for block in self.blocks if block["type"] == "tool_use"]


def check_messages(stream: bytes) -> MessagesStream:
    """Assert that a Messages stream is legal; return its contents."""
    seen = check_begun_messages(stream)
    assert seen.stopped or seen.error is not None, "neither message_stop nor an error"
    return seen


def check_begun_messages(stream: bytes) -> MessagesStream:
    """Assert that a Messages stream is legal as far as it came; return its contents."""
    seen = MessagesStream()
    for name, data in frames(stream):
        event = json.loads(data)
        kind = event["type"]
        assert name == kind, f"event: {name} but type {kind}"
        assert seen.error is None, f"{kind} after the error"
        if kind == "ping":
            seen.pings += 1
            continue
        assert not seen.stopped, f"{kind} after the end"
        seen.events.append(event)
        if kind == "error":
            seen.error = check_error(event)
            continue
        assert seen.message or kind == "message_start", f"first comes message_start, not {kind}"
        _check_event(seen, event)
    _check_with_anthropic(seen)
    if seen.stopped:
        check_message(seen.message)
    return seen


def _check_event(seen: MessagesStream, event: dict[str, Any]) -> None:
    match event["type"]:
        case "message_start":
            _check_start(seen, event["message"])
        case "content_block_start":
            _check_block_start(seen, event)
        case "content_block_delta":
            _check_delta(_open_block(seen, event), event)
        case "content_block_stop":
            _check_block_stop(_open_block(seen, event), event)
            seen.open_block = None
        case "message_delta":
            _check_message_delta(seen, event)
        case "message_stop":
            assert seen.stop_reason is not None, "message_stop before message_delta"
            seen.stopped = True


def _check_start(seen: MessagesStream, message: dict[str, Any]) -> None:
    assert not seen.message, "a message starts once"
    assert message["content"] == []
    assert message["stop_reason"] is None
    assert message["stop_sequence"] is None
    seen.message = {**message, "content": []}


def _check_block_start(seen: MessagesStream, event: dict[str, Any]) -> None:
    assert seen.open_block is None, f"a block starts before {seen.open_block} stops"
    assert seen.stop_reason is None, "a block starts after message_delta"
    assert event["index"] == len(seen.blocks), f"index is dense: {event['index']}"
    block = dict(event["content_block"])
    match block["type"]:
        case "text":
            assert block["text"] == ""
        case "thinking":
            assert (block["thinking"], block["signature"]) == ("", "")
        case "tool_use":
            assert block["input"] == {}
            block["input"] = ""
        case "redacted_thinking":
            assert block["data"]
    seen.blocks.append(block)
    seen.open_block = event["index"]


def _open_block(seen: MessagesStream, event: dict[str, Any]) -> dict[str, Any]:
    assert event["index"] == seen.open_block, f"{event['type']} of a block not open: {event}"
    block: dict[str, Any] = seen.blocks[event["index"]]
    return block


def _check_delta(block: dict[str, Any], event: dict[str, Any]) -> None:
    delta = event["delta"]
    if delta["type"] == "citations_delta":
        assert block["type"] == "text", "only texts cite"
        block["citations"] = [*(block.get("citations") or []), delta["citation"]]
    if delta["type"] not in DELTAS:
        return
    kind, source = DELTAS[delta["type"]]
    text = delta[source]
    if delta["type"] == "input_json_delta" and block["type"] in CALL_TYPES[1:]:
        return
    assert block["type"] == kind, f"{delta['type']} in a block of type {block['type']}"
    if kind == "thinking":
        assert not block["signature"], "signature_delta comes last"
    if delta["type"] == "input_json_delta":
        block["input"] += text
        return
    says_more = delta.keys() > {"type", source} or event.keys() > {"type", "index", "delta"}
    is_thinking = delta["type"] == "thinking_delta"  # Anthropic sends empty ones
    assert text or says_more or is_thinking, "no empty deltas"
    block[source] += text


def _check_block_stop(block: dict[str, Any], event: dict[str, Any]) -> None:
    assert event.keys() <= {"type", "index", "summary_error"}
    if "summary_error" in event:
        block["summary_error"] = event["summary_error"]
    if block["type"] == "tool_use":
        block["input"] = json.loads(block["input"] or "{}")


def _check_message_delta(seen: MessagesStream, event: dict[str, Any]) -> None:
    assert seen.open_block is None, "message_delta while a block is open"
    assert seen.stop_reason is None, "message_delta comes once"
    delta, usage = event["delta"], event["usage"]
    assert delta["stop_reason"] in STOP_REASONS
    assert isinstance(usage["output_tokens"], int)
    before = seen.usage
    for name in ("input_tokens", "output_tokens"):
        if isinstance(usage.get(name), int):
            assert usage[name] >= (before.get(name) or 0), f"{name} is cumulative"
    seen.message |= {
        **{key: delta.get(key) for key in ("stop_reason", "stop_sequence")},
        "usage": {**before, **usage},
    }


def check_message(message: dict[str, Any]) -> dict[str, Any]:
    """Assert that a whole message is legal; return it."""
    Message.model_validate(message)
    assert (message["type"], message["role"]) == ("message", "assistant")
    assert isinstance(message["id"], str)
    assert message["stop_reason"] in STOP_REASONS
    for name in ("input_tokens", "output_tokens"):
        assert isinstance(message["usage"][name], int)
    for block in message["content"]:
        _check_block(block)
    calls = [block for block in message["content"] if block["type"] == "tool_use"]
    ids = [call["id"] for call in calls]
    assert len(set(ids)) == len(ids), "ids of calls are unique"
    if message["stop_reason"] == "tool_use":
        assert any(block["type"] in CALL_TYPES for block in message["content"])
    check_attributions(ids, list(map(attribution_of, calls)))
    return message


def _check_block(block: dict[str, Any]) -> None:
    match block["type"]:
        case "text":
            assert isinstance(block["text"], str)
        case "thinking":
            assert isinstance(block["thinking"], str)
            assert isinstance(block["signature"], str)
        case "redacted_thinking":
            assert isinstance(block["data"], str)
        case "tool_use":
            assert CALL_ID.fullmatch(block["id"]), f"no id of a call: {block['id']}"
            assert isinstance(block["input"], dict), f"the input is an object: {block}"
    if "summary_error" in block:
        assert block["type"] == "thinking"
        assert block["summary_error"].keys() == {"code", "message"}


def check_error(body: dict[str, Any]) -> dict[str, Any]:
    """Assert that an error event or body is legal; return its error."""
    assert body["type"] == "error"
    error: dict[str, Any] = body["error"]
    assert error["type"] in ERROR_TYPES, f"no type of an error: {error['type']}"
    assert isinstance(error["message"], str)
    return error


def _check_with_anthropic(seen: MessagesStream) -> None:
    """Assert that Anthropic's own client accepts each event, and adds up the same message."""
    snapshot: ParsedMessage[Any] | None = None
    buffers: dict[int, bytes] = {}
    for event in seen.events:
        if event["type"] in KNOWN_EVENTS:
            parsed = RAW_EVENT.validate_python(event)
            snapshot = accumulate_event(event=parsed, current_snapshot=snapshot, json_bufs=buffers)
    if snapshot is None or not seen.stopped:
        return
    added: dict[str, Any] = snapshot.to_dict()
    for ours, theirs in zip(seen.blocks, added["content"], strict=True):
        for name in (
            "type",
            "text",
            "thinking",
            "signature",
            "data",
            "id",
            "name",
            "input",
            "citations",
        ):
            assert ours.get(name) == theirs.get(name), f"anthropic reads another {name}"
    assert added["stop_reason"] == seen.stop_reason


CHECKS: dict[str, Callable[[bytes], Any]] = {
    "chat": check_chat,
    "responses": check_responses,
    "messages": check_messages,
}
"""How a stream is checked, by the API of its client."""
