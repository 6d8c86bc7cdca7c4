"""An ASGI app that forwards each request to an upstream, unaware of reasoning.

Theory of operation. The middleware around it, if there is one, has chosen the upstream and left its
choice in the scope. The call to upstream runs as a task of its own until the response's headers are
in; then the body is forwarded chunk by chunk, each sent before the next is read, so that a slow
client slows down its own upstream. A second task waits for the client to disconnect, and then
cancels the call or closes the response, which ends whatever waits for either. The task in which the
server runs the app is never cancelled from here.

A failure before the headers becomes an error response in the API's error shape. After them it is
too late for one: `UpstreamBroken` is raised, and the server breaks the client's connection as
upstream broke its own. Likewise a cancelled request gets an error response only before the headers.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast

import httpx
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Scope, Send

from abridge.http import Transport
from abridge.metrics import metrics_on
from abridge.proxy.asking import Asking
from abridge.proxy.failures import (
    FAILURES,
    broken,
    failure_of,
    later,
    note,
    refusal,
)
from abridge.proxy.models import all_models, asks_for_models
from abridge.proxy.place import Place, end_to_end
from abridge.settings import ROUTE, Settings
from abridge.telemetry.record import RECORD, SHUTTING_DOWN, Record

GOODBYE = 1.0
"""Seconds for a cancelled request to send its error response."""


class Proxy:
    """Forwards to the upstreams of `settings`, each of which needs a `base_url`.

    The client's credential is forwarded, unless the upstream has an `api_key_env`, which is read
    once, here. Requests go out by `transport` if it is given, and are counted on `registry`, or on
    the default one. Raises SettingsError.
    """

    def __init__(
        self,
        settings: Settings,
        transport: httpx.AsyncBaseTransport | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        limits = settings.limits
        self._metrics = metrics_on(registry)
        self._metrics.requests_in_flight_limit.inc(limits.in_flight)
        self._places = {route.upstream.name: Place.of(route.upstream) for route in settings.routes}
        self._default = settings.route(None)
        transport = transport or Transport(
            connect=limits.connect, headers=limits.headers, idle=limits.idle
        )
        self._asking = Asking(transport, self._metrics)
        self._list_limit = limits.body
        self._room = limits.in_flight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._admit(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close"})  # before accepting, so that clients fall back
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def aclose(self) -> None:
        """Close the connections to upstream; a later request opens new ones."""
        await self._asking.aclose()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (b"upgrade", b"websocket") in scope["headers"]:  # the server has no WebSockets
            await _relay(refusal(426, "no_websocket", "WebSockets are not served here."), send)
            return
        client = _Client(receive)
        if (body := await client.body()) is None:
            return
        if not self._room:
            self._metrics.refusals.labels("overloaded").inc()
            _note(scope, status=503, code="overloaded")
            await _relay(later("overloaded", "Too many requests are under way."), send)
            return
        place = self._places[scope.get(ROUTE, self._default).upstream.name]
        self._room -= 1  # once the body has begun: idle clients take no slot
        under_way = self._metrics.requests_in_flight.labels(place.name)
        under_way.inc()
        try:
            await self._serve(place, scope, client, body, send)
        finally:
            under_way.dec()
            self._room += 1

    async def _serve(
        self, place: Place, scope: Scope, client: _Client, body: bytes | _Client, send: Send
    ) -> None:
        call = asyncio.create_task(self._answer(place, scope, body))
        watch = asyncio.create_task(client.watch(call))
        response = None
        try:
            response = await call
            _note(scope, status=response.status_code)
            with suppress(OSError):  # how a server reports that the client has left
                await _relay(response, send)
        except asyncio.CancelledError:
            if not client.gone:
                _note(scope, status=None if response is not None else 503, code=SHUTTING_DOWN)
                if response is None:
                    await _part(send)
                raise
        except OSError:
            if not client.gone:
                raise
        except httpx.TransportError as error:
            if not client.gone:
                failure = failure_of(error)
                self._asking.failed(place, failure)
                _note(scope, code=failure.code)
                raise broken(failure, place) from error
        finally:
            await _close(call)
            await _end(watch)

    async def _answer(self, place: Place, scope: Scope, body: bytes | _Client) -> httpx.Response:
        if len(self._places) > 1 and asks_for_models(scope):
            return await all_models(scope, self._places.values(), self._asking, self._list_limit)
        try:
            return await self._asking.ask(place, scope, body)
        except FAILURES as error:
            note(error, place)
            failure = failure_of(error)
            _note(scope, code=failure.code)
            return refusal(failure.status, failure.code, failure.message)


class _Client(httpx.AsyncByteStream):
    """Reads the client's `receive`: first the request body, then the disconnect."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._piece: bytes | None = None
        self._more = True
        self._read = asyncio.Event()
        self.gone = False

    async def body(self) -> bytes | _Client | None:
        """Return the body if it came whole, else a stream of it; None if the client has left."""
        await self._hear()
        if self.gone:
            return None
        return self if self._more else self._piece

    def __aiter__(self) -> _Client:
        return self

    async def __anext__(self) -> bytes:
        if self._piece is None and self._more:
            await self._hear()
        if self.gone:
            raise OSError("the client has left")
        if self._piece is None:
            raise StopAsyncIteration
        piece, self._piece = self._piece, None
        return piece

    async def watch(self, call: asyncio.Task[httpx.Response]) -> None:
        """Wait for the client to leave; then cancel the call, or close the response it returned."""
        await self._read.wait()
        while not self.gone:
            await self._hear()
        call.cancel()
        await _close(call)

    async def _hear(self) -> None:
        message = await self._receive()
        self.gone = message["type"] == "http.disconnect"
        self._piece = message.get("body", b"")
        self._more = message.get("more_body", False)
        if not self._more:
            self._read.set()


def _note(scope: Scope, *, status: int | None = None, code: str | None = None) -> None:
    """Update the request's record, if the middleware keeps one."""
    record: Record | None = scope.get(RECORD)
    if record is not None:
        record.status = status or record.status
        record.fail(code)


async def _relay(response: httpx.Response, send: Send) -> None:
    headers = end_to_end(response.headers.raw)
    if response.status_code in (204, 304):  # it is not the length of this body, which is empty
        headers = [header for header in headers if header[0] != b"content-length"]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    async for piece in cast(httpx.AsyncByteStream, response.stream):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _part(send: Send) -> None:
    """Tell the client that the server cancels its request, within `NOTICE_SECONDS`."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(GOODBYE):
            await _relay(later(SHUTTING_DOWN, "The server is shutting down."), send)


async def _close(call: asyncio.Task[httpx.Response]) -> None:
    if call.done() and not call.cancelled() and call.exception() is None:
        await cast(httpx.AsyncByteStream, call.result().stream).aclose()


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        if (this := asyncio.current_task()) is not None and this.cancelling():
            raise
