"""Answers over WebSocket, on real sockets: over any upstream, in OpenAI's order."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from abridge.websocket import session
from abridge.work import LIGHT_BYTES, LIGHT_OBJECTS
from tests.apis.messages import scripts
from tests.support.loop_turns import note_calls_beside
from tests.support.servers import soon, until
from tests.support.streams import (
    THOUGHT,
    call,
    call_item,
    chat_stream,
    message_item,
    reasoning_item,
    responses_stream,
)
from tests.support.upstream import Answer, ReceivedRequest, Upstream
from tests.support.websockets import checked, front, opened

TOOL = {"type": "function", "name": "add", "parameters": {"type": "object"}}
RESULT = {"type": "function_call_output", "call_id": "call_0", "output": "3"}

CALLING = {
    "chat": chat_stream(THOUGHT, calls=[call("add", "{}")], finish="tool_calls"),
    "responses": responses_stream([reasoning_item(0, THOUGHT), call_item(0, "add", "{}")]),
    "messages": scripts.stream([scripts.thinking(THOUGHT), scripts.tool_use(0, "add")]),
}
ANSWERING = {
    "chat": chat_stream(THOUGHT, "Hello."),
    "responses": responses_stream([reasoning_item(0, THOUGHT), message_item(1, "Hello.")]),
    "messages": scripts.stream([scripts.thinking(THOUGHT), scripts.text("Hello.")]),
}
UPSTREAMS = list(CALLING)


def entry(api: str) -> dict[str, Any]:
    return {"api": "same" if api == "responses" else api}


class Conversations(Upstream):
    """Calls a tool first, and answers once it has the result."""

    def __init__(self, api: str) -> None:
        super().__init__()
        self._api = api

    def answer(self, request: ReceivedRequest) -> Answer:
        has_result = b'"3"' in request.body
        return Answer((ANSWERING if has_result else CALLING)[self._api])


@pytest.mark.parametrize("api", UPSTREAMS)
async def test_a_tool_loop_only_sends_what_is_new(api: str) -> None:
    upstream = Conversations(api)
    async with (
        front(upstream, entry=entry(api), history={"store": "none"}) as running,
        opened(running.url) as client,
    ):
        first = await client.ask(tools=[TOOL])
        (call_made,) = [item for item in first.items.values() if item.type == "function_call"]
        assert call_made.done is not None
        result = {**RESULT, "call_id": call_made.done["call_id"]}
        second = await client.ask(
            tools=[TOOL], input=[result], previous_response_id=first.response["id"]
        )
    assert first.summary
    assert second.summary
    assert second.text == "Hello."
    heard = upstream.requests[1].json
    assert "previous_response_id" not in heard
    conversation = heard.get("messages") or heard["input"]
    assert len(conversation) >= 3
    assert json.dumps(THOUGHT).strip('"').rstrip("\\n") in json.dumps(conversation)


class TestContinuation:
    async def test_a_response_that_is_stored_is_continued_by_its_id(self) -> None:
        stream = responses_stream([message_item(0, "Hello.")], store=True)
        upstream = Upstream(Answer(stream))
        async with front(upstream) as running, opened(running.url) as client:
            first = await client.ask(store=True)
            await client.ask(store=True, previous_response_id=first.response["id"], input="More")
        heard = upstream.requests[1].json
        assert heard["previous_response_id"] == first.response["id"]
        assert heard["input"] == "More"

    async def test_only_the_latest_response_of_a_stream_is_remembered(self) -> None:
        upstream = Upstream(Answer(ANSWERING["chat"]))
        async with (
            front(upstream, entry=entry("chat"), history={"store": "none"}) as running,
            opened(running.url) as client,
        ):
            first = await client.ask()
            await client.ask()
            await client.create(previous_response_id=first.response["id"])
            assert (await client.error())["param"] == "previous_response_id"

    async def test_it_does_not_outlast_its_connection(self) -> None:
        upstream = Upstream(Answer(ANSWERING["chat"]))
        async with front(upstream, entry=entry("chat"), history={"store": "none"}) as running:
            async with opened(running.url) as client:
                first = await client.ask()
            async with opened(running.url) as client:
                await client.create(previous_response_id=first.response["id"])
                assert (await client.error())["status"] == 400

    async def test_another_stream_may_begin_where_one_is(self) -> None:
        upstream = Upstream(Answer(ANSWERING["chat"]))
        async with (
            front(upstream, entry=entry("chat"), history={"store": "none"}) as running,
            opened(running.url) as client,
        ):
            await client.create(stream_id="a")
            events = await client.answer()
            assert {event.get("stream_id") for event in events} == {"a"}
            before = checked(events).response["id"]
            for stream_id in ("b", "a"):
                await client.create(stream_id=stream_id, previous_response_id=before, input="More")
                events = await client.answer()
                assert events[-1]["type"] == "response.completed"
                assert {event.get("stream_id") for event in events} == {stream_id}
        assert len(upstream.requests[1].json["messages"]) == 3

    async def test_a_warm_up_asks_no_model_and_can_be_continued(self) -> None:
        upstream = Upstream(Answer(ANSWERING["chat"]))
        async with (
            front(upstream, entry=entry("chat"), history={"store": "none"}) as running,
            opened(running.url) as client,
        ):
            warm = await client.ask(generate=False, input="First")
            assert warm.kinds == ["response.created", "response.in_progress", "response.completed"]
            assert upstream.requests == []
            details = warm.response["usage"]["input_tokens_details"]
            assert details == {"cached_tokens": 0, "cache_write_tokens": 0}
            await client.ask(previous_response_id=warm.response["id"], input="Second")
        assert [it["content"] for it in upstream.requests[0].json["messages"]] == [
            "First",
            "Second",
        ]


@pytest.mark.parametrize(
    ("large", "is_beside"),
    [
        ({}, False),
        ({"instructions": "a" * LIGHT_BYTES}, True),
        ({"input": [{"role": "user", "content": "a"}] * (LIGHT_OBJECTS + 1)}, True),
    ],
)
async def test_what_is_large_is_read_and_repeated_beside_the_event_loop(
    large: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *, is_beside: bool
) -> None:
    names = ("with_input", "warm_up_events")
    noted = note_calls_beside(monkeypatch, *((session, name) for name in names))
    async with front(Upstream()) as running, opened(running.url) as client:
        warm = await client.ask(generate=False, **large)
    assert warm.response["instructions"] == large.get("instructions")
    assert noted == {(name, is_beside) for name in names}


class Gated(Upstream):
    """Answers once its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    def answer(self, request: ReceivedRequest) -> Answer:
        frames = ANSWERING["chat"]
        return Answer([*frames[:3], self.gate, *frames[3:]])


