"""Call an ASGI app in process, as a server would, and record what it sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send


def scope_for(
    path: str, body: bytes = b"", headers: Mapping[str, str] | None = None, **more: Any
) -> Scope:
    given = {"content-type": "application/json", **(headers or {})}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [
            *((key.lower().encode(), value.encode()) for key, value in given.items()),
            (b"content-length", str(len(body)).encode()),
        ],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1234),
        **more,
    }


@dataclass
class Call:
    """One request. `sent` are the messages received; clearing `gate` makes the client slow."""

    app: ASGIApp
    scope: Scope
    body: bytes = b""
    sent: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self._received = False
        self._progress = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    async def receive(self) -> Message:
        if not self._received:
            self._received = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self.gate.wait()
        if self.left.is_set():
            raise OSError("the client has left")
        self.sent.append(message)
        self._progress.set()
        if self.complete:
            self.left.set()  # like uvicorn, which reports a disconnect after the end too

    def start(self) -> Call:
        self.task = asyncio.create_task(self._run())
        return self

    async def _run(self) -> None:
        await self.app(self.scope, self.receive, self.send)

    async def finish(self) -> Call:
        assert self.task is not None
        async with asyncio.timeout(50):
            await self.task
        return self

    async def leave(self) -> None:
        """Have the client leave, and wait for what the app still does."""
        self.left.set()
        await self.finish()

    async def cancel(self, cause: str | None = None) -> None:
        """Cancel the request as its server may, and wait for its end."""
        assert self.task is not None
        self.task.cancel(cause)
        with suppress(asyncio.CancelledError):
            await self.finish()
        assert self.task.cancelled()

    async def until(self, text: bytes, times: int = 1) -> None:
        """Wait until `text` has been sent `times` times."""
        async with asyncio.timeout(50):
            while self.data.count(text) < times:
                self._progress.clear()
                await self._progress.wait()

    @property
    def complete(self) -> bool:
        last = self.sent[-1] if self.sent else {"type": None}
        return last["type"] == "http.response.body" and not last.get("more_body", False)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {key.decode(): value.decode() for key, value in self.sent[0]["headers"]}

    @property
    def data(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])

    @property
    def json(self) -> Any:
        return json.loads(self.data)


async def call(
    app: ASGIApp, path: str, body: Any, headers: Mapping[str, str] | None = None, **more: Any
) -> Call:
    """Send a request and receive its whole response."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await Call(app, scope_for(path, data, headers, **more), data).start().finish()


def begin(
    app: ASGIApp, path: str, body: Any, headers: Mapping[str, str] | None = None, **more: Any
) -> Call:
    """Send a request without waiting for its response."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Call(app, scope_for(path, data, headers, **more), data).start()


async def body_of(receive: Receive) -> bytes:
    """Read a request's body, as an application does."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


async def start(
    send: Send, kind: str = "text/event-stream", status: int = 200, **more: Any
) -> None:
    """Begin an answer, as an application does."""
    headers = [(b"content-type", kind.encode())]
    begun = {"type": "http.response.start", "status": status, "headers": headers}
    await send({**begun, **more})


async def say(send: Send, body: bytes, *, more: bool = False) -> None:
    """Send a piece of an answer; `more` are to come."""
    await send({"type": "http.response.body", "body": body, "more_body": more})
