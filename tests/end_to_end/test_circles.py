"""Test that all of a request is freed at its end, by counting references.

The garbage collector, which frees circles of references, passes seldom over what is old: until then
each would hold what a stream takes.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from abridge.app import create_app
from tests.apis.messages import scripts as messages
from tests.support.asgi import call
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

    await ask()
    await ask()  # nothing is made for the first time any more
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        await ask()
        await asyncio.sleep(0)
        gc.collect()
        circles = [type(one) for one in gc.garbage if is_of_a_request(one)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert circles == []


def is_of_a_request(one: object) -> bool:
    return isinstance(one, asyncio.Task) or type(one).__module__.startswith("abridge.")
