"""Encode turns and parse answers in each API of the fault matrix.

What a client should receive of a broken stream is what upstream sent until then, so one parser
reads both.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.apis.messages import scripts as messages
from tests.end_to_end.faults.turns import Kind, ParsedAnswer, Turn
from tests.support.checker import Choice, check_chat, check_responses
from tests.support.messages_checker import check_begun_messages, check_error, check_message
from tests.support.streams import (
    CHAT_USAGE,
    DONE,
    RESPONSES_USAGE,
    call,
    call_item,
    chunk,
    completion,
    frame,
    message_item,
    pieces,
    reasoning_item,
    response,
    responses_stream,
)

SPENT: int = RESPONSES_USAGE["output_tokens"]  # type: ignore[assignment]
"""The output tokens that either model reports for an answer."""


@dataclass(frozen=True)
class Dialect:
    """An API: `stream` and `whole` encode a turn, `parse_stream` and `parse_body` read one.

    `wish` requests a summary beside the `question`.
    `reasoning_mark` is in each frame that holds reasoning, and in no other.
    """

    name: str
    path: str
    question: dict[str, Any]
    wish: dict[str, Any]
    reasoning_mark: bytes
    error: bytes
    tokens: tuple[str, str]
    stream: Callable[[Turn], list[bytes]]
    whole: Callable[[Turn], dict[str, Any]]
    parse_stream: Callable[[bytes], ParsedAnswer]
    parse_body: Callable[[dict[str, Any]], ParsedAnswer]


# Chat Completions


def _chat_stream(turn: Turn) -> list[bytes]:
    chunks = [chunk({"role": "assistant", "content": ""})]
    calls = 0
    for kind, text in turn.steps:
        if kind is Kind.CALL:
            half = len(text) // 2
            rest = {"index": calls, "function": {"arguments": text[half:]}}
            begun = call("add", text[:half], calls)
            chunks += [chunk({"tool_calls": [fragment]}) for fragment in (begun, rest)]
            calls += 1
        else:
            field = "content" if kind is Kind.TEXT else "reasoning_content"
            chunks += [chunk({field: piece}) for piece in pieces(text)]
    finish = chunk({}, finish="tool_calls" if calls else "stop")
    return [*chunks, finish, chunk(usage=CHAT_USAGE), DONE]


def _chat_whole(turn: Turn) -> dict[str, Any]:
    texts = [text for kind, text in turn.steps if kind is Kind.CALL]
    body = completion({})
    body["choices"][0]["message"] = {
        "role": "assistant",
        "reasoning_content": turn.all(Kind.THOUGHT),
        "content": turn.all(Kind.TEXT),
        "tool_calls": [call("add", text, number) for number, text in enumerate(texts)],
    }
    return body


def _parse_chat_stream(data: bytes) -> ParsedAnswer:
    seen = check_chat(data)
    choice = seen.choices.get(0, Choice())
    thought = choice.fields.get("reasoning_content", "")
    return ParsedAnswer(
        thought=thought,
        summary=thought,
        text=choice.text,
        arguments="".join(call["arguments"] for call in choice.calls.values()),
        items=bool(thought),
        code=(choice.summary_error or {}).get("code"),
        usage=seen.usage,
        failed=seen.error is not None,
        complete=seen.done,
    )


def _parse_chat_body(body: dict[str, Any]) -> ParsedAnswer:
    message = body["choices"][0]["message"]
    thought = message.get("reasoning_content", "")
    return ParsedAnswer(
        thought=thought,
        summary=thought,
        text=message["content"],
        arguments="".join(call["function"]["arguments"] for call in message["tool_calls"]),
        items=bool(thought),
        code=message.get("summary_error", {}).get("code"),
        usage=body["usage"],
        complete=True,
    )


# Responses


def _items(turn: Turn) -> list[dict[str, Any]]:
    make: dict[Kind, Callable[[int, str], dict[str, Any]]] = {
        Kind.THOUGHT: reasoning_item,
        Kind.TEXT: message_item,
        Kind.CALL: lambda number, text: call_item(number, "add", text),
    }
    return [make[kind](number, text) for number, (kind, text) in enumerate(turn.steps)]


def _parse_responses_stream(data: bytes) -> ParsedAnswer:
    seen = check_responses(data)
    kind = seen.terminal["type"] if seen.terminal is not None else ""
    done = [item.done for item in seen.reasoning if item.done is not None]
    codes = [item["summary_error"]["code"] for item in done if "summary_error" in item]
    return ParsedAnswer(
        thought=seen.raw,
        summary="\n\n".join(seen.summary),
        text=seen.text,
        arguments="".join(item.arguments for item in seen.items.values()),
        items=len(seen.reasoning),
        code=codes[0] if codes else None,
        usage=seen.response["usage"] if seen.terminal is not None else None,
        failed=bool(seen.errors) or kind == "response.failed",
        complete=kind == "response.completed",
    )


def _parse_responses_body(body: dict[str, Any]) -> ParsedAnswer:
    items: dict[str, list[dict[str, Any]]] = {"reasoning": [], "message": [], "function_call": []}
    for item in body["output"]:
        items[item["type"]].append(item)
    reasoning = items["reasoning"]
    codes = [item["summary_error"]["code"] for item in reasoning if "summary_error" in item]
    return ParsedAnswer(
        thought="".join(part["text"] for item in reasoning for part in item["content"]),
        summary="\n\n".join(part["text"] for item in reasoning for part in item["summary"]),
        text="".join(item["content"][0]["text"] for item in items["message"]),
        arguments="".join(item["arguments"] for item in items["function_call"]),
        items=len(reasoning),
        code=codes[0] if codes else None,
        usage=body["usage"],
        complete=body["status"] == "completed",
    )


# Anthropic Messages


def _blocks(turn: Turn) -> list[dict[str, Any]]:
    make: dict[Kind, Callable[[int, str], dict[str, Any]]] = {
        Kind.THOUGHT: lambda _, text: messages.thinking(text),
        Kind.TEXT: lambda _, text: messages.text(text),
        Kind.CALL: lambda number, text: messages.tool_use(number, "add", **json.loads(text)),
    }
    return [make[kind](number, text) for number, (kind, text) in enumerate(turn.steps)]


def _stop_reason(turn: Turn) -> str:
    return "tool_use" if any(kind is Kind.CALL for kind, _ in turn.steps) else "end_turn"


def _parse_messages_stream(data: bytes) -> ParsedAnswer:
    seen = check_begun_messages(data)
    deltas = [event["delta"] for event in seen.events if event["type"] == "content_block_delta"]
    arguments = "".join(delta.get("partial_json", "") for delta in deltas)
    return replace(
        _parse_blocks(seen.blocks, seen.usage if seen.stop_reason is not None else None),
        arguments=arguments,
        failed=seen.error is not None,
        complete=seen.stopped,
    )


def _parse_messages_body(body: dict[str, Any]) -> ParsedAnswer:
    parsed = _parse_blocks(check_message(body)["content"], body["usage"])
    return replace(parsed, complete=True)


def _parse_blocks(blocks: list[dict[str, Any]], usage: dict[str, Any] | None) -> ParsedAnswer:
    thoughts = [block["thinking"] for block in blocks if block["type"] == "thinking"]
    codes = [block["summary_error"]["code"] for block in blocks if "summary_error" in block]
    calls = [json.dumps(block["input"]) for block in blocks if block["type"] == "tool_use"]
    return ParsedAnswer(
        thought="".join(thoughts),
        summary="\n\n".join(thoughts),
        text="".join(block["text"] for block in blocks if block["type"] == "text"),
        arguments="".join(calls),
        items=len(thoughts),
        code=codes[0] if codes else None,
        usage=usage,
    )


ERROR = {"message": "The model broke.", "type": "server_error", "code": "500", "param": None}

CHAT = Dialect(
    "chat",
    "/v1/chat/completions",
    {"messages": [{"role": "user", "content": "Hi"}]},
    {"reasoning": {"summary": "auto"}},
    b'"reasoning_content"',
    frame({"error": ERROR}),
    ("prompt_tokens", "completion_tokens"),
    _chat_stream,
    _chat_whole,
    _parse_chat_stream,
    _parse_chat_body,
)
RESPONSES = Dialect(
    "responses",
    "/v1/responses",
    {"input": "Hi"},
    {"reasoning": {"summary": "auto"}},
    b'"output_index": 0',
    frame({**ERROR, "type": "error", "sequence_number": 0}, "error"),
    ("input_tokens", "output_tokens"),
    lambda turn: responses_stream(_items(turn)),
    lambda turn: response(_items(turn)),
    _parse_responses_stream,
    _parse_responses_body,
)
MESSAGES = Dialect(
    "messages",
    "/v1/messages",
    {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1000},
    {"thinking": {"type": "adaptive"}},
    b'"thinking_delta"',
    messages.event("error", error={"type": "api_error", "message": "The model broke."}),
    ("input_tokens", "output_tokens"),
    lambda turn: messages.stream(_blocks(turn), _stop_reason(turn)),
    lambda turn: messages.message(_blocks(turn), _stop_reason(turn)),
    _parse_messages_stream,
    _parse_messages_body,
)
DIALECTS = {dialect.name: dialect for dialect in (CHAT, RESPONSES, MESSAGES)}

SERVER_ERRORS = ("server_error", "api_error", "timeout_error", "overloaded_error")
"""Types of errors that are not the client's fault, in the words of any API."""


def error_of(body: bytes) -> dict[str, Any]:
    """Return the error of a body, checking the shape: Anthropic's, or the one of OpenAI's APIs."""
    told = json.loads(body)
    if told.get("type") == "error":
        return check_error(told)
    problem: dict[str, Any] = told["error"]
    assert problem.keys() >= {"message", "type", "param", "code"}
    assert problem["message"]
    return problem
