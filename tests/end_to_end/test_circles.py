"""Test that all of a request is freed at its end, by counting references.

The garbage collector, which frees circles of references, passes seldom over what is old: until then
each would hold what a stream takes.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from abridge.sidecar.app import create_app
from tests.apis.messages import scripts as messages
from tests.support.asgi import begin, call
from tests.support.deployments import settings_for
from tests.support.streams import (
    THOUGHT,
    chat_stream,
    completion,
    message_item,
    reasoning_item,
    responses_stream,
)

STREAMS = {
    "chat": chat_stream(THOUGHT, "Hello."),
    "responses": responses_stream([reasoning_item(0, THOUGHT), message_item(1, "Hello.")]),
    "messages": messages.stream([messages.thinking(THOUGHT, "sig"), messages.text("Hello.")]),
}
QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
    "responses": ("/v1/responses", {"input": "Hi"}),
    "messages": (
        "/v1/messages",
        {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9},
    ),
}
SUMMARY = {"x-abridge-summary": "auto"}


def answer(api: str, *, streamed: bool) -> httpx.Response:
    if streamed:
        headers = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=headers, content=b"".join(STREAMS[api]))
    return httpx.Response(200, json=completion({"content": "Hello.", "reasoning_content": THOUGHT}))


@pytest.mark.parametrize("headers", [{}, SUMMARY], ids=["passed", "summarized"])
@pytest.mark.parametrize("expose", ["auto", "none"])
@pytest.mark.parametrize(
    ("client", "upstream", "streamed"),
    [(client, upstream, True) for client in STREAMS for upstream in STREAMS]
    + [("chat", "chat", False)],
)
async def test_a_request_leaves_no_circle(
    client: str, upstream: str, headers: dict[str, str], expose: str, *, streamed: bool
) -> None:
    transport = httpx.MockTransport(lambda _: answer(upstream, streamed=streamed))
    settings = settings_for(
        upstreams=[{"base_url": "http://upstream/v1", "api": upstream}],
        reasoning={"expose": expose},
    )
    app = create_app(settings, transport=transport, registry=CollectorRegistry())
    path, question = QUESTIONS[client]

    async def ask() -> None:
        asked = await call(app, path, {"model": "m", "stream": streamed, **question}, headers)
        assert asked.status == 200

    assert await circles_left_by(ask) == []


async def test_a_search_for_upstreams_api_leaves_no_circle() -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        found = request.url.path.endswith("/chat/completions")
        return answer("chat", streamed=True) if found else httpx.Response(404)

    apps = []  # each keeps what it has found, and searches once

    async def ask() -> None:
        settings = settings_for(upstreams=[{"base_url": "http://upstream/v1"}])
        transport = httpx.MockTransport(respond)
        apps.append(create_app(settings, transport=transport, registry=CollectorRegistry()))
        path, question = QUESTIONS["messages"]
        asked = await call(apps[-1], path, {"model": "m", "stream": True, **question})
        assert asked.status == 200

    assert await circles_left_by(ask) == []


class Endless(httpx.AsyncByteStream):
    """The beginning of a stream, of which no more comes."""

    def __init__(self, frames: list[bytes]) -> None:
        self._frames = frames

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for frame in self._frames:
            yield frame
        await asyncio.Event().wait()


@pytest.mark.parametrize("api", STREAMS)
async def test_a_client_that_leaves_mid_stream_leaves_no_circle(api: str) -> None:
    frames = STREAMS[api]
    deltas = [frame for frame in frames if THOUGHT[:5].encode() in frame][:1] * 3
    begun = [*frames[: frames.index(deltas[0])], *deltas]
    kind = {"content-type": "text/event-stream"}
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, headers=kind, stream=Endless(begun))
    )
    settings = settings_for(
        upstreams=[{"base_url": "http://upstream/v1", "api": api}], summary={"part_chars": 100}
    )
    app = create_app(settings, transport=transport, registry=CollectorRegistry())
    path, question = QUESTIONS[api]

    async def leave() -> None:
        asked = begin(app, path, {"model": "m", "stream": True, **question}, SUMMARY)
        await asked.until(b"data:")
        await asked.leave()

    assert await circles_left_by(leave) == []


async def circles_left_by(ask: Callable[[], Awaitable[None]]) -> list[type]:
    """Return the types of what a request leaves to the garbage collector."""
    await ask()
    await ask()  # nothing is made for the first time any more
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        await ask()
        await asyncio.sleep(0)
        gc.collect()
        return [type(one) for one in gc.garbage if is_of_a_request(one)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def is_of_a_request(one: object) -> bool:
    return isinstance(one, asyncio.Task) or type(one).__module__.startswith("abridge.")
