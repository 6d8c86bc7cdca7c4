"""The sidecar's own server around an app, and apps to serve."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.config.tables import KEEP_ALIVE_SECONDS, LimitSettings
from abridge.sidecar.server.serve import HttpServer, listen, listener_url
from tests.support.servers import Peer, soon


@asynccontextmanager
async def served(
    app: ASGIApp,
    refusals: list[str] | None = None,
    keep_alive: float = KEEP_ALIVE_SECONDS,
    **limits: Any,
) -> AsyncIterator[str]:
    """Serve an app with these limits; collect the codes of what the server refuses."""
    collected = refusals if refusals is not None else []
    server = HttpServer(
        app,
        limits=LimitSettings(**limits),
        keep_alive=keep_alive,
        count_refusal=collected.append,
    )
    listener = listen("127.0.0.1", 0)
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield listener_url(listener)
    finally:
        server.should_exit = True
        server.abort_connections()
        await soon(serving)


class Requests:
    """An app that reads each request and answers with its body, once `go_on` is set."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, bytes]] = []
        self.begun = 0
        self.left = 0
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun += 1
        message: Message = {"more_body": True}
        body = b""
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
        if message["type"] == "http.disconnect":
            self.left += 1
            return
        self.seen.append((scope["method"], scope["path"], body))
        await self.go_on.wait()
        length = (b"content-length", b"%d" % len(body))
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})

    @property
    def paths(self) -> list[str]:
        return [path for _, path, _ in self.seen]


def post(body: bytes, *headers: bytes, path: bytes = b"/first") -> bytes:
    lines = [
        b"POST %b HTTP/1.1" % path,
        b"host: localhost",
        *headers,
        b"content-length: %d" % len(body),
    ]
    return b"\r\n".join([*lines, b"", body])


def get(path: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join([b"GET %b HTTP/1.1" % path, b"host: localhost", *headers, b"", b""])


async def rest(client: Peer) -> bytes:
    """Return all that comes until the server closes."""
    received = b""
    while data := await soon(client.reader.read(1 << 16)):
        received += data
    return received


def statuses(received: bytes) -> list[int]:
    return [int(line[9:12]) for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
