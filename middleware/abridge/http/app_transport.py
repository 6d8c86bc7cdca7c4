"""An httpx transport that calls an ASGI app, with streaming.

The app runs in a task of its own per call. The response starts with the app's
`http.response.start`; its chunks are handed over one at a time, so that the app cannot run ahead of
its reader. When the response is closed early the app receives `http.disconnect`, as from a server,
and gets a moment to react; then its task is cancelled. It never outlives the response.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import unquote

import httpx
from starlette.types import ASGIApp, Message

from abridge.http.asgi import AppReceive

_log = logging.getLogger(__name__)

CLOSE_SECONDS = 1.0
"""Seconds for the app to return after its response has ended or was closed."""


class AppTransport(httpx.AsyncBaseTransport):
    """Answers requests by calling `app`.

    The scope of each call is a copy of `scope`, as it was at construction, with the method, path,
    query and headers of the request.
    """

    def __init__(self, app: ASGIApp, scope: Mapping[str, Any]) -> None:
        self._app = app
        self._scope = dict(scope)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        call = _AppCall(self._app, self._scope_for(request), await request.aread())
        try:
            start = await call.read_start()
        except BaseException:
            await call.aclose()
            raise
        return httpx.Response(start["status"], headers=start.get("headers", ()), stream=call)

    def _scope_for(self, request: httpx.Request) -> dict[str, Any]:
        raw_path = request.url.raw_path.partition(b"?")[0]
        return {
            **self._scope,
            "state": dict(self._scope.get("state", {})),
            "extensions": {},
            "method": request.method,
            "path": unquote(raw_path.decode("ascii")),
            "raw_path": raw_path,
            "query_string": request.url.query,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
        }


class _AppCall(httpx.AsyncByteStream):
    """One call and the body of its response. A message that is None says that the app is done."""

    def __init__(self, app: ASGIApp, scope: dict[str, Any], body: bytes) -> None:
        self._receive = AppReceive(body)
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue(1)
        self._closed = False
        self._error: Exception | None = None
        self._task = asyncio.create_task(self._run(app, scope))

    async def read_start(self) -> Message:
        message = await self._messages.get()
        if message is None or message["type"] != "http.response.start":
            raise httpx.ConnectError("The app did not answer.") from self._error
        return message

    async def __aiter__(self) -> AsyncIterator[bytes]:
        more_body = True
        while more_body:
            message = await self._messages.get()
            if message is None:
                raise httpx.ReadError("The app broke off its answer.") from self._error
            more_body = message.get("more_body", False)
            if message.get("body"):
                yield message["body"]

    async def aclose(self) -> None:
        self._closed = True
        self._receive.leave()
        while not self._messages.empty():  # the app may wait for its reader
            self._messages.get_nowait()
        try:
            await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)
        finally:
            self._task.cancel()
            await asyncio.wait({self._task})

    # Called by the app

    async def _run(self, app: ASGIApp, scope: dict[str, Any]) -> None:
        try:
            await app(scope, self._receive, self._send)
        except Exception as error:  # noqa: BLE001 -- the reader gets it as the cause
            if not self._closed:
                _log.warning("the app failed in a call: %s", type(error).__name__)
            self._error = error
        finally:
            if not self._closed:
                await self._messages.put(None)

    async def _send(self, message: Message) -> None:
        if not self._closed:
            await self._messages.put(message)
        if self._closed:
            raise OSError("The response was closed.")
