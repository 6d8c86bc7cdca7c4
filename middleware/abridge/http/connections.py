"""Connections to upstreams, and their pool: the only module that knows aiohttp's internals.

It uses aiohttp for connecting, TLS, pooling, parsing and flow control, but not its client session,
and so nothing that a session adds to a request or keeps between two of them.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterable, Callable
from contextvars import Context, copy_context
from functools import partial
from typing import NamedTuple, TypeAlias, cast

import httpx
from aiohttp import (
    ClientConnectionResetError,
    ClientConnectorError,
    ClientError,
    ClientOSError,
    ClientProxyConnectionError,
    ClientRequest,
    ClientTimeout,
    SocketTimeoutError,
    TCPConnector,
)
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.helpers import set_exception, set_result
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawResponseMessage
from aiohttp.http_writer import StreamWriter
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.tracing import Trace
from yarl import URL

from abridge.http.forward_proxy import ForwardProxy
from abridge.waiting import LAST_LOOK

KEEP_ALIVE = 4.0  # seconds; uvicorn and vLLM close idle connections after five

READ_BUFFER = 32 << 10  # bytes; reading pauses while twice as many are unread

MAX_LINE = 64 << 10  # bytes of one line of a response's head

MAX_HEADERS = 1000  # of one response

MAX_AT_ONCE = 8 << 10  # bytes of a read that are taken at once; for more other streams get a turn

CLOSED_MESSAGE = "The connection was closed."

AIOHTTP_ERRORS = (ClientError, HttpProcessingError)

Take: TypeAlias = Callable[[bytes], bool]
"""Takes a piece of a body without awaiting; returns False, and takes nothing, if it cannot."""


class ConnectionPool(TCPConnector):
    """The connections of one event loop: unlimited, and kept for `KEEP_ALIVE` while idle."""

    def __init__(self, tls: ssl.SSLContext | None, connect_timeout: float) -> None:
        super().__init__(limit=0, keepalive_timeout=KEEP_ALIVE, ssl=tls or True)
        self._connect_timeout = ClientTimeout(connect=connect_timeout)
        self._factory = partial(cast("type[ResponseHandler]", UpstreamConnection), self._loop)
        self._connect_requests: dict[str, ClientRequest] = {}

    async def acquire(
        self, origin: str, proxy: ForwardProxy | None, *, fresh: bool
    ) -> UpstreamConnection:
        """Connect to an origin, by a proxy if there is one: to one of HTTPS, through a tunnel.

        Raises httpx.ConnectError or httpx.ConnectTimeout.
        With `fresh`, the origin's idle connections are closed: one of them was found dead.
        """
        try:
            request = self._connect_request(origin, proxy)
            if fresh:
                self._close_idle(request)
            connection = await self.connect(request, [], self._connect_timeout)
        except TimeoutError as error:
            raise httpx.ConnectTimeout("Connecting took too long.") from error
        except (ClientError, ValueError) as error:  # ValueError: the host name is invalid
            raise httpx.ConnectError(str(error)) from error
        protocol: UpstreamConnection = connection.protocol  # type: ignore[assignment]
        protocol.start_use(connection)
        return protocol

    def _close_idle(self, request: ClientRequest) -> None:
        for idle, _ in self._conns.pop(request.connection_key, ()):
            idle.close()

    async def _create_direct_connection(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: ClientTimeout,  # noqa: ASYNC109 -- as aiohttp has it
        *,
        client_error: type[Exception] = ClientConnectorError,
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        made = await super()._create_direct_connection(
            req, traces, timeout, client_error=client_error
        )
        if client_error is ClientProxyConnectionError:
            cast(UpstreamConnection, made[1]).await_tunnel()
        return made

    def _connect_request(self, origin: str, proxy: ForwardProxy | None) -> ClientRequest:
        """Return the request by which aiohttp identifies an origin; made once for each."""
        if (request := self._connect_requests.get(origin)) is None:
            request = ClientRequest("GET", URL(origin), loop=self._loop)
            if proxy is not None:
                # aiohttp would add Host itself, and with it change what connections are kept under.
                headers = {"Host": request.headers["Host"], **proxy.headers}
                request.update_proxy(URL(proxy.url), None, headers)
            self._connect_requests[origin] = request
        return request


class UpstreamConnection(ResponseHandler):
    """A connection, used by one request after another."""

    __slots__ = (  # with them aiohttp's attributes stay few enough for keys that all share
        "_connection",
        "_deadline",
        "_is_awaited",
        "_is_awaiting_tunnel",
        "_is_overdue",
        "_taker",
        "_timer_ends_at",
        "_upload",
        "_use_count",
        "body",
        "failure",
        "has_received",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._connection: Connection | None = None
        self._is_awaiting_tunnel = False
        self._use_count = 0
        self._upload: asyncio.Task[None] | None = None
        self.body = EMPTY_PAYLOAD
        self._taker: _Taker | None = None  # while that takes the body as it comes
        self._is_awaited = False  # True while upstream's next data is awaited
        self._deadline: float | None = None  # the time at which that is too long
        self._timer_ends_at = 0.0
        self._is_overdue = False  # True once that took too long, until the loop has looked again
        self.has_received = False  # True once a byte of the response has come
        self.failure: httpx.TransportError | None = None  # why the response will be incomplete

    def await_tunnel(self) -> None:
        """Accept a proxy's answer, which comes before the connection is in use."""
        self._is_awaiting_tunnel = True

    def start_use(self, connection: Connection) -> None:
        self._connection = connection
        self._is_awaiting_tunnel = False
        self._use_count += 1
        self._upload = None
        self._buffer = deque(self._buffer)  # of heads: see _shrink_queues
        self.body = EMPTY_PAYLOAD
        self.has_received = False

    @property
    def is_reused(self) -> bool:
        """True if the current request is not the connection's first."""
        return self._use_count > 1

    def finish(self) -> httpx.TransportError | None:
        """Return the connection to the pool if it is reusable, else close it.

        Returns the error if the response is incomplete.
        """
        failure = self.failure or (None if self.body.at_eof() else httpx.ReadError(CLOSED_MESSAGE))
        upload_done = self._upload is None or self._upload.done()
        if failure is not None or not upload_done or self._connection is None:
            self.disconnect()
            return failure
        self._connection.release()
        self._connection = None
        return None

    def disconnect(self) -> None:
        """Abort request and response: upstream notices at once, and so does the body's reader."""
        if self._upload is not None:
            self._upload.cancel()
        self.body.feed_eof()
        self._abort_transport()
        if self._connection is not None:
            self._connection.close()

    def _abort_transport(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    # The request

    def send_request(self, data: bytes, *, idle_timeout: float, is_head: bool) -> None:
        """Send the request, and fail the response after `idle_timeout` seconds of silence."""
        if self.transport is None or self.transport.is_closing():
            raise httpx.ReadError(CLOSED_MESSAGE)
        self.set_response_params(
            skip_payload=is_head,
            read_until_eof=True,
            auto_decompress=False,
            read_timeout=idle_timeout,
            read_bufsize=READ_BUFFER,
            max_line_size=MAX_LINE,
            max_field_size=MAX_LINE,
            max_headers=MAX_HEADERS,
        )
        self.transport.write(data)
        self._is_awaited = True
        self.start_timeout()

    def start_upload(self, body: AsyncIterable[bytes], length: int | None) -> None:
        """Start to send a body of `length` bytes, or a chunked one, while awaiting the response."""
        self._upload = asyncio.create_task(self._send_body(body, length))
        self._upload.add_done_callback(self._on_upload_done)

    async def _send_body(self, body: AsyncIterable[bytes], length: int | None) -> None:
        writer = StreamWriter(self, self._loop)
        writer.chunked = length is None
        sent = 0
        async for chunk in body:
            sent += len(chunk)
            if length is not None and sent > length:
                raise httpx.LocalProtocolError(
                    "The request's body is longer than its Content-Length."
                )
            await writer.write(chunk)
            self.start_timeout()
        if length is not None and sent < length:
            raise httpx.LocalProtocolError("The request's body is shorter than its Content-Length.")
        await writer.write_eof()

    def _on_upload_done(self, upload: asyncio.Task[None]) -> None:
        if not upload.cancelled() and (error := upload.exception()) is not None:
            self.set_exception(error)
            self._abort_transport()

    # The response

    async def read_head(self) -> RawResponseMessage:
        """Return the head of the final response.

        Raises httpx's errors, and those raised by the request body's stream.
        """
        try:
            head, self.body = await self.read()
            while head.code < 200:
                if head.code == 101:
                    raise httpx.RemoteProtocolError(
                        "Upstream switched protocols without a request for it."
                    )
                head, self.body = await self.read()
        except AIOHTTP_ERRORS as error:
            raise to_httpx_error(error) from error
        self._stop_timeout()
        self._shrink_queues()
        return head

    def _shrink_queues(self) -> None:
        """Have lists for aiohttp's queues, which it declares as the deques that it makes: each of
        those takes 760 bytes, and nothing is taken from these but everything at once."""
        self._buffer = [*self._buffer]  # type: ignore[assignment]
        if self.body is not EMPTY_PAYLOAD:
            self.body._buffer = [*self.body._buffer]  # type: ignore[assignment]
            self.body._http_chunk_splits = [*(self.body._http_chunk_splits or ())]  # type: ignore[assignment]

    async def read_body(self, take: Take | None = None) -> bytes:
        """Return what there is of the body, `b""` at its end; await it if there is nothing.

        What comes meanwhile is given to `take`, if there is one; what that does not take is
        returned. Raises httpx's errors, and what `take` raises.
        """
        body = self.body
        if body is EMPTY_PAYLOAD:
            return b""
        try:
            if (error := body.exception()) is not None:
                raise error
            while not (body._buffer or body.is_eof()):
                self._is_awaited = True
                self.start_timeout()
                await self._have_taken(body, take)
        except AIOHTTP_ERRORS as error:
            raise to_httpx_error(error) from error
        finally:
            if self._is_awaited:
                self._taker = body._eof_waiter = None
                self._stop_timeout()
        return self._take_all(body)

    def take_whole(self) -> bytes | None:
        """Return the body if all of it has come, else None, and take nothing."""
        body = self.body
        if body is EMPTY_PAYLOAD:
            return b""
        is_whole = body.is_eof() and self.failure is None and body.exception() is None
        return self._take_all(body) if is_whole else None

    def _take_all(self, body: StreamReader) -> bytes:
        data = _peek(body)
        _empty(body)
        if self._reading_paused:
            self.resume_reading()
        return data

    def _have_taken(self, body: StreamReader, take: Take | None) -> asyncio.Future[None]:
        """Have what comes given to `take`. Return what is done once something comes that is not
        taken, or no more comes: aiohttp tells that to the future that waits for the end."""
        waiter = body._eof_waiter = self._loop.create_future()
        self._taker = _Taker(take, copy_context(), waiter)
        return waiter

    # The limit on upstream's silence: a timer that is set anew only if it would end too late. One
    # that ends too early is set again then. So most chunks of a stream set none.

    def _stop_timeout(self) -> None:
        self._is_awaited = False
        self._drop_timeout()

    def _reschedule_timeout(self) -> None:
        # Upstream's silence delays nobody unless it is awaited, nor does our not reading it.
        if self._is_awaited and self._read_timeout:
            self._is_overdue = False
            self._deadline = self._loop.time() + self._read_timeout
            if self._read_timeout_handle is None or self._timer_ends_at > self._deadline:
                self._set_timer(self._deadline)

    def _set_timer(self, at: float) -> None:
        if self._read_timeout_handle is not None:
            self._read_timeout_handle.cancel()
        self._timer_ends_at = at
        self._read_timeout_handle = self._loop.call_at(at, self._on_read_timeout)

    def _drop_timeout(self) -> None:
        self._deadline = None
        if self.transport is None:
            super()._drop_timeout()

    def _on_read_timeout(self) -> None:
        """Fail, unless this is the first look: see `timers.py`."""
        self._read_timeout_handle = None
        if self._deadline is None:
            return
        now = self._loop.time()
        if self._is_overdue:
            super()._on_read_timeout()
        elif now < self._deadline:
            self._set_timer(self._deadline)
        else:
            self._is_overdue = True
            self._set_timer(now + LAST_LOOK)

    def data_received(self, data: bytes) -> None:
        # Unsolicited data must not answer the next request.
        if self._connection is None and not self._is_awaiting_tunnel:
            self._abort_transport()
            return
        self.has_received = True
        super().data_received(data)
        if self._taker is not None and self.body._buffer:
            self._taker.offer(self.body, is_small=len(data) <= MAX_AT_ONCE)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Let the body's reader get all that was received before it gets the error."""
        body, self._payload = self._payload or self.body, None
        ended = body.is_eof()
        super().connection_lost(exc)
        self._drop_timeout()
        if not ended and (exc is not None or not body.is_eof()):
            self.failure = self.failure or httpx.RemoteProtocolError("The response was cut short.")
            body.feed_eof()


class _Taker(NamedTuple):
    """Has a body taken as it comes, in the context of a task that waits, but without waking it."""

    take: Take | None
    context: Context
    waiter: asyncio.Future[None]

    def offer(self, body: StreamReader, *, is_small: bool) -> None:
        """Have what has come taken, or wake the task; also once it has been woken but did not
        run."""
        if self.waiter.done():
            return
        try:
            is_taken = (
                self.take is not None and is_small and self.context.run(self.take, _peek(body))
            )
        except Exception as error:  # noqa: BLE001 -- whatever it is, the task gets it
            set_exception(self.waiter, error)
            return
        if is_taken:
            _empty(body)  # after so little the transport has not been paused
        else:
            set_result(self.waiter, None)


def _peek(body: StreamReader) -> bytes:
    """Return all that there is of a body. aiohttp takes it piece by piece, and has its parser look
    for more after each."""
    pieces = body._buffer
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _empty(body: StreamReader) -> None:
    """Note that all that there is of a body was taken, as `read_nowait` does."""
    body._buffer.clear()
    body._size = 0
    body._cursor = body.total_bytes
    if body._http_chunk_splits:
        body._http_chunk_splits.clear()


def to_httpx_error(error: Exception) -> httpx.TransportError:
    """Translate an error of aiohttp's; the message contains nothing that upstream sent."""
    if isinstance(error, SocketTimeoutError):
        return httpx.ReadTimeout("Nothing was received for too long.")
    if isinstance(error, ClientOSError | ClientConnectionResetError):
        return httpx.ReadError(str(error))
    return httpx.RemoteProtocolError("Upstream closed the connection, or does not speak HTTP.")
