"""Make requests and read their responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import cast

import httpx

from abridge.http.connections import UpstreamConnection
from abridge.http.transport import Transport


def get(url: str, path: str = "/", headers: Iterable[tuple[bytes, bytes]] = ()) -> httpx.Request:
    return httpx.Request("GET", url + path, headers=[*headers], stream=httpx.ByteStream(b""))


def post(url: str, body: bytes | AsyncIterator[bytes], length: int | None = None) -> httpx.Request:
    """Return a POST of bytes, or of a stream, of `length` bytes or in chunks."""
    if isinstance(body, bytes):
        return httpx.Request("POST", url, content=body)
    framing = (
        {"transfer-encoding": "chunked"} if length is None else {"content-length": f"{length}"}
    )
    return httpx.Request("POST", url, headers=framing, content=body)


def iter_chunks(response: httpx.Response) -> AsyncIterator[bytes]:
    return aiter(cast(httpx.AsyncByteStream, response.stream))


async def read_body(response: httpx.Response) -> bytes:
    return b"".join([piece async for piece in iter_chunks(response)])


async def send_request(transport: Transport, request: httpx.Request) -> bytes:
    return await read_body(await transport.handle_async_request(request))


def connections_in_use(transport: Transport) -> list[UpstreamConnection]:
    """Return the connections that serve a request now."""
    pools = transport._pools.values()
    return [link for pool in pools for link in pool._open if not link._is_idle]


def unread_bytes(connection: UpstreamConnection) -> int:
    """Return how much of a response's body has come and was not taken."""
    return len(connection._response.body)
