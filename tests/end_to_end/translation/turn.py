"""One turn, sent by an upstream of any API to a client of any.

The turn is always the same: it reasons, answers or calls, and reports usage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.apis.gemini import scripts as gemini
from tests.apis.interactions import scripts as interactions
from tests.apis.messages import scripts as messages
from tests.support.asgi import Call
from tests.support.checker import check_chat, check_responses
from tests.support.messages_checker import check_message, check_messages
from tests.support.streams import (
    THOUGHT,
    call,
    call_item,
    chat_stream,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.upstream import Answer

CLIENTS = ("chat", "responses")
UPSTREAMS = ("chat", "responses", "messages")
ALL_UPSTREAMS = (*UPSTREAMS, "gemini", "interactions")
"""Those of clients as well, and those that only upstreams speak."""

BRIDGES = [(client, upstream) for client in CLIENTS for upstream in UPSTREAMS if client != upstream]
ALL_BRIDGES = [
    (client, upstream) for client in UPSTREAMS for upstream in ALL_UPSTREAMS if client != upstream
]
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}
WORDS = "It is one hundred."
TOOL = "look"
ARGUMENTS = {"where": "here"}


def answer(
    api: str, *, stream: bool, thought: str = THOUGHT, text: str = WORDS, calls: bool = False
) -> Answer:
    """Return the turn as an upstream of the API sends it."""
    arguments = json.dumps(ARGUMENTS)
    match api:
        case "chat":
            tools = [call(TOOL, arguments)] if calls else []
            finish = "tool_calls" if calls else "stop"
            if stream:
                return Answer(chat_stream(thought, text, calls=tools, finish=finish))
            message = {"content": text, "reasoning_content": thought, "tool_calls": tools or None}
            body = completion(message)
            body["choices"][0]["finish_reason"] = finish
            return Answer.json(body)
        case "responses":
            output = [reasoning_item(0, thought)]
            output += [message_item(1, text)] if text else []
            output += [call_item(len(output), TOOL, arguments)] if calls else []
            return Answer(responses_stream(output)) if stream else Answer.json(response(output))
        case "gemini":
            parts = [gemini.thought(thought)]
            parts += [gemini.text(text)] if text else []
            parts += [gemini.function_call("fc_1", TOOL, **ARGUMENTS)] if calls else []
            return Answer(gemini.stream(parts)) if stream else Answer.json(gemini.whole(parts))
        case "interactions":
            steps = [interactions.thought(thought)]
            steps += [interactions.output(text)] if text else []
            steps += [interactions.function_call("fc_1", TOOL, **ARGUMENTS)] if calls else []
            if stream:
                return Answer(interactions.stream(steps))
            return Answer.json(interactions.whole(steps))
        case _:
            blocks = [messages.thinking(thought)]
            blocks += [messages.text(text)] if text else []
            blocks += [messages.tool_use(0, TOOL, **ARGUMENTS)] if calls else []
            stop = "tool_use" if calls else "end_turn"
            if stream:
                return Answer(messages.stream(blocks, stop))
            return Answer.json(messages.message(blocks, stop))


def request_body(
    api: str, *, stream: bool, summary: str | None = "auto", **more: Any
) -> dict[str, Any]:
    """Return a client's request body."""
    reasoning = {"reasoning": {"summary": summary}} if summary else {}
    body = {"model": "thinker-1", "stream": stream, **reasoning}
    if api == "chat":
        options = {"stream_options": {"include_usage": True}} if stream else {}
        return {**body, "messages": [{"role": "user", "content": "Hi"}], **options, **more}
    if api == "messages":
        user = {"role": "user", "content": "Hi"}
        return {**body, "max_tokens": 4000, "messages": [user], **more}
    return {**body, "input": "Hi", **more}


@dataclass
class ClientAnswer:
    """A client's answer, independent of the API. Messages has one place for summary and raw."""

    text: str = ""
    summary: str = ""
    raw: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    call_ids: list[str] = field(default_factory=list)
    finish: str = ""
    usage: Mapping[str, Any] | None = None
    body: dict[str, Any] = field(default_factory=dict)


def read_answer(api: str, reply: Call, *, stream: bool) -> ClientAnswer:
    """Read and check a client's answer."""
    if api == "chat":
        return _read_chat(reply, stream=stream)
    if api == "messages":
        return _read_messages(reply, stream=stream)
    final = check_responses(reply.data).response if stream else reply.json
    received = ClientAnswer(usage=final["usage"], finish=final["status"], body=final)
    for item in final["output"]:
        if item["type"] == "reasoning":
            received.summary += "\n\n".join(part["text"] for part in item["summary"])
            received.raw += "".join(part["text"] for part in item.get("content") or ())
        elif item["type"] == "message":
            received.text += "".join(part["text"] for part in item["content"])
        elif item["type"] != "image_generation_call":
            received.calls.append((item["name"], json.loads(item["arguments"])))
            received.call_ids.append(item["call_id"])
    return received


def _read_chat(reply: Call, *, stream: bool) -> ClientAnswer:
    if not stream:
        body = reply.json
        choice = body["choices"][0]
        received = ClientAnswer(usage=body["usage"], finish=choice["finish_reason"], body=body)
        return _fill(received, choice["message"])
    seen = check_chat(reply.data)
    assert seen.done
    state = seen.choices[0]
    received = ClientAnswer(
        usage=seen.usage, finish=state.finish or "", body={"choices": seen.choices}
    )
    calls = [{"id": called["id"], "function": called} for called in state.calls.values()]
    message = {"content": state.text, "tool_calls": calls, **state.fields}
    return _fill(received, message)


def _read_messages(reply: Call, *, stream: bool) -> ClientAnswer:
    body = check_messages(reply.data).message if stream else check_message(reply.json)
    received = ClientAnswer(usage=body["usage"], finish=body["stop_reason"], body=body)
    for block in body["content"]:
        if block["type"] == "tool_use":
            received.calls.append((block["name"], block["input"]))
            received.call_ids.append(block["id"])
        else:
            received.text += block.get("text", "")
            received.summary += block.get("thinking", "")
    return received


def _fill(received: ClientAnswer, message: dict[str, Any]) -> ClientAnswer:
    received.text = message.get("content") or ""
    received.summary = message.get("reasoning_content") or ""
    received.raw = message.get("reasoning") or ""
    for called in message.get("tool_calls") or ():
        function = called["function"]
        received.calls.append((function["name"], json.loads(function["arguments"])))
        received.call_ids.append(called["id"])
    return received
