"""The outgoing transport: aiohttp's engine behind httpx's transport interface.

Theory of operation. A request is sent as given: its target and headers go out byte for byte; no
header is added, and nothing is quoted again. The response is returned likewise, each chunk as it
arrives. There is no state between requests: no cookies, credentials or redirects. Only idle
connections are kept, in one pool for each event loop, made on first use.

Upstream may have closed a pooled connection while it was idle. The request is then sent a second
time, provided that no byte of a response came and that its body is at hand as bytes.

Errors are httpx's own: ConnectError, ConnectTimeout, ReadTimeout (before the headers or in the
body), ReadError, RemoteProtocolError, and LocalProtocolError for an invalid request.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass

import httpx
from aiohttp import ClientTimeout

from abridge.http.link import ENGINE_ERRORS, Link, Pool, translated


class Transport(httpx.AsyncBaseTransport):
    """Sends requests over HTTP/1.1.

    Times are in seconds: `connect` limits connecting, `headers` the silence before a response's
    headers, `idle` the silence before each chunk of its body. A request's own timeouts are ignored.
    `tls` replaces the default context, which verifies against the system's roots.

    A request's headers must frame its body, by Content-Length or as chunks. Its extension `target`,
    if present, is sent instead of its URL's path and query, as in httpcore.
    """

    def __init__(
        self, *, connect: float, headers: float, idle: float, tls: ssl.SSLContext | None = None
    ) -> None:
        self._connect = ClientTimeout(connect=connect)
        self._headers = headers
        self._idle = idle
        self._tls = tls
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        message = _Message.of(request)
        link = await self._link(request.url)
        try:
            return await self._ask(link, message)
        except (httpx.ReadError, httpx.RemoteProtocolError):
            if link.answered or not link.reused or message.stream is not None:
                raise
        return await self._ask(await self._link(request.url), message)

    async def aclose(self) -> None:
        """Close the running loop's connections; a later request opens new ones."""
        if (pool := self._pools.pop(asyncio.get_running_loop(), None)) is not None:
            await pool.close()

    async def _link(self, url: httpx.URL) -> Link:
        loop = asyncio.get_running_loop()
        if (pool := self._pools.get(loop)) is None:
            for closed in [known for known in self._pools if known.is_closed()]:
                await self._pools.pop(closed).close()
            pool = self._pools.setdefault(loop, Pool(self._tls))
        return await pool.take(url, self._connect)

    async def _ask(self, link: Link, message: _Message) -> httpx.Response:
        try:
            link.send(message.data, silence=self._headers, bodiless=message.for_headers)
            if message.stream is not None:
                link.upload(message.stream, message.length)
            head = await link.response()
        except BaseException:
            link.cut()
            raise
        link.expect_body(self._idle)
        return httpx.Response(head.code, headers=head.raw_headers, stream=_Body(link))


@dataclass(slots=True)
class _Message:
    """A request as bytes."""

    data: bytes  # the head, and the body if it is at hand
    stream: httpx.AsyncByteStream | None  # the body if it is not
    length: int | None  # of the body, in bytes; None: chunked
    for_headers: bool  # HEAD: the response has no body

    @classmethod
    def of(cls, request: httpx.Request) -> _Message:
        """Raises httpx.LocalProtocolError for a request that upstream could misread."""
        headers, stream = request.headers.raw, request.stream
        data, length = _head(request, headers), _length(headers)
        if isinstance(stream, httpx.ByteStream):
            body = b"".join(stream)
            if len(body) != length:
                raise httpx.LocalProtocolError("The request's body is not as long as it says.")
            return cls(data + body, None, length, request.method == "HEAD")
        if isinstance(stream, httpx.AsyncByteStream):
            return cls(data, stream, length, request.method == "HEAD")
        raise httpx.LocalProtocolError("The request's body is not an asynchronous stream.")


def _head(request: httpx.Request, headers: list[tuple[bytes, bytes]]) -> bytes:
    target = request.extensions.get("target") or request.url.raw_path
    lines = [b"%b %b HTTP/1.1" % (request.method.encode(), target)]
    lines += map(b": ".join, headers)
    head = b"\r\n".join(lines)
    ends = len(lines) - 1
    if head.count(b"\r") != ends or head.count(b"\n") != ends or lines[0].count(b" ") != 2:
        raise httpx.LocalProtocolError("The request's head has a line end or a space too many.")
    return head + b"\r\n\r\n"


def _length(headers: list[tuple[bytes, bytes]]) -> int | None:
    """Return the body's length in bytes, or None if it is chunked.

    Raises httpx.LocalProtocolError if the headers are ambiguous: two servers might see the body end
    at two different positions (request smuggling).
    """
    said = [
        (lowered, value)
        for name, value in headers
        if (lowered := name.lower()) in (b"content-length", b"transfer-encoding")
    ]
    match said:
        case []:
            return 0
        case [(b"content-length", digits)] if digits.isdigit():
            return int(digits)
        case [(b"transfer-encoding", coding)] if coding.lower() == b"chunked":
            return None
    raise httpx.LocalProtocolError("The request's headers do not say where its body ends.")


class _Body(httpx.AsyncByteStream):
    """A response's body, chunk by chunk as it arrives. Closing it early closes the connection."""

    def __init__(self, link: Link) -> None:
        self._link: Link | None = link
        self._data = link.body
        self._failure: httpx.TransportError | None = None

    def __aiter__(self) -> _Body:
        return self

    async def __anext__(self) -> bytes:
        try:
            piece = await self._data.readany()
        except ENGINE_ERRORS as error:
            await self.aclose()
            raise translated(error) from error
        if piece:
            return piece
        await self.aclose()
        if self._failure is not None:
            raise self._failure
        raise StopAsyncIteration

    async def aclose(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            self._failure = link.end()
