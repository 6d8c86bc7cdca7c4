"""Read the answer out of the stream of any client API, in the same words for all of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from abridge.apis.api import Api
from tests.support.checker import check_chat, check_responses
from tests.support.messages_checker import check_messages

MESSAGES_STOPS = {
    "end_turn": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
RESPONSES_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}


@dataclass
class Said:
    """What a client has read. `stop` is in the words of Chat Completions, and None if the answer
    failed; the arguments of its calls are parsed."""

    text: str
    calls: list[tuple[str, Any]] = field(default_factory=list)
    stop: str | None = None
    failure: str | None = None


def read_said(client: Api, stream: bytes) -> Said:
    """Check a stream and read its answer: of one that failed the text alone."""
    read = {"chat": _read_chat, "responses": _read_responses, "messages": _read_messages}
    return read[client.name](stream)


def _read_chat(stream: bytes) -> Said:
    seen = check_chat(stream)
    choice = seen.choices.get(0)
    failure = None if seen.error is None else seen.error["message"]
    if choice is None or failure is not None:
        return Said("" if choice is None else choice.text, failure=failure)
    calls = [
        (call["name"], json.loads(call["arguments"] or "{}")) for call in choice.calls.values()
    ]
    return Said(choice.text, calls, choice.finish)


def _read_responses(stream: bytes) -> Said:
    response = check_responses(stream).response
    output = response["output"]
    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    text = "".join(part.get("text", "") for part in parts)
    called = [item for item in output if item["type"] == "function_call"]
    if response["status"] == "failed":
        return Said(text, failure=response["error"]["message"])
    calls = [(call["name"], json.loads(call["arguments"])) for call in called]
    stop = "tool_calls" if calls else "stop"
    if response["status"] == "incomplete":
        stop = RESPONSES_REASONS[response["incomplete_details"]["reason"]]
    return Said(text, calls, stop)


def _read_messages(stream: bytes) -> Said:
    seen = check_messages(stream)
    if seen.error is not None:
        return Said(seen.text, failure=seen.error["message"])
    calls = [(call["name"], call["input"]) for call in seen.calls]
    stop = MESSAGES_STOPS[str(seen.stop_reason)]
    return Said(seen.text, calls, stop)
