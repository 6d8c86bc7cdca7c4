"""What a request may hold, and what the event loop has to do for one that holds much."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from abridge.middleware import AbridgeMiddleware
from tests.support.asgi import Call, begin
from tests.support.deployments import settings_for
from tests.support.loop_turns import MANY_CALLS, counting_calls
from tests.support.streams import chat_stream, message_item, reasoning_item, responses_stream
from tests.support.upstream import Answer, Upstream

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
LONG_NAME = "m" * 257
TWO_UPSTREAMS = [
    {"name": "one", "base_url": "https://one.test/v1", "models": ["m*"]},
    {"name": "two", "base_url": "https://two.test/v1"},
]
FIELDS = {CHAT: "messages", RESPONSES: "input"}
STREAMS = {
    CHAT: chat_stream("Thought.", "Hello."),
    RESPONSES: responses_stream([reasoning_item(0, "Thought."), message_item(1, "Hello.")]),
}
ITEM = {"role": "assistant", "content": "Hello."}


def wrap(upstream: Any, **tables: Any) -> AbridgeMiddleware:
    tables = {"summary": {"default": "auto"}, **tables}
    return AbridgeMiddleware(upstream, settings_for(**tables), registry=CollectorRegistry())


def body_with(path: str, items: list[Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", FIELDS[path]: items, "stream": True, **fields}


async def ask(path: str, body: dict[str, Any], **tables: Any) -> tuple[Call, Upstream]:
    upstream = Upstream(Answer(chat_stream("", "Hello.")))
    request = begin(wrap(upstream, **tables), path, body)
    await request.finish()
    return request, upstream


@pytest.mark.parametrize("path", FIELDS)
@pytest.mark.parametrize("count", [3, 4])
async def test_more_items_than_the_limit_are_an_error_that_names_it(path: str, count: int) -> None:
    body = body_with(path, [ITEM] * count)
    request, upstream = await ask(path, body, limits={"items": 3})
    assert bool(upstream.requests) is (count == 3)
    if count > 3:
        assert request.status == 400
        error = request.json["error"]
        assert (error["param"], error["code"]) == (FIELDS[path], "array_above_max_length")
        assert "length 3 (limits.items)" in error["message"]


@pytest.mark.parametrize("path", FIELDS)
@pytest.mark.parametrize("count", [100, 101])
async def test_more_values_than_the_limit_are_an_error_that_names_it(path: str, count: int) -> None:
    body = body_with(path, [ITEM], stop=[0] * count)
    limit = 100 + 8  # the body, model, the list of items, its item with two fields, stream, stop
    request, upstream = await ask(path, body, limits={"values": limit})
    assert bool(upstream.requests) is (count == 100)
    if count > 100:
        assert request.status == 400
        assert request.json["error"]["code"] == "too_many_values"
        assert f"The limit is {limit} (limits.values)." in request.json["error"]["message"]


async def test_commas_and_brackets_of_a_text_are_no_values() -> None:
    body = body_with(CHAT, [{"role": "user", "content": '[{,\\"' * 1000}])
    _, upstream = await ask(CHAT, body, limits={"values": 20})
    assert upstream.requests


async def test_values_count_against_the_memory_for_bodies() -> None:
    limits = {"body": "1MiB", "bodies": "1MiB"}
    text = body_with(CHAT, [{"role": "user", "content": "a" * 200_000}])
    _, upstream = await ask(CHAT, text, limits=limits)
    assert upstream.requests
    values = body_with(CHAT, [ITEM], stop=[[]] * 66_000)
    request, upstream = await ask(CHAT, values, limits=limits)
    assert not upstream.requests
    assert (request.status, request.json["error"]["code"]) == (503, "overloaded")


async def test_a_model_is_not_looked_for_among_more_values_than_the_limit() -> None:
    upstreams = [{"name": name, "models": [name]} for name in ("a", "b")]
    body = {"model": "b", "input": [0] * 100}
    limits = {"values": 100}
    request, upstream = await ask("/v1/embeddings", body, upstreams=upstreams, limits=limits)
    assert not upstream.requests
    assert request.status == 400


def conversation(path: str, count: int) -> list[Any]:
    """Return many items in which there is something to change: texts that may be summaries."""
    if path == CHAT:
        return [
            {"role": "assistant", "content": "A", "reasoning": f"Thought {n}"} for n in range(count)
        ]
    summary = [{"type": "summary_text", "text": "Thought"}]
    return [
        item
        for n in range(count)
        for item in (
            {"type": "reasoning", "summary": summary},
            {"type": "message", "role": "assistant", "content": f"A {n}"},
        )
    ]


async def count_calls(path: str, count: int, **tables: Any) -> int:
    """Return the most calls of Python functions that one turn of the event loop takes, for a
    request of so many items."""
    stream = STREAMS[tables.pop("speaks", path)]
    body = body_with(path, conversation(path, count))
    request = begin(wrap(Upstream(Answer(stream)), **tables), path, body)
    with counting_calls() as turns:
        await asyncio.wait_for(request.finish(), 60)
    assert request.status == 200
    return max(turns)


@pytest.mark.parametrize("path", FIELDS)
@pytest.mark.parametrize(
    "tables",
    [
        {},
        {"upstreams": [{"api": "chat"}], "speaks": CHAT},
        {"upstreams": [{"api": "responses"}], "speaks": RESPONSES},
        {"reasoning": {"expose": "none"}},
        {"history": {"restore": "always", "keep": "all"}},
        {"history": {"keep": "none"}},
    ],
    ids=json.dumps,
)
async def test_no_turn_of_the_event_loop_is_long_for_a_long_conversation(
    path: str, tables: dict[str, Any]
) -> None:
    assert await count_calls(path, 8_000, **tables) < MANY_CALLS


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize("length", [256, 257])
async def test_a_longer_name_of_a_model_is_an_error_in_the_shape_of_the_api(
    path: str, length: int
) -> None:
    body = {"messages": [], "input": "Hi", "max_tokens": 9, "model": "m" * length, "stream": True}
    request, upstream = await ask(path, body)
    assert bool(upstream.requests) is (length == 256)
    if length > 256:
        error = request.json["error"]
        assert request.status == 400
        assert "'model'" in error["message"]
        assert error["type"] == "invalid_request_error"
        assert error.get("param") == (None if path == MESSAGES else "model")


async def test_so_is_that_of_a_fallback() -> None:
    request, upstream = await ask(CHAT, body_with(CHAT, [ITEM], models=["m", LONG_NAME]))
    assert (request.status, request.json["error"]["param"]) == (400, "models[1]")
    assert not upstream.requests


@pytest.mark.parametrize(
    ("tables", "is_read"), [({}, False), ({"upstreams": TWO_UPSTREAMS}, True)], ids=["one", "two"]
)
async def test_a_name_that_is_not_read_may_be_any(tables: dict[str, Any], *, is_read: bool) -> None:
    tables = {"summary": {"default": "off"}, **tables}
    for path in ("/v1/embeddings", CHAT):
        request, upstream = await ask(path, {"model": LONG_NAME, "input": "Hi"}, **tables)
        assert (request.status == 400, not upstream.requests) == (is_read, is_read)
