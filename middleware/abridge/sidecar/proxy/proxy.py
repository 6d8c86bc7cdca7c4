"""An ASGI app that forwards each request to an upstream, unaware of reasoning.

Theory of operation. The middleware around it, if there is one, has chosen the upstream and left its
choice in the scope. Once the response's headers are in, the body is forwarded chunk by chunk, each
sent before the next is read, so that a slow client slows down its own upstream. Where `send` offers
to write without awaiting, that happens as a chunk comes, and no task is woken. When the client
leaves, this ends as at a timeout: what is awaited is cancelled, and the response closed.
Abridge's own server calls when a client leaves; with others, or while a request's body is still
coming, a task waits for it.

A failure before the headers becomes an error response in the API's error shape. After them it is
too late for one: `UpstreamBroken` is raised, and the server breaks the client's connection as
upstream broke its own. Likewise a request that a stopping server cancels gets an error response
only before the headers; one that is cancelled otherwise is left to whoever cancelled it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import httpx
from prometheus_client import CollectorRegistry
from starlette.types import Message, Receive, Scope, Send

from abridge.client_shares import ClientShares, client_of
from abridge.config.settings import ATTEMPT, ROUTE, Settings, check_settings
from abridge.http.asgi import (
    answering_upgrade,
    call_on_leave,
    find_write_at_once,
    get_header,
    send_whole,
)
from abridge.http.transport import HttpResponse, Transport
from abridge.lasting import Lasting
from abridge.observability.metrics import metrics_for
from abridge.observability.record import RECORD, SHUTTING_DOWN, Record, cancellation_cause
from abridge.pipeline.health import Attempt
from abridge.sidecar.proxy.calls import (
    TRANSPORT_ERRORS,
    UpstreamCaller,
    classify_failure,
    log_failure,
    upstream_broken_error,
)
from abridge.sidecar.proxy.errors import error_response
from abridge.sidecar.proxy.models import is_models_request, join_models
from abridge.sidecar.proxy.response_heads import ResponseHeads
from abridge.sidecar.proxy.targets import UpstreamTarget, make_instance
from abridge.waiting import Flag

NOTICE_SECONDS = 1.0
"""Seconds for a request that a stopping server cancels to send its error response."""

KEPT_FOR_OTHERS = 0.1
"""Share of the requests at once that a client who has all the others does not get, unless a client
may have all of everything."""

READ_AHEAD = 256 << 10
"""Bytes of a request body that are read before upstream takes them."""


class Proxy:
    """Forward requests to the upstreams of `settings`, each of which needs a `base_url`.

    An upstream with an `api_key_env` is called with that key, which is read once, here. Wrap the
    proxy in `AbridgeMiddleware`, which decides what clients that share a key may reach. Any other
    upstream gets the client's credential only if its settings say so. `transport` sends the
    requests, if given. Metrics go to `registry`, or to the default one. `lasting` is what it shares
    with those before and after it, where a change of settings makes another one. Raises
    SettingsError.
    """

    calls_upstreams = True
    """Tells the middleware around it that the addresses in the settings are used."""

    def __init__(
        self,
        settings: Settings,
        transport: httpx.AsyncBaseTransport | None = None,
        registry: CollectorRegistry | None = None,
        *,
        lasting: Lasting | None = None,
    ) -> None:
        check_settings(settings)
        self._settings, limits = settings, settings.limits
        self._metrics = metrics_for(registry)
        instance = make_instance()
        self._targets = {
            route.upstream.name: UpstreamTarget.from_route(route, instance)
            for route in settings.routes
        }
        self._default = settings.routes[0]
        transport = transport or Transport(
            connect=limits.connect, headers=limits.headers, idle=limits.idle
        )
        heads = ResponseHeads(settings.server.allowed_origins)
        self._caller = UpstreamCaller(transport, self._metrics, heads)
        self._slots = (lasting or Lasting()).get("slots", ClientShares)
        if lasting is None:
            self.take_effect()

    def take_effect(self) -> None:
        """Have the limits of the settings hold for what this one shares with others."""
        total = self._settings.limits.in_flight
        kept = int(total * min(KEPT_FOR_OTHERS, 1 - self._settings.limits.client_share))
        self._metrics.requests_in_flight_limit.inc(total - self._slots.total)
        self._slots.resize(total, total - kept)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await _send_response(_no_websocket(scope), answering_upgrade(scope, send))
        elif scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif get_header(scope["headers"], b"upgrade").lower() == b"websocket":
            await _send_response(_no_websocket(scope), send)
        elif (first := await receive())["type"] != "http.disconnect":
            await self._admit(scope, _ClientStream(receive, first), send)

    async def aclose(self) -> None:
        """Close the connections to upstream; a later request opens new ones."""
        await self._caller.aclose()

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _admit(self, scope: Scope, client: _ClientStream, send: Send) -> None:
        name = client_of(scope)
        if not self._slots.take(name, 1):  # once the body has begun: idle clients take no slot
            self._metrics.refusals.labels("overloaded").inc()
            _update_record(scope, status=503, code="overloaded")
            await _send_response(
                error_response(scope, 503, "overloaded", "Too many requests are in progress."),
                send,
            )
            return
        target = self._targets[scope.get(ROUTE, self._default).upstream.name]
        in_flight = self._metrics.requests_in_flight.labels(target.name)
        in_flight.inc()
        try:
            await self._forward(target, scope, client, send)
        finally:
            in_flight.dec()
            self._slots.give_back(name, 1)

    async def _forward(
        self, target: UpstreamTarget, scope: Scope, client: _ClientStream, send: Send
    ) -> None:
        response = None
        try:
            async with asyncio.timeout(None) as limit:
                client.watch(limit)
                response = await self._call_upstream(target, scope, client)
                _update_record(scope, status=response.status)
                await _send_response(response, send)
        except asyncio.CancelledError as error:
            if not client.disconnected:
                cause = cancellation_cause(error)
                unanswered = cause == SHUTTING_DOWN and response is None
                _update_record(scope, status=503 if unanswered else None, code=cause)
                if unanswered:
                    await _send_shutdown_notice(scope, send)
            raise
        except OSError:  # how a server reports that the client has left, and `limit` does
            if response is None and not client.disconnected:
                raise
        except httpx.TransportError as error:
            if not client.disconnected:
                failure = classify_failure(error)
                self._caller.count_failure(target, failure)
                _update_record(scope, code=failure.code)
                raise upstream_broken_error(failure, target) from error
        finally:
            try:
                if response is not None:
                    await response.aclose()
            finally:
                watcher, client.watcher = client.watcher, None
                if watcher is not None:
                    await _cancel_task(watcher)  # raises what `receive` raised meanwhile

    async def _call_upstream(
        self, target: UpstreamTarget, scope: Scope, client: _ClientStream
    ) -> HttpResponse:
        body = client if client.body is None else client.body
        if is_models_request(scope) and (len(self._targets) > 1 or target.renames):
            return await join_models(scope, self._targets.values(), self._caller, self._settings)
        try:
            attempt: Attempt | None = scope.get(ATTEMPT)
            if attempt is not None and isinstance(body, bytes):
                return await self._caller.attempt(target, scope, body, attempt)
            return await self._caller.call(target, scope, body)
        except TRANSPORT_ERRORS as error:
            log_failure(error, target)
            failure = classify_failure(error)
            _update_record(scope, code=failure.code)
            return error_response(scope, failure.status, failure.code, failure.message)


class _ClientStream(httpx.AsyncByteStream):
    """Reads the client's `receive` after the `first` message: the request body, and the disconnect.

    While the client is watched, that alone reads, at most `READ_AHEAD` bytes ahead of upstream: so
    it is noticed that the client has left even if upstream does not read the body.
    """

    def __init__(self, receive: Receive, first: Message) -> None:
        self._receive = receive
        self._chunks: list[bytes] = []
        self._unread_bytes = 0
        self._more_body: bool = first.get("more_body", False)
        self._changed = Flag()  # set by each message received, and each chunk taken
        self._limit: asyncio.Timeout  # set once it is watched
        self.watcher: asyncio.Task[None] | None = None
        self.disconnected = False
        self.body: bytes | None = None  # None if it comes piece by piece
        if self._more_body:
            self._keep(first)
        else:
            self.body = first.get("body", b"")

    def __aiter__(self) -> _ClientStream:
        return self

    async def __anext__(self) -> bytes:
        while self._more_body and not self._chunks:
            self._changed.clear()
            await self._changed.wait()
        if self.disconnected:
            raise OSError("the client has left")
        if not self._chunks:
            raise StopAsyncIteration
        return self._take_chunks()

    def watch(self, limit: asyncio.Timeout) -> None:
        """Have `limit` end once the client leaves. The server tells that by a call, if it can, and
        nothing of the body is to come. Otherwise a task waits for it."""
        self._limit = limit
        if self._more_body or not call_on_leave(self._receive, self._leave):
            self.watcher = asyncio.create_task(self._wait_until_it_leaves())

    async def _wait_until_it_leaves(self) -> None:
        try:
            while not self.disconnected:
                await self._wait_for_room()
                self._keep(await self._receive())
        finally:
            self._end()

    def _leave(self) -> None:
        self.disconnected = True
        self._end()

    def _end(self) -> None:
        with suppress(RuntimeError):  # it has ended already
            self._limit.reschedule(asyncio.get_running_loop().time())

    async def _wait_for_room(self) -> None:
        while self._unread_bytes >= READ_AHEAD:
            self._changed.clear()
            await self._changed.wait()

    def _keep(self, message: Message) -> None:
        self.disconnected = message["type"] == "http.disconnect"
        self._chunks.append(message.get("body", b""))
        self._unread_bytes += len(self._chunks[-1])
        self._more_body = message.get("more_body", False)
        self._changed.set()

    def _take_chunks(self) -> bytes:
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._unread_bytes = 0
        self._changed.set()
        return data


def _update_record(scope: Scope, *, status: int | None = None, code: str | None = None) -> None:
    """Update the request's record, if the middleware keeps one."""
    record: Record | None = scope.get(RECORD)
    if record is not None:
        record.status = status or record.status
        record.note_error(code)


def _no_websocket(scope: Scope) -> HttpResponse:
    """Return what clients fall back to HTTP after."""
    return error_response(scope, 426, "no_websocket", "WebSockets are not served here.")


async def _send_response(response: HttpResponse, send: Send) -> None:
    headers = response.headers
    if response.status in (204, 304):  # it is not the length of this body, which is empty
        headers = [header for header in headers if header[0] != b"content-length"]
    start = {"type": "http.response.start", "status": response.status, "headers": headers}
    if (body := response.take_whole()) is not None:
        await send_whole(send, start, body)
        return
    await send(start)
    if (write_at_once := find_write_at_once(send)) is not None:
        response.write_to(write_at_once)
    async for chunk in response.body:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        del chunk  # or it stays while the next one is awaited
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_shutdown_notice(scope: Scope, send: Send) -> None:
    """Tell the client that the server is stopping, within `NOTICE_SECONDS`."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(NOTICE_SECONDS):
            stopping = error_response(scope, 503, SHUTTING_DOWN, "The server is shutting down.")
            await _send_response(stopping, send)


async def _cancel_task(task: asyncio.Task[None]) -> None:
    """Cancel a task; raise what it raised before."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
