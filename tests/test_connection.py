"""The connections of the sidecar's clients, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.serve import Server, address, listen
from tests.servers import connect, soon

CHUNKED = b"POST / HTTP/1.1\r\nx-user: alice\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"
TRAILERS = b"0\r\nx-user: bob\r\nauthorization: Bearer smuggled\r\n\r\n"


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    server, listener = Server(app), listen("127.0.0.1", 0)
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield address(listener)
    finally:
        server.should_exit = True
        server.cut()
        await soon(serving)


async def names(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the request's header names and values, once its body is read."""
    while (await receive()).get("more_body"):
        pass
    body = b"\n".join(name + b"=" + value for name, value in scope["headers"])
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize("pause", [False, True])
async def test_a_trailer_is_no_header(pause: bool) -> None:  # noqa: FBT001
    async with served(names) as url, connect(url) as client:
        for _ in range(2):  # nor one of the next request's
            await client.send(CHUNKED)
            if pause:
                await asyncio.sleep(0.05)
            await client.send(TRAILERS)
            answer = await soon(client.response())
            assert answer.body == b"x-user=alice\ntransfer-encoding=chunked"
