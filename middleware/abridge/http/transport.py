"""The outgoing transport, behind httpx's transport interface.

Theory of operation. A request is sent as given: its target and headers go out byte for byte; no
header is added, and nothing is quoted again. The response is returned likewise, each chunk as it
arrives. There is no state between requests: no cookies, credentials or redirects. Only idle
connections are kept, in one pool for each event loop, made on first use.

Upstream may have closed a pooled connection while it was idle. The request is then sent a second
time, on a new connection, provided that no byte of a response came, that its body is at hand as
bytes, and that the connection ended soon: one that ends later was open, and upstream may have
worked on the request until then. One that was closed here was open, too.

Errors are httpx's own: ConnectError, ConnectTimeout, ReadTimeout (before the headers or in the
body), ReadError, RemoteProtocolError, and LocalProtocolError for an invalid request.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from socket import gaierror
from typing import cast
from urllib.parse import quote

import httpx

from abridge.http.asgi import PATH_SAFE, quote_non_ascii
from abridge.http.connections import UpstreamConnection
from abridge.http.forward_proxy import ForwardProxy, find_proxy
from abridge.http.pool import ConnectionPool

STALE_SECONDS = 2.0
"""Seconds in which a connection that upstream had closed before a request says so."""


@dataclass(slots=True)
class HttpRequest:
    """A request, as it goes out."""

    method: str
    origin: str  # the scheme, host and port of upstream
    target: bytes  # its path and query
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes | httpx.AsyncByteStream
    length: int | None  # of the body, as the headers frame it; None: chunked

    @classmethod
    def from_httpx(cls, request: httpx.Request) -> HttpRequest:
        """Raises httpx.LocalProtocolError for a request that upstream could misread."""
        url, headers, stream = request.url, request.headers.raw, request.stream
        if not isinstance(stream, httpx.AsyncByteStream):
            raise httpx.LocalProtocolError("The request's body is not an asynchronous stream.")
        return cls(
            request.method,
            f"{url.scheme}://{url.netloc.decode()}",
            request.extensions.get("target") or url.raw_path,
            headers,
            b"".join(stream) if isinstance(stream, httpx.ByteStream) else stream,
            body_length(headers),
        )


@dataclass(slots=True)
class HttpResponse:
    """A response, whose body is read as it comes."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: httpx.AsyncByteStream

    def aclose(self) -> Awaitable[None]:
        return self.body.aclose()

    def take_whole(self) -> bytes | None:
        """Return the body if all of it has come, else None."""
        return self.body.take_whole() if isinstance(self.body, _ResponseBody) else None

    def write_to(self, write_at_once: Callable[[bytes], bool]) -> None:
        """Have pieces of the body written as they come, while the next one is awaited. What is not
        written so is read as the next: all of it where another transport sends."""
        if isinstance(self.body, _ResponseBody):
            self.body.write_at_once = write_at_once


def os_error_text(error: BaseException | None) -> str | None:
    """Return the operating system's message in an error, None if there is none."""
    while error is not None:
        if isinstance(error, ConnectionError) and error.errno:
            return os.strerror(error.errno)
        if isinstance(error, gaierror):
            return error.strerror
        error = error.__cause__ or error.__context__
    return None


