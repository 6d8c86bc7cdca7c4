"""One turn, sent by an upstream of any API to a client of any.

The turn is always the same: it reasons, answers or calls, and reports usage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.apis.messages import scripts as messages
from tests.support.asgi import Call
from tests.support.checker import check_chat, check_responses
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
BRIDGES = [(client, upstream) for client in CLIENTS for upstream in UPSTREAMS if client != upstream]
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
    """The turn, as an upstream says it."""
    said = json.dumps(ARGUMENTS)
    match api:
        case "chat":
            tools = [call(TOOL, said)] if calls else []
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
            output += [call_item(len(output), TOOL, said)] if calls else []
            return Answer(responses_stream(output)) if stream else Answer.json(response(output))
        case _:
            blocks = [messages.thinking(thought)]
            blocks += [messages.text(text)] if text else []
            blocks += [messages.tool_use(0, TOOL, **ARGUMENTS)] if calls else []
            stop = "tool_use" if calls else "end_turn"
            if stream:
                return Answer(messages.stream(blocks, stop))
            return Answer.json(messages.message(blocks, stop))


def asking(api: str, *, stream: bool, summary: str | None = "auto", **more: Any) -> dict[str, Any]:
    """A client's request."""
    reasoning = {"reasoning": {"summary": summary}} if summary else {}
    body = {"model": "thinker-1", "stream": stream, **reasoning}
    if api == "chat":
        options = {"stream_options": {"include_usage": True}} if stream else {}
        return {**body, "messages": [{"role": "user", "content": "Hi"}], **options, **more}
    return {**body, "input": "Hi", **more}


@dataclass
class Heard:
    """What a client got, whatever the API."""

    text: str = ""
    summary: str = ""
    raw: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    call_ids: list[str] = field(default_factory=list)
    finish: str = ""
    usage: Mapping[str, Any] | None = None
    body: dict[str, Any] = field(default_factory=dict)


def hear(api: str, came: Call, *, stream: bool) -> Heard:
    """Read a client's answer, strictly."""
    if api == "chat":
        return _hear_chat(came, stream=stream)
    final = check_responses(came.data).response if stream else came.json
    heard = Heard(usage=final["usage"], finish=final["status"], body=final)
    for item in final["output"]:
        if item["type"] == "reasoning":
            heard.summary += "\n\n".join(part["text"] for part in item["summary"])
            heard.raw += "".join(part["text"] for part in item.get("content") or ())
        elif item["type"] == "message":
            heard.text += "".join(part["text"] for part in item["content"])
        else:
            heard.calls.append((item["name"], json.loads(item["arguments"])))
            heard.call_ids.append(item["call_id"])
    return heard


def _hear_chat(came: Call, *, stream: bool) -> Heard:
    if not stream:
        body = came.json
        choice = body["choices"][0]
        heard = Heard(usage=body["usage"], finish=choice["finish_reason"], body=body)
        return _told(heard, choice["message"])
    seen = check_chat(came.data)
    assert seen.done
    state = seen.choices[0]
    heard = Heard(usage=seen.usage, finish=state.finish or "", body={"choices": seen.choices})
    calls = [{"id": called["id"], "function": called} for called in state.calls.values()]
    said = {"content": state.text, "tool_calls": calls, **state.fields}
    return _told(heard, said)


def _told(heard: Heard, message: dict[str, Any]) -> Heard:
    heard.text = message.get("content") or ""
    heard.summary = message.get("reasoning_content") or ""
    heard.raw = message.get("reasoning") or ""
    for called in message.get("tool_calls") or ():
        function = called["function"]
        heard.calls.append((function["name"], json.loads(function["arguments"])))
        heard.call_ids.append(called["id"])
    return heard
