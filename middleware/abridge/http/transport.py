"""The outgoing transport: aiohttp's engine behind httpx's transport interface.

Theory of operation. A request is sent as given: its target and headers go out byte for byte; no
header is added, and nothing is quoted again. The response is returned likewise, each chunk as it
arrives. There is no state between requests: no cookies, credentials or redirects. Only idle
connections are kept, in one pool for each event loop, made on first use.

Upstream may have closed a pooled connection while it was idle. The request is then sent a second
time, on a new connection, provided that no byte of a response came and that its body is at hand as
bytes.

Errors are httpx's own: ConnectError, ConnectTimeout, ReadTimeout (before the headers or in the
body), ReadError, RemoteProtocolError, and LocalProtocolError for an invalid request.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from abridge.http.connections import ConnectionPool, UpstreamConnection


class Transport(httpx.AsyncBaseTransport):
    """Sends requests over HTTP/1.1.

    Times are in seconds: `connect` limits connecting, `headers` the silence before a response's
    headers, `idle` the silence while a chunk of its body is awaited. A request's own timeouts are
    ignored.
    `tls` replaces the default context, which verifies against the system's roots.

    A request's headers must frame its body, by Content-Length or as chunks. Its extension `target`,
    if present, is sent instead of its URL's path and query, as in httpcore.
    """

    def __init__(
        self, *, connect: float, headers: float, idle: float, tls: ssl.SSLContext | None = None
    ) -> None:
        from abridge.http.connections import ConnectionPool  # noqa: PLC0415 -- aiohttp takes 0.15 s

        self._new_pool = partial(ConnectionPool, tls, connect)
        self._headers_timeout = headers
        self._idle_timeout = idle
        self._pools: dict[asyncio.AbstractEventLoop, ConnectionPool] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        message = _OutgoingRequest.from_request(request)
        connection = await self._acquire(request.url)
        try:
            return await self._send(connection, message)
        except (httpx.ReadError, httpx.RemoteProtocolError):
            if connection.has_received or not connection.is_reused or message.stream is not None:
                raise
        return await self._send(await self._acquire(request.url, fresh=True), message)

    async def aclose(self) -> None:
        """Close the running loop's connections; a later request opens new ones."""
        if (pool := self._pools.pop(asyncio.get_running_loop(), None)) is not None:
            await pool.close()

    async def _acquire(self, url: httpx.URL, *, fresh: bool = False) -> UpstreamConnection:
        loop = asyncio.get_running_loop()
        if (pool := self._pools.get(loop)) is None:
            for closed in [known for known in self._pools if known.is_closed()]:
                await self._pools.pop(closed).close()
            pool = self._pools.setdefault(loop, self._new_pool())
        return await pool.acquire(url, fresh=fresh)

    async def _send(
        self, connection: UpstreamConnection, message: _OutgoingRequest
    ) -> httpx.Response:
        try:
            connection.send_request(
                message.data, idle_timeout=self._headers_timeout, is_head=message.is_head
            )
            if message.stream is not None:
                connection.start_upload(message.stream, message.length)
            head = await connection.read_head()
        except BaseException:
            connection.disconnect()
            raise
        connection.read_timeout = self._idle_timeout
        return httpx.Response(head.code, headers=head.raw_headers, stream=_ResponseBody(connection))


@dataclass(slots=True)
class _OutgoingRequest:
    """A request as bytes."""

    data: bytes  # the head, and the body if it is at hand
    stream: httpx.AsyncByteStream | None  # the body if it is not
    length: int | None  # of the body, in bytes; None: chunked
    is_head: bool  # HEAD: the response has no body

    @classmethod
    def from_request(cls, request: httpx.Request) -> _OutgoingRequest:
        """Raises httpx.LocalProtocolError for a request that upstream could misread."""
        headers, stream = request.headers.raw, request.stream
        data, length = _format_head(request, headers), _body_length(headers)
        if isinstance(stream, httpx.ByteStream):
            body = b"".join(stream)
            if len(body) != length:
                raise httpx.LocalProtocolError("The request's body is not as long as it says.")
            return cls(data + body, None, length, request.method == "HEAD")
        if isinstance(stream, httpx.AsyncByteStream):
            return cls(data, stream, length, request.method == "HEAD")
        raise httpx.LocalProtocolError("The request's body is not an asynchronous stream.")


def _format_head(request: httpx.Request, headers: list[tuple[bytes, bytes]]) -> bytes:
    target = request.extensions.get("target") or request.url.raw_path
    lines = [b"%b %b HTTP/1.1" % (request.method.encode(), target)]
    lines += map(b": ".join, headers)
    head = b"\r\n".join(lines)
    line_ends = len(lines) - 1
    if (
        head.count(b"\r") != line_ends
        or head.count(b"\n") != line_ends
        or lines[0].count(b" ") != 2
    ):
        raise httpx.LocalProtocolError("The request's head has a line end or a space too many.")
    return head + b"\r\n\r\n"


def _body_length(headers: list[tuple[bytes, bytes]]) -> int | None:
    """Return the body's length in bytes, or None if it is chunked.

    Raises httpx.LocalProtocolError if the headers are ambiguous: two servers might see the body end
    at two different positions (request smuggling).
    """
    framing = [
        (lowered, value)
        for name, value in headers
        if (lowered := name.lower()) in (b"content-length", b"transfer-encoding")
    ]
    match framing:
        case []:
            return 0
        case [(b"content-length", digits)] if digits.isdigit():
            return int(digits)
        case [(b"transfer-encoding", coding)] if coding.lower() == b"chunked":
            return None
    raise httpx.LocalProtocolError("The request's headers do not say where its body ends.")


class _ResponseBody(httpx.AsyncByteStream):
    """A response's body, chunk by chunk as it arrives. Closing it early closes the connection."""

    def __init__(self, connection: UpstreamConnection) -> None:
        self._connection: UpstreamConnection | None = connection
        self._read = connection.read_body
        self._failure: httpx.TransportError | None = None

    def __aiter__(self) -> _ResponseBody:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._read()
        except httpx.TransportError:
            await self.aclose()
            raise
        if chunk:
            return chunk
        await self.aclose()
        if self._failure is not None:
            raise self._failure
        raise StopAsyncIteration

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._failure = connection.finish()