class TestOrder:
    async def test_requests_of_one_stream_are_answered_one_after_the_other(self) -> None:
        upstream = Gated()
        async with (
            front(upstream, entry=entry("chat")) as running,
            opened(running.url) as client,
        ):
            await client.create()
            await client.create()
            await until(lambda: upstream.running == 1)
            await asyncio.sleep(0.05)
            assert len(upstream.requests) == 1
            upstream.gate.set()
            for _ in range(2):
                checked(await client.answer())
            assert len(upstream.requests) == 2

    async def test_requests_of_several_streams_are_answered_at_once(self) -> None:
        upstream = Gated()
        async with (
            front(upstream, entry=entry("chat")) as running,
            opened(running.url) as client,
        ):
            for stream_id in ("a", "b"):
                await client.create(stream_id=stream_id)
            await until(lambda: upstream.running == 2)
            upstream.gate.set()
            events: dict[str, list[dict[str, Any]]] = {"a": [], "b": []}
            while not all(got and got[-1]["type"] == LAST_EVENT for got in events.values()):
                event = await client.event()
                events[event["stream_id"]].append(event)
            for got in events.values():
                checked(got)

    async def test_those_beyond_a_ceiling_are_refused(self) -> None:
        upstream = Gated()
        async with (
            front(upstream, entry=entry("chat")) as running,
            opened(running.url) as client,
        ):
            await client.create()
            await until(lambda: upstream.running == 1)
            for _ in range(17):
                await client.create()
            while (event := await client.event())["type"] != "error":
                pass
            assert (event["status"], event["error"]["code"]) == (429, "too_many_waiting")


