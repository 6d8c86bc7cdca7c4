"""Test how a request moves on to the fallback of its upstream, on real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from abridge.config.settings import Settings
from abridge.sidecar.app import create_app
from tests.support.asgi import call
from tests.support.checker import check_chat
from tests.support.servers import (
    Listener,
    Peer,
    Request,
    Script,
    listen,
    serve,
    soon,
    unused_address,
)
from tests.support.streams import THOUGHT, chat_stream, completion
from tests.support.summarizers import Scripted

CHAT = "/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
JSON = b"content-type: application/json"
ANSWER = json.dumps(completion({"reasoning_content": THOUGHT, "content": "Hello."})).encode()
STREAM = b"".join(chat_stream(THOUGHT, "Hello."))


def answers(
    body: bytes = ANSWER,
    *headers: bytes,
    status: bytes = b"200 OK",
    requests: list[Request] | None = None,
) -> Script:
    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            if requests is not None:
                requests.append(request)
            await peer.answer(body, *(headers or (JSON,)), status=status)

    return script


def busy(status: bytes, *headers: bytes) -> Script:
    return answers(b'{"error": {"message": "busy"}}', JSON, *headers, status=status)


async def reset(peer: Peer) -> None:
    await peer.request()
    peer.reset()


async def close(peer: Peer) -> None:
    await peer.request()


@dataclass
class Pair:
    """A served sidecar with two upstreams; `first` falls back to `second`."""

    url: str
    first: Listener | None
    second: Listener
    registry: CollectorRegistry

    def moved_on(self, cause: str) -> float:
        labels = {"upstream": "first", "fallback": "second", "cause": cause}
        return self.registry.get_sample_value("abridge_upstream_failovers_total", labels) or 0


@asynccontextmanager
async def pair(
    first: Script | None, second: Script, *more: dict[str, Any], **options: Any
) -> AsyncIterator[Pair]:
    """`first` is None where nothing listens. `more` are settings of the two upstreams, and of
    others."""
    async with AsyncExitStack() as stack:
        listeners = [
            await stack.enter_async_context(listen(script)) if script else None
            for script in (first, second)
        ]
        names = ({"name": "first", "fallback": "second"}, {"name": "second"})
        upstreams = [
            {
                **name,
                "credential": "client",
                "base_url": f"{listener.url if listener else unused_address()}/v1",
                **settings,
            }
            for name, listener, settings in zip(
                names, listeners, [*more[:2], {}, {}][:2], strict=True
            )
        ]
        registry = CollectorRegistry()
        app = create_app(
            Settings.model_validate({"upstreams": [*upstreams, *more[2:]], **options}),
            registry=registry,
            summarizer=Scripted() if "summarizer" in options else None,
        )
        url = await stack.enter_async_context(serve(app))
        stack.push_async_callback(app.aclose)
        assert listeners[1] is not None
        yield Pair(url, listeners[0], listeners[1], registry)


async def post(url: str, body: Any = BODY, path: str = CHAT, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with httpx.AsyncClient(timeout=60) as client:
        head = {"content-type": "application/json", "authorization": "Bearer k", **headers}
        return await client.post(url + path, content=content, headers=head)


ENGAGED = {"summarizer": {"kind": "object"}, "summary": {"default": "auto"}}


@pytest.mark.parametrize(
    ("first", "cause"),
    [
        (None, "unreachable"),
        (reset, "broken"),
        (close, "broken"),
        (busy(b"429 Too Many Requests"), "429"),
        (busy(b"503 Service Unavailable"), "503"),
        (busy(b"529 Overloaded"), "529"),
    ],
    ids=["refused", "reset", "closed", "429", "503", "529"],
)
@pytest.mark.parametrize("options", [{}, ENGAGED], ids=["passed", "engaged"])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_the_fallback_answers_where_upstream_cannot(
    first: Script | None, cause: str, options: dict[str, Any], *, stream: bool
) -> None:
    second = answers(STREAM, b"content-type: text/event-stream") if stream else answers()
    async with pair(first, second, **options) as served:
        answer = await soon(post(served.url, {**BODY, "stream": stream}))
        assert answer.status_code == 200
        if stream:
            assert check_chat(answer.content).choices[0].text == "Hello."
        else:
            assert answer.json()["choices"][0]["message"]["content"] == "Hello."
        if not options:
            assert answer.content == (STREAM if stream else ANSWER)
        assert served.moved_on(cause) == 1


@pytest.mark.parametrize("status", [b"500 Error", b"502 Bad Gateway", b"400 Bad", b"401 No"])
async def test_any_other_error_is_the_clients(status: bytes) -> None:
    async with pair(busy(status), answers()) as served:
        answer = await soon(post(served.url))
        assert answer.status_code == int(status[:3])
        assert answer.json() == {"error": {"message": "busy"}}
        assert served.second.connections == 0


@pytest.mark.parametrize("options", [{}, ENGAGED], ids=["passed", "engaged"])
async def test_an_upstream_that_is_silent_is_soon_down_and_asks_no_other(
    options: dict[str, Any],
) -> None:
    """It may be at work on the request; later ones skip it."""

    async def silent(peer: Peer) -> None:
        await peer.request()
        await peer.left()

    rules = {"breaker_failures": 2, "breaker_seconds": 3600}
    async with pair(silent, answers(), rules, limits={"headers": 0.1}, **options) as served:
        for asked in range(2):
            answer = await soon(post(served.url))
            assert (answer.status_code, served.second.connections) == (504, 0), asked
        assert (await soon(post(served.url))).status_code == 200
        assert served.moved_on("down") == 1


@pytest.mark.parametrize("options", [{}, ENGAGED], ids=["passed", "engaged"])
async def test_an_answer_that_has_begun_is_not_asked_for_again(options: dict[str, Any]) -> None:
    async def breaks(peer: Peer) -> None:
        await peer.request()
        head = (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99999\r\n\r\n"
        )
        await peer.send(head + STREAM[:200])
        await asyncio.sleep(0.1)
        peer.reset()

    async with pair(breaks, answers(), **options) as served:
        async with httpx.AsyncClient(timeout=60) as client:
            request = client.stream("POST", served.url + CHAT, json={**BODY, "stream": True})
            async with request as answer:
                assert answer.status_code == 200
                if options:
                    assert b"upstream" in await answer.aread()
                else:
                    with pytest.raises(httpx.RemoteProtocolError):
                        await answer.aread()
        assert served.second.connections == 0


async def test_the_body_arrives_whole_at_the_fallback() -> None:
    requests: list[Request] = []
    body = json.dumps({**BODY, "user": "x" * (1 << 20)}, indent=1).encode()
    async with pair(busy(b"503 Busy"), answers(requests=requests)) as served:
        assert (await soon(post(served.url, body))).status_code == 200
    assert [request.body for request in requests] == [body]


async def test_a_large_body_of_which_upstream_reads_nothing_arrives_at_the_fallback() -> None:
    async def refuses(peer: Peer) -> None:
        await peer.head()
        peer.reset()

    requests: list[Request] = []
    body = json.dumps({**BODY, "user": "x" * (1 << 22)}).encode()
    async with pair(refuses, answers(requests=requests)) as served:
        assert (await soon(post(served.url, body))).status_code == 200
    assert [request.body for request in requests] == [body]


async def test_where_both_fail_the_client_hears_the_fallback_and_when_to_retry() -> None:
    first = busy(b"429 Too Many Requests", b"retry-after: 7")
    async with pair(first, busy(b"503 Busy")) as served:
        answer = await soon(post(served.url))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
    async with pair(first, busy(b"503 Busy", b"retry-after: 3")) as served:
        assert (await soon(post(served.url))).headers["retry-after"] == "3"
    async with pair(first, reset) as served:
        answer = await soon(post(served.url))
        assert (answer.status_code, answer.headers["retry-after"]) == (502, "7")


async def test_a_request_moves_on_once() -> None:
    async with listen(answers()) as third:
        more = {"name": "third", "base_url": third.url}
        seconds = {"fallback": "third"}
        async with pair(busy(b"503 Busy"), busy(b"429 Busy"), {}, seconds, more) as served:
            assert (await soon(post(served.url))).status_code == 429
            assert (served.second.connections, third.connections) == (1, 0)


async def test_two_upstreams_may_stand_in_for_each_other() -> None:
    seconds = {"fallback": "first"}
    async with pair(busy(b"503 Busy"), busy(b"503 Busy"), {}, seconds) as served:
        assert (await soon(post(served.url))).status_code == 503
        assert served.second.connections == 1


async def test_a_client_that_leaves_is_not_asked_for_again() -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def waits(peer: Peer) -> None:
        await peer.request()
        arrived.set()
        await peer.left()
        gone.set()

    async with pair(waits, answers()) as served:
        asking = asyncio.create_task(post(served.url))
        await soon(arrived.wait())
        asking.cancel()
        await asyncio.wait([asking])
        await soon(gone.wait())
        assert served.second.connections == 0


@pytest.mark.parametrize("options", [{}, ENGAGED], ids=["passed", "engaged"])
async def test_a_client_that_leaves_while_the_fallback_is_asked_ends_that(
    options: dict[str, Any],
) -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def waits(peer: Peer) -> None:
        await peer.request()
        arrived.set()
        await peer.left()
        gone.set()

    async with pair(busy(b"503 Busy"), waits, **options) as served:
        asking = asyncio.create_task(post(served.url))
        await soon(arrived.wait())
        asking.cancel()
        await asyncio.wait([asking])
        await soon(gone.wait())
        assert (served.first.connections, served.second.connections) == (1, 1)


async def test_the_fallback_is_asked_with_its_own_api_name_and_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECOND_KEY", "sk-second")
    requests: list[Request] = []
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "anthropic/m",
        "content": [{"type": "text", "text": "Hello."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    second = answers(json.dumps(message).encode(), requests=requests)
    firsts = {"rename": {"m": "first-m"}}
    seconds = {
        "api": "messages",
        "profile": "anthropic",
        "rename": {"*": "anthropic/{}"},
        "credential": None,
        "api_key_env": "SECOND_KEY",
        "effort_max": "low",
    }
    async with pair(busy(b"503 Busy"), second, firsts, seconds) as served:
        answer = await soon(post(served.url))
    assert answer.json()["choices"][0]["message"]["content"] == "Hello."
    assert answer.json()["model"] == "m"
    (request,) = requests
    assert request.lines[0] == b"POST /v1/messages HTTP/1.1"
    assert json.loads(request.body)["model"] == "anthropic/m"
    assert request.all(b"x-api-key") == [b"sk-second"]
    assert request.all(b"authorization") == []


@pytest.mark.parametrize(
    "more",
    [
        {"previous_response_id": "resp_1"},
        {"conversation": "c"},
        {"background": True},
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]},
        {"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]},
    ],
)
async def test_what_refers_to_an_upstreams_own_objects_stays_with_it(more: dict[str, Any]) -> None:
    async with pair(busy(b"503 Busy"), answers()) as served:
        answer = await soon(
            post(served.url, {"model": "m", "input": "Hi", **more}, "/v1/responses")
        )
        assert answer.status_code == 503
        assert served.second.connections == 0


async def test_a_failure_is_logged_in_one_line_without_a_word_of_the_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(503 if request.url.host == "first.test" else 200, json={})

    upstreams = [
        {"name": "first", "base_url": "http://first.test/v1", "fallback": "second"},
        {"name": "second", "base_url": "http://second.test/v1"},
    ]
    app = create_app(
        Settings.model_validate({"upstreams": upstreams}),
        transport=httpx.MockTransport(answer),
        registry=CollectorRegistry(),
    )
    assert (await call(app, CHAT, BODY)).status == 200
    lines = [entry.getMessage() for entry in caplog.records if entry.levelname == "WARNING"]
    assert lines == ["upstream first: 503; the request moves on to second"]
