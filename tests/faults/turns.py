"""What is said in the fault matrix, on either API, and how to hear it.

What a client should have got of a stream that broke is what the stream itself said until then: both
are heard by the same ear.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.checker import Choice, check_chat, check_responses
from tests.scripts import (
    THOUGHT,
    call,
    call_item,
    chat_stream,
    completion,
    frame,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)


@dataclass(frozen=True)
class Turn:
    thought: str
    text: str
    arguments: str = ""


TURN = Turn(THOUGHT, "The sum is one hundred.", '{"first": 10, "kind": "odd"}')
NOTE = Turn("What is this about?", "**Adding up**\n\nI add the numbers.")
"""What the model says, and what the summarizer does, which thinks, too."""


@dataclass(frozen=True)
class Said:
    """`thought` is what stands where raw reasoning does; on Chat Completions that is also where
    the client finds the `summary`. `code` is the summary error's; `arguments` are the tool call's.
    """

    thought: str = ""
    summary: str = ""
    text: str = ""
    arguments: str = ""
    code: str | None = None
    usage: Mapping[str, Any] | None = None
    failed: bool = False
    complete: bool = False

    @property
    def answer(self) -> tuple[str, str]:
        return self.text, self.arguments


@dataclass(frozen=True)
class Dialect:
    """An API, spoken: `stream` and `whole` say a turn, `hear` and `read` hear one. `thinks` is in
    each frame that holds reasoning, and in no other."""

    name: str
    path: str
    thinks: bytes
    error: bytes
    tokens: tuple[str, str]
    stream: Callable[[Turn], list[bytes]]
    whole: Callable[[Turn], dict[str, Any]]
    hear: Callable[[bytes], Said]
    read: Callable[[dict[str, Any]], Said]


# Chat Completions


def _chat_stream(turn: Turn) -> list[bytes]:
    if not turn.arguments:
        return chat_stream(turn.thought, turn.text)
    half = len(turn.arguments) // 2
    begun = call("add", turn.arguments[:half])
    rest = {"index": 0, "function": {"arguments": turn.arguments[half:]}}
    return chat_stream(turn.thought, turn.text, calls=[begun, rest], finish="tool_calls")


def _chat_whole(turn: Turn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    message |= {"reasoning_content": turn.thought, "content": turn.text}  # thought before answered
    if turn.arguments:
        message["tool_calls"] = [call("add", turn.arguments)]
    body = completion({})
    body["choices"][0]["message"] = message
    return body


def _hear_chat(data: bytes) -> Said:
    seen = check_chat(data)
    choice = seen.choices.get(0, Choice())
    thought = choice.fields.get("reasoning_content", "")
    return Said(
        thought=thought,
        summary=thought,
        text=choice.text,
        arguments="".join(call["arguments"] for call in choice.calls.values()),
        code=(choice.summary_error or {}).get("code"),
        usage=seen.usage,
        failed=seen.error is not None,
        complete=seen.done,
    )


def _read_chat(body: dict[str, Any]) -> Said:
    message = body["choices"][0]["message"]
    thought = message.get("reasoning_content", "")
    return Said(
        thought=thought,
        summary=thought,
        text=message["content"],
        arguments="".join(call["function"]["arguments"] for call in message.get("tool_calls", [])),
        code=message.get("summary_error", {}).get("code"),
        usage=body["usage"],
        complete=True,
    )


# Responses


def _items(turn: Turn) -> list[dict[str, Any]]:
    items = [reasoning_item(0, turn.thought), message_item(1, turn.text)]
    return [*items, call_item(2, "add", turn.arguments)] if turn.arguments else items


def _hear_responses(data: bytes) -> Said:
    seen = check_responses(data)
    kind = seen.terminal["type"] if seen.terminal is not None else ""
    done = next((item.done for item in seen.reasoning if item.done is not None), {})
    return Said(
        thought=seen.raw,
        summary="\n\n".join(seen.summary),
        text=seen.text,
        arguments="".join(item.arguments for item in seen.items.values()),
        code=done.get("summary_error", {}).get("code"),
        usage=seen.response["usage"] if seen.terminal is not None else None,
        failed=bool(seen.errors) or kind == "response.failed",
        complete=kind == "response.completed",
    )


def _read_responses(body: dict[str, Any]) -> Said:
    reasoning, message, *calls = body["output"]
    return Said(
        thought="".join(part["text"] for part in reasoning["content"]),
        summary="\n\n".join(part["text"] for part in reasoning["summary"]),
        text=message["content"][0]["text"],
        arguments="".join(call["arguments"] for call in calls),
        code=reasoning.get("summary_error", {}).get("code"),
        usage=body["usage"],
        complete=body["status"] == "completed",
    )


ERROR = {"message": "The model broke.", "type": "server_error", "code": "500", "param": None}

CHAT = Dialect(
    "chat",
    "/v1/chat/completions",
    b'"reasoning_content"',
    frame({"error": ERROR}),
    ("prompt_tokens", "completion_tokens"),
    _chat_stream,
    _chat_whole,
    _hear_chat,
    _read_chat,
)
RESPONSES = Dialect(
    "responses",
    "/v1/responses",
    b'"output_index": 0',
    frame({**ERROR, "type": "error", "sequence_number": 0}, "error"),
    ("input_tokens", "output_tokens"),
    lambda turn: responses_stream(_items(turn)),
    lambda turn: response(_items(turn)),
    _hear_responses,
    _read_responses,
)
DIALECTS = {dialect.name: dialect for dialect in (CHAT, RESPONSES)}


def error_of(body: bytes) -> dict[str, Any]:
    """An error body, in the shape that both APIs give it."""
    problem: dict[str, Any] = json.loads(body)["error"]
    assert problem.keys() >= {"message", "type", "param", "code"}
    assert problem["message"]
    return problem