LAST_EVENT = "response.completed"


class TestErrors:
    @pytest.mark.parametrize(
        ("message", "code", "param"),
        [
            ("nonsense", "invalid_json", None),
            ("[1]", "invalid_json", None),
            (b"\x00\x01", "invalid_json", None),
            ('{"type": "response.destroy"}', "invalid_value", "type"),
            ('{"type": "response.create", "stream_id": ""}', "invalid_stream_id", "stream_id"),
            ('{"type": "response.create", "background": true}', "unsupported_value", "background"),
            ('{"type": "response.create", "input": ' + "[" * 5000, "invalid_json", None),
        ],
    )
    async def test_what_is_not_understood_is_told_and_the_connection_lives(
        self, message: str | bytes, code: str, param: str | None
    ) -> None:
        upstream = Upstream(Answer(ANSWERING["responses"]))
        async with front(upstream) as running, opened(running.url) as client:
            await client.send(message)
            error = await client.error()
            assert (error["status"], error["code"], error["param"]) == (400, code, param)
            assert (await client.ask()).text == "Hello."

    async def test_upstreams_error_is_told_with_its_status_and_headers(self) -> None:
        body = {"error": {"message": "Slow down.", "type": "rate_limit_error", "code": "slow"}}
        answer = Answer.json(body, 429, **{"retry-after": "7", "set-cookie": "a=b"})
        async with front(Upstream(answer)) as running, opened(running.url) as client:
            await client.create()
            event = await client.event()
        assert event["status"] == 429
        assert event["error"]["message"] == "Slow down."
        assert event["headers"] == event["error"]["headers"]
        assert event["headers"]["retry-after"] == "7"
        assert "set-cookie" not in event["headers"]

    async def test_an_answer_that_breaks_off_has_an_end(self) -> None:
        broken = Answer([*ANSWERING["responses"][:6], OSError("cut")])
        async with (
            front(Upstream(broken, Answer(ANSWERING["responses"]))) as running,
            opened(running.url) as client,
        ):
            await client.create(reasoning=None)
            last = (await client.answer())[-1]
            assert last["type"] in ("error", "response.failed")
            assert (await client.ask()).text == "Hello."

    async def test_a_notice_wants_no_answer(self) -> None:
        upstream = Upstream(Answer(ANSWERING["responses"]))
        async with front(upstream) as running, opened(running.url) as client:
            await client.send({"type": "response.processed", "response_id": "resp_1"})
            assert (await client.ask()).text == "Hello."


async def test_upstream_stops_when_the_connection_is_closed() -> None:
    upstream = Gated()
    async with front(upstream, entry=entry("chat")) as running:
        async with opened(running.url) as client:
            for stream_id in ("a", "b"):
                await client.create(stream_id=stream_id)
            await until(lambda: upstream.running == 2)
            assert running.open_websockets == 1
        await until(lambda: upstream.left == 2)
        await until(lambda: running.open_websockets == 0)


async def test_upstream_hears_the_headers_of_the_connection_and_nothing_of_the_upgrade() -> None:
    upstream = Upstream(Answer(ANSWERING["responses"]))
    headers = {
        "authorization": "Bearer sk-1",
        "openai-beta": "assistants=v2, responses_websockets=2026-02-06",
    }
    async with (
        front(upstream) as running,
        opened(running.url, additional_headers=headers) as client,
    ):
        await client.ask()
    request = upstream.requests[0]
    assert request.header("authorization") == "Bearer sk-1"
    assert request.header("openai-beta") == "assistants=v2"
    assert request.header("upgrade") is None
    assert request.header("sec-websocket-key") is None
    assert request.json.keys() & {"type", "stream_id", "generate"} == set()
    assert request.json["stream"] is True


async def test_a_server_that_closes_lets_the_answer_end() -> None:
    upstream = Gated()
    async with front(upstream, entry=entry("chat")) as running:
        async with opened(running.url) as client, opened(running.url) as idle:
            await client.create()
            await until(lambda: upstream.running == 1)
            running.server.should_exit = True
            assert await idle.close_code() == 1012
            upstream.gate.set()
            checked(await client.answer())
            assert await client.close_code() == 1012
        await soon(asyncio.sleep(0))
