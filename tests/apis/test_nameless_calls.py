"""A call that upstream does not name is not lost: the client can tell the model so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.api import Api, UpstreamOptions
from abridge.apis.chat.api import CHAT
from abridge.apis.chat.tools import MAX_NAMELESS
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from abridge.providers.catalog import PROFILES
from tests.apis.messages import scripts
from tests.support.checker import check_chat, check_responses
from tests.support.messages_checker import check_message, check_messages
from tests.support.pipeline import Pipeline
from tests.support.streams import (
    call,
    call_item,
    chat_stream,
    chunk,
    completion,
    numbered,
    response,
    responses_stream,
)

Json = dict[str, Any]

APIS: dict[str, Api] = {api.name: api for api in (CHAT, RESPONSES, MESSAGES)}
ARGUMENTS = {"q": 17}
SPELLED = json.dumps(ARGUMENTS)
NAMES = ("", None, "two words")
"""Where reasoning is hidden, what is more than one word is no name."""

all_clients = pytest.mark.parametrize("client", [*APIS])


def answer(upstream: str, name: str | None, *, stream: bool) -> bytes:
    made: Any
    match upstream:
        case "chat":
            one = call("", SPELLED)
            _set_name(one["function"], name)
            made = completion({"tool_calls": [one]})
            made["choices"][0]["finish_reason"] = "tool_calls"
            streamed = chat_stream("", calls=[one], finish="tool_calls")
        case "responses":
            one = call_item(0, "", SPELLED)
            _set_name(one, name)
            made, streamed = response([one]), responses_stream([one])
        case _:
            one = scripts.tool_use(0, "", **ARGUMENTS)
            _set_name(one, name)
            made = scripts.message([one], "tool_use")
            streamed = scripts.stream([one], "tool_use")
    return b"".join(streamed) if stream else json.dumps(made).encode()


def _set_name(call: Json, name: str | None) -> None:
    del call["name"]
    if name is not None:
        call["name"] = name


def calls_seen(client: str, out: bytes, *, stream: bool) -> list[tuple[str, Any]]:
    """Return the names and arguments of the calls, of an answer that ends with calls."""
    seen = {"chat": _seen_by_chat, "responses": _seen_by_responses, "messages": _seen_by_messages}
    return seen[client](out, stream=stream)


def _seen_by_chat(out: bytes, *, stream: bool) -> list[tuple[str, Any]]:
    if stream:
        choice = check_chat(out).choices[0]
        finish, calls = choice.finish, list(choice.calls.values())
    else:
        (whole,) = json.loads(out)["choices"]
        finish = whole["finish_reason"]
        calls = [call["function"] for call in whole["message"]["tool_calls"]]
    assert finish == "tool_calls"
    return [(call.get("name") or "", json.loads(call["arguments"])) for call in calls]


def _seen_by_responses(out: bytes, *, stream: bool) -> list[tuple[str, Any]]:
    whole = check_responses(out).response if stream else json.loads(out)
    assert whole["status"] == "completed"
    return [(item.get("name") or "", json.loads(item["arguments"])) for item in whole["output"]]


def _seen_by_messages(out: bytes, *, stream: bool) -> list[tuple[str, Any]]:
    if stream:
        seen = check_messages(out)
        blocks, reason = seen.blocks, seen.stop_reason
    else:
        whole = check_message(json.loads(out))
        blocks, reason = whole["content"], whole["stop_reason"]
    assert reason == "tool_use"
    return [(block["name"], block["input"]) for block in blocks]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("upstream", [*APIS])
@all_clients
@pytest.mark.parametrize("stream", [True, False])
def test_a_call_without_a_name_arrives(
    client: str, upstream: str, name: str | None, *, stream: bool
) -> None:
    translated = None if client == upstream else upstream
    pipeline = Pipeline(APIS[client], upstream=translated, expose="summary")
    sent = answer(upstream, name, stream=stream)
    out = pipeline.stream(sent) if stream else pipeline.whole(sent)
    assert calls_seen(client, out, stream=stream) == [("", ARGUMENTS)]


@pytest.mark.parametrize("client", ["responses", "messages"])
@pytest.mark.parametrize("finish", ["tool_calls", "length"])
def test_its_fragments_are_put_together(client: str, finish: str) -> None:
    """Also where another call follows, and where the answer is cut."""
    head = {"index": 0, "id": "call_0"}
    first = [{**head, "function": {"arguments": piece}} for piece in ('{"q":', "17}")]
    out = Pipeline(APIS[client], upstream="chat").stream(
        b"".join(chat_stream("", calls=[*first, call("ask", "{}", 1)], finish=finish))
    )
    if client == "responses":
        items = check_responses(out).response["output"]
        seen = [(item["name"], item["arguments"]) for item in items]
    else:
        seen = [(block["name"], json.dumps(block["input"])) for block in check_messages(out).calls]
    assert sorted(seen) == [("", '{"q":17}' if client == "responses" else SPELLED), ("ask", "{}")]


@pytest.mark.parametrize("client", ["responses", "messages"])
def test_a_fragment_that_says_nothing_is_no_call(client: str) -> None:
    out = Pipeline(APIS[client], upstream="chat").stream(
        b"".join(chat_stream("", "So.", calls=[{"index": 0, "function": {"arguments": ""}}]))
    )
    assert (b"function_call" if client == "responses" else b"tool_use") not in out


def test_no_more_than_so_much_waits_for_a_name() -> None:
    pipeline = Pipeline(RESPONSES, upstream="chat")
    fragment = {"index": 0, "function": {"arguments": "x" * 1024}}
    for _ in range(MAX_NAMELESS // 1024 + 1):
        pipeline.frame(chunk({"tool_calls": [fragment]}))
    assert b"function_call" in pipeline.out


def test_arguments_that_came_before_the_name_come_with_it() -> None:
    item = call_item(0, "look", "")
    at = {"output_index": 0, "item_id": item["id"]}
    events = [
        {"type": "response.created", "response": response([])},
        {"type": "response.output_item.added", **at, "item": {**item, "name": ""}},
        {"type": "response.function_call_arguments.delta", **at, "delta": SPELLED},
        {"type": "response.output_item.done", **at, "item": item},
        {"type": "response.completed", "response": response([])},
    ]
    out = Pipeline(CHAT, upstream="responses").stream(b"".join(numbered(*events)))
    assert calls_seen("chat", out, stream=True) == [("look", ARGUMENTS)]


@all_clients
@pytest.mark.parametrize("upstream", [*APIS])
def test_it_returns_to_upstream_with_its_result(client: str, upstream: str) -> None:
    call_made = {"id": "c", "type": "function", "function": {"name": "", "arguments": SPELLED}}
    use = {"type": "tool_use", "id": "c", "name": "", "input": ARGUMENTS}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "No such tool."}
    item = {"type": "function_call", "call_id": "c", "name": "", "arguments": SPELLED}
    output = {"type": "function_call_output", "call_id": "c", "output": "No such tool."}
    bodies: dict[str, Json] = {
        "chat": {
            "messages": [
                {"role": "assistant", "content": None, "tool_calls": [call_made]},
                {"role": "tool", "tool_call_id": "c", "content": "No such tool."},
            ]
        },
        "responses": {"input": [item, output]},
        "messages": {
            "messages": [
                {"role": "assistant", "content": [use]},
                {"role": "user", "content": [result]},
            ]
        },
    }
    request = APIS[client].read_request({"model": "m", "max_tokens": 9, **bodies[client]})
    written = APIS[upstream].upstream.write_request(request, UpstreamOptions(PROFILES["auto"]))
    assert "No such tool." in json.dumps(written.body)
