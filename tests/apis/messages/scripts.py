"""Scripted Anthropic answers, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

from abridge.apis.display import Display
from abridge.apis.messages.api import MESSAGES
from abridge.apis.protocols import Reader
from abridge.core.events import Event
from abridge.providers.catalog import PROFILES
from tests.support.streams import frame, pieces

Block = dict[str, Any]

USAGE = {
    "input_tokens": 11,
    "cache_creation_input_tokens": 5,
    "cache_read_input_tokens": 7,
    "output_tokens": 70,
    "output_tokens_details": {"thinking_tokens": 50},
}


def thinking(text: str, signature: str = "c2ln") -> Block:
    return {"type": "thinking", "thinking": text, "signature": signature}


def redacted(data: str) -> Block:
    return {"type": "redacted_thinking", "data": data}


def text(piece: str) -> Block:
    return {"type": "text", "text": piece}


def tool_use(number: int = 0, name: str = "look", **arguments: Any) -> Block:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}


def search(number: int = 0) -> list[Block]:
    """Return the block that a server's tool leaves in an answer."""
    call = {"type": "server_tool_use", "id": f"srv_{number}", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": f"srv_{number}", "content": []}
    return [call, result]


def message(content: list[Block], stop: str | None = "end_turn", **more: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-5",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": USAGE,
        **more,
    }


def event(kind: str, **fields: Any) -> bytes:
    return frame({"type": kind, **fields}, kind)


def start(index: int, block: Block) -> bytes:
    return event("content_block_start", index=index, content_block=block)


def delta(index: int, kind: str, **piece: Any) -> bytes:
    return event("content_block_delta", index=index, delta={"type": f"{kind}_delta", **piece})


def stop(index: int) -> bytes:
    return event("content_block_stop", index=index)


def begin() -> bytes:
    first = {**USAGE, "output_tokens": 1, "output_tokens_details": None}
    return event("message_start", message=message([], None, usage=first))


def finish_at_once(reason: str = "end_turn") -> list[bytes]:
    """Return the end as Anthropic sends it today."""
    change = {"stop_reason": reason, "stop_sequence": None}
    return [event("message_delta", delta=change, usage=USAGE), event("message_stop")]


def finish(reason: str = "end_turn") -> list[bytes]:
    change = event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 70})
    details = event("message_delta", delta={"stop_reason": None}, usage=USAGE)
    return [details, change, event("message_stop")]


def stream(content: list[Block], reason: str = "end_turn") -> list[bytes]:
    """Return the events in which these blocks stream."""
    frames = [begin(), event("ping")]
    for index, block in enumerate(content):
        frames += [*_block(index, block), stop(index)]
    return [*frames, *finish_at_once(reason)]


def _block(index: int, block: Block) -> list[bytes]:
    match block["type"]:
        case "thinking":
            deltas = [
                delta(index, "thinking", thinking=piece) for piece in pieces(block["thinking"])
            ]
            signature = block["signature"]
            signing = [delta(index, "signature", signature=signature)] if signature else []
            return [start(index, {**block, "thinking": "", "signature": ""}), *deltas, *signing]
        case "text":
            deltas = [delta(index, "text", text=piece) for piece in pieces(block["text"])]
            return [start(index, {**block, "text": ""}), *deltas]
        case "tool_use" | "server_tool_use":
            arguments = json.dumps(block["input"]) if block["input"] else ""
            deltas = [
                delta(index, "input_json", partial_json=piece) for piece in ("", *pieces(arguments))
            ]
            return [start(index, {**block, "input": {}}), *deltas]
        case _:
            return [start(index, block)]


def reader(limit: int = 1 << 20, display: Display | None = None) -> Reader:
    """Return a reader of translated events."""
    return MESSAGES.upstream.translating_reader(PROFILES["auto"], display or Display(), limit)


def read_frames(frames: list[bytes], by: Reader | None = None) -> list[Event]:
    """Return all events read from a stream."""
    by = by or reader()
    return [*(event for frame in frames for event in by.read(frame)), *by.end()]
