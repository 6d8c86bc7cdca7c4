"""A tool loop over two APIs: the rounds as upstream sends them and expects them back, and clients
that return more or less of them.
"""

from __future__ import annotations

import json
from typing import Any

from openai.lib.streaming._deltas import accumulate_delta

from tests.apis.messages import scripts as messages
from tests.support.asgi import Call
from tests.support.checker import check_chat, check_responses
from tests.support.streams import (
    call,
    chat_stream,
    completion,
    message_item,
    response,
    responses_stream,
)
from tests.support.upstream import Answer

Json = dict[str, Any]

ROUNDS: dict[str, tuple[str, ...]] = {
    "calls": ("think", "call", "call"),
    "text and calls": ("think", "say", "call", "call"),
    "thinking between calls": ("think", "call", "think", "call"),
    "thinking after text": ("think", "say", "think", "call"),
    "text between calls": ("think", "call", "say", "call"),
    "text before thinking": ("say", "think", "call"),
    "thinking twice": ("think", "think", "call"),
    "sealed": ("seal", "call", "seal", "call"),
    "summarized": ("sum up", "call", "sum up", "call"),
    "summarized twice": ("sum up", "sum up", "call"),
}
FOR_CHAT = ("calls", "text and calls")
"""The shapes of a chat upstream, whose rounds are one message each."""


def encode_round(api: str, number: int, shape: str) -> list[Json]:
    """Encode a round as items, or blocks, or one message."""
    made = [_each(api, f"{number}{place}", kind) for place, kind in enumerate(ROUNDS[shape])]
    if api != "chat":
        return made
    tools = [each["call"] for each in made if "call" in each]
    texts = [each for each in made if "call" not in each]
    message = {key: value for text in texts for key, value in text.items()}
    return [{"role": "assistant", "content": None, **message, "tool_calls": tools}]


def _each(api: str, at: str, kind: str) -> Json:
    thought, text = f"At {at} I look in two more places.", f"Looking, {at}."
    arguments = f'{{"where":"é",  "depth": 1{at}.0}}'  # as models write JSON, not as Python does
    if api == "chat":
        return _key(at, kind, {"think": thought, "say": text, "call": arguments}[kind])
    if api == "responses":
        return _item(at, kind, {"say": text, "call": arguments}.get(kind, thought))
    match kind:
        case "seal":
            return messages.redacted(f"red{at}==")
        case "say":
            return messages.text(text)
        case "call":
            identity = {"id": f"toolu_{at}x7Kq9ZtR4mP2s"}
            return {**messages.tool_use(0, "look", **json.loads(arguments)), **identity}
    return messages.thinking(thought, f"sig{at}==")


def _key(at: str, kind: str, text: str) -> Json:
    if kind == "call":
        made = {**call("look", text), "id": f"call_{at}x7Kq9ZtR4mP2s"}
        return {"call": {key: made[key] for key in made if key != "index"}}
    return {"reasoning_content" if kind == "think" else "content": text}


def _item(at: str, kind: str, text: str) -> Json:
    sealed = {"id": f"rs_{at}", "type": "reasoning", "encrypted_content": f"gAAAA{at}=="}
    match kind:
        case "seal":
            return {**sealed, "summary": [], "content": []}
        case "sum up":
            summary = [{"type": "summary_text", "text": f"Upstream's own words, {text}"}]
            return {**sealed, "summary": summary, "content": []}
        case "say":
            return message_item(int(at), text)
        case "call":
            called = {"call_id": f"call_{at}x7Kq9ZtR4mP2s", "name": "look", "arguments": text}
            return {"id": f"fc_{at}", "type": "function_call", "status": "completed", **called}
    content = [{"type": "reasoning_text", "text": text}]
    return {"id": f"rs_{at}", "type": "reasoning", "summary": [], "content": content}


def play(api: str, number: int, shape: str, *, stream: bool) -> Answer:
    """Return a round as an upstream of the API sends it."""
    output = encode_round(api, number, shape)
    if api == "responses":
        return _play_items(output, number, stream=stream)
    if api == "messages":
        whole = messages.message(output, "tool_use")
        return Answer(messages.stream(output, "tool_use")) if stream else Answer.json(whole)
    message = output[0]
    if not stream:
        body = completion(message)
        body["choices"][0]["finish_reason"] = "tool_calls"
        return Answer.json(body)
    thought, text = message["reasoning_content"], message["content"] or ""
    tools = [{**tool, "index": place} for place, tool in enumerate(message["tool_calls"])]
    return Answer(chat_stream(thought, text, calls=tools, finish="tool_calls"))


def _play_items(output: list[Json], number: int, *, stream: bool) -> Answer:
    named = {"id": f"resp_{number}"}
    if stream:
        return Answer(responses_stream(output, **named))
    return Answer.json(response(output, **named))


def received_items(api: str, body: Json) -> list[Json]:
    """Return what a request holds of upstream's own output."""
    if api == "responses":
        others = [item for item in body["input"] if "output" not in item]
        return [item for item in others if item.get("role", "assistant") == "assistant"]
    assistant = [message for message in body["messages"] if message["role"] == "assistant"]
    if api == "chat":
        return assistant
    return [block for message in assistant for block in message["content"]]


def comparable(each: Json) -> Json:
    """Return reasoning unchanged, and of anything else only its content."""
    if each.get("type") in ("reasoning", "thinking", "redacted_thinking"):
        return each
    if "call_id" in each:
        return {key: each[key] for key in ("call_id", "name", "arguments")}
    if each.get("type") == "message":
        content = each["content"]
        text = content if isinstance(content, str) else "".join(part["text"] for part in content)
        return {"text": text}
    return each


def client_items(client: str, reply: Call, *, stream: bool) -> list[Json]:
    """Return the client's output: items, or a message."""
    if client == "responses":
        whole = check_responses(reply.data).response if stream else reply.json
        return list(whole["output"])
    if not stream:
        return [reply.json["choices"][0]["message"]]
    message: Any = {}
    for chunk in check_chat(reply.data).chunks:
        for choice in chunk["choices"]:
            message = accumulate_delta(message, choice["delta"])
    for entry in message.get("tool_calls") or ():
        entry.pop("index", None)
    return [message]


KEEPS = ("everything", "standard fields", "the summary alone", "no ids")


def returned_items(items: list[Json], keeps: str) -> list[Json]:
    """Return the items that the client sends back."""
    if keeps == "everything":
        return items
    return [item for each in items if (item := _returned(each, keeps))]


def _returned(item: Json, keeps: str) -> Json:
    if "tool_calls" in item:
        fields = ["role", "content", "tool_calls"]
        fields += ["reasoning_content"] if keeps != "standard fields" else []
        return {key: item[key] for key in fields if key in item}
    if item["type"] == "reasoning" and keeps == "standard fields":
        return {}
    dropped = {"encrypted_content", "content"} if item["type"] == "reasoning" else set()
    dropped |= {"id", "status"} if keeps == "no ids" else set()
    dropped |= {"type"} if keeps == "no ids" and item["type"] == "message" else set()
    return {key: item[key] for key in item.keys() - dropped}


def results(items: list[Json]) -> list[Json]:
    """Return the results of the calls."""
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    tools = [entry["id"] for item in items for entry in item.get("tool_calls") or ()]
    return [
        *({"type": "function_call_output", "call_id": id_, "output": "None."} for id_ in calls),
        *({"role": "tool", "tool_call_id": id_, "content": "None."} for id_ in tools),
    ]
