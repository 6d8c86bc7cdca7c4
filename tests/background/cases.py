"""Clients of background responses, and upstreams that take their time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp

from abridge.apis.frames import parse_frame
from abridge.apis.sse import FrameDecoder
from tests.end_to_end.translation.test_translation import KEY, bridge
from tests.end_to_end.translation.turn import answer
from tests.stored_responses.conversations import fetch, post
from tests.support import openapi
from tests.support.asgi import Call
from tests.support.servers import HANG
from tests.support.upstream import Answer, Step, Upstream

Json = dict[str, Any]


def paused(gate: asyncio.Event, api: str = "chat", *, after: int = 8, **turn: Any) -> Answer:
    """Return an answer that waits for `gate` after so many pieces; with 0, before its head."""
    streamed = answer(api, stream=True, **turn)
    steps: list[Step] = list(streamed.steps)
    if after:
        return Answer([*steps[:after], gate, *steps[after:]])
    return Answer(steps, before=[gate])


@asynccontextmanager
async def running(upstream: Upstream, api: str = "chat", **settings: Any) -> AsyncIterator[ASGIApp]:
    """Yield an app; what runs at the end is stopped."""
    app = bridge(upstream, api, **settings)
    try:
        yield app
    finally:
        await app.aclose()  # type: ignore[attr-defined]


async def begin_response(app: ASGIApp, content: Any = "Hi", **more: Any) -> Json:
    """Begin a background response; return it as the client is told of it."""
    received = await post(app, content, background=True, **more)
    assert received.status == 200, received.data
    openapi.check("Response", received.json)
    begun: Json = received.json
    assert (begun["status"], begun["background"]) == ("queued", True)
    return begun


async def ended(app: ASGIApp, response_id: str, key: Any = KEY) -> Json:
    """Poll a response until it has ended."""
    async with asyncio.timeout(HANG):
        while True:
            received = await fetch(app, response_id, key)
            assert received.status == 200, received.data
            response: Json = received.json
            if response["status"] not in ("queued", "in_progress"):
                openapi.check("Response", response)
                return response
            await asyncio.sleep(0.01)


async def streamed(app: ASGIApp, response_id: str, after: int | None = None) -> Call:
    tail = "" if after is None else f"&starting_after={after}"
    return await fetch(app, f"{response_id}?stream=true{tail}")


def events(data: bytes) -> list[Json]:
    frames = FrameDecoder(1 << 24).feed(data)
    return [parsed for parsed in map(parse_frame, frames) if parsed]


def numbers(data: bytes) -> list[int]:
    return [event["sequence_number"] for event in events(data)]