class Transport(httpx.AsyncBaseTransport):
    """Sends requests over HTTP/1.1.

    Times are in seconds: `connect` limits connecting, `headers` the silence before a response's
    headers, `idle` the silence while a chunk of its body is awaited. A request's own timeouts are
    ignored. Requests go by the proxy that the environment names, if it does.
    `tls` replaces the default context, which verifies against the system's roots.

    A request's headers must frame its body, by Content-Length or as chunks. The extension `target`
    of httpx's, if present, is sent instead of its URL's path and query, as in httpcore.
    """

    def __init__(
        self, *, connect: float, headers: float, idle: float, tls: ssl.SSLContext | None = None
    ) -> None:
        self._new_pool = partial(ConnectionPool, tls, connect)
        self._headers_timeout = headers
        self._idle_timeout = idle
        self._pools: dict[asyncio.AbstractEventLoop, ConnectionPool] = {}
        self._proxies: dict[str, ForwardProxy | None] = {}  # by origin, of which settings name few

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self.send(HttpRequest.from_httpx(request))
        return httpx.Response(response.status, headers=[*response.headers], stream=response.body)

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Return the response as soon as its headers are in; what httpx's objects cost is saved."""
        proxy = self._find_proxy(request.origin)
        data = _format(request if proxy is None else _via(proxy, request))
        connection = await self._acquire(request.origin, proxy)
        loop = asyncio.get_running_loop()
        sent_at = loop.time()
        try:
            return await self._send(connection, request, data)
        except (httpx.ReadError, httpx.RemoteProtocolError):
            ended_soon = loop.time() - sent_at < STALE_SECONDS
            is_stale = connection.is_reused and ended_soon and loop in self._pools
            if connection.has_received or not is_stale or not isinstance(request.body, bytes):
                raise
        connection = await self._acquire(request.origin, proxy, fresh=True)
        return await self._send(connection, request, data)

    async def aclose(self) -> None:
        """Close the running loop's connections; a later request opens new ones."""
        if (pool := self._pools.pop(asyncio.get_running_loop(), None)) is not None:
            await pool.close()

    def _find_proxy(self, origin: str) -> ForwardProxy | None:
        if origin not in self._proxies:
            try:
                self._proxies[origin] = find_proxy(origin)
            except ValueError as error:
                raise httpx.ConnectError(str(error)) from None
        return self._proxies[origin]

    async def _acquire(
        self, origin: str, proxy: ForwardProxy | None, *, fresh: bool = False
    ) -> UpstreamConnection:
        loop = asyncio.get_running_loop()
        if (pool := self._pools.get(loop)) is None:
            for closed in [known for known in self._pools if known.is_closed()]:
                await self._pools.pop(closed).close()
            pool = self._pools.setdefault(loop, self._new_pool())
        return await pool.acquire(origin, proxy, fresh=fresh)

    async def _send(
        self, connection: UpstreamConnection, request: HttpRequest, data: bytes
    ) -> HttpResponse:
        try:
            connection.send_request(
                data, idle_timeout=self._headers_timeout, is_head=request.method == "HEAD"
            )
            if not isinstance(request.body, bytes):
                connection.start_upload(request.body, request.length)
            head = await connection.read_head()
        except BaseException:
            connection.disconnect()
            raise
        connection.set_idle_timeout(self._idle_timeout)
        return HttpResponse(head.status, head.headers, _ResponseBody(connection))


async def send_by(transport: httpx.AsyncBaseTransport, request: HttpRequest) -> HttpResponse:
    """Send a request by any transport of httpx's. Raises httpx.InvalidURL, and what it raises."""
    path, _, query = request.target.partition(b"?")
    url = httpx.URL(request.origin + quote(path, PATH_SAFE + "%"))
    body = request.body
    response = await transport.handle_async_request(
        httpx.Request(
            request.method,
            url.copy_with(query=quote_non_ascii(query).encode()) if query else url,
            headers=[*request.headers],
            stream=httpx.ByteStream(body) if isinstance(body, bytes) else body,
            extensions={"target": request.target},
        )
    )
    stream = cast(httpx.AsyncByteStream, response.stream)
    return HttpResponse(response.status_code, response.headers.raw, stream)


def _via(proxy: ForwardProxy, request: HttpRequest) -> HttpRequest:
    """Return a request as a proxy is sent it; through a tunnel it goes as it is."""
    if request.origin.startswith("https:"):
        return request
    headers = ((name.encode(), value.encode()) for name, value in proxy.headers.items())
    return replace(
        request,
        target=request.origin.encode() + request.target,
        headers=[*request.headers, *headers],
    )


def _format(request: HttpRequest) -> bytes:
    """Return the head as bytes, and the body if it is at hand.

    Raises httpx.LocalProtocolError for what upstream could misread.
    """
    lines = [b"%b %b HTTP/1.1" % (request.method.encode(), request.target)]
    lines += map(b": ".join, request.headers)
    head = b"\r\n".join(lines)
    line_ends = len(lines) - 1
    if (
        head.count(b"\r") != line_ends
        or head.count(b"\n") != line_ends
        or lines[0].count(b" ") != 2
    ):
        raise httpx.LocalProtocolError("The request's head has an extra line end or space.")
    body = request.body if isinstance(request.body, bytes) else None
    if body is not None and len(body) != request.length:
        raise httpx.LocalProtocolError(
            "The request's body does not have the length that it announced."
        )
    return b"%b\r\n\r\n%b" % (head, body or b"")


def body_length(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
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
        self.write_at_once: Callable[[bytes], bool] | None = None
        self._failure: Exception | None = None

    def take_whole(self) -> bytes | None:
        return None if self._connection is None else self._connection.take_whole()

    def __aiter__(self) -> _ResponseBody:
        return self

    async def __anext__(self) -> bytes:
        if self._connection is not None:
            try:
                chunk = await self._connection.read_body(self.write_at_once)
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
