"""Test when a connection is reused and when a request is retried."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from abridge.http.transport import STALE_SECONDS, Transport
from tests.http.requests import connections_in_use, get, post, send_request
from tests.http.test_transport_defaults import PEM, certificate
from tests.support.clock import Clock
from tests.support.servers import HANG, Peer, listen, soon, until


async def serve(peer: Peer) -> None:
    while True:
        request = await peer.request()
        await peer.answer(request.body)


async def serve_once(peer: Peer) -> None:
    """Answer one request, then close upon the next."""
    await peer.request()
    await peer.answer(b"first")
    await peer.request()


async def serve_once_then_reset(peer: Peer) -> None:
    await serve_once(peer)
    await reset(peer)


async def reset(peer: Peer) -> None:
    peer.reset()


async def test_a_request_on_a_stale_connection_is_sent_once_more(transport: Transport) -> None:
    async with listen(serve_once, serve) as server:
        await send_request(transport, post(server.url, b"a"))
        assert await send_request(transport, post(server.url, b"b")) == b"b"
        assert server.connections == 2


async def test_a_reset_counts_as_a_close(transport: Transport) -> None:
    async with listen(serve_once_then_reset, serve) as server:
        await send_request(transport, post(server.url, b"a"))
        assert await send_request(transport, post(server.url, b"b")) == b"b"
        assert server.connections == 2


@pytest.mark.usefixtures("for_long")
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("dead", [2, 20])
async def test_the_second_try_takes_no_idle_connection(dead: int, *, tls: bool) -> None:
    all_busy = asyncio.Barrier(dead)

    async def serve_once_at_once(peer: Peer) -> None:
        await peer.request()
        await all_busy.wait()
        await peer.answer(b"first")
        await peer.request()

    trusting = ssl.create_default_context(cafile=PEM) if tls else None
    options = {"ssl": certificate()} if tls else {}
    async with (
        Transport(connect=HANG, headers=HANG, idle=HANG, tls=trusting) as transport,
        listen(*[serve_once_at_once] * dead, serve, **options) as server,
    ):
        await asyncio.gather(*[send_request(transport, get(server.url)) for _ in range(dead)])
        assert await send_request(transport, post(server.url, b"b")) == b"b"
        assert server.connections == dead + 1


async def test_a_request_is_retried_only_once(transport: Transport) -> None:
    async def hang_up(peer: Peer) -> None:
        await peer.request()

    async with listen(serve_once, hang_up) as server:
        await send_request(transport, post(server.url, b"a"))
        with pytest.raises(httpx.RemoteProtocolError):
            await send_request(transport, post(server.url, b"b"))
        assert server.connections == 2


@pytest.mark.parametrize("end", [Peer.close, reset])
async def test_no_retry_once_a_byte_has_come(
    transport: Transport, end: Callable[[Peer], Awaitable[None]]
) -> None:
    async def begin(peer: Peer) -> None:
        await serve_once(peer)
        await peer.send(b"H")
        await until(lambda: any(link.has_received for link in connections_in_use(transport)))
        await end(peer)

    async with listen(begin, serve) as server:
        await send_request(transport, post(server.url, b"a"))
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await soon(send_request(transport, post(server.url, b"b")))
        assert server.connections == 1


async def test_no_retry_if_the_body_is_a_stream(transport: Transport) -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b"b"

    async with listen(serve_once, serve) as server:
        await send_request(transport, post(server.url, b"a"))
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await send_request(transport, post(server.url, source()))
        assert server.connections == 1


@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
async def test_no_retry_on_a_new_connection(transport: Transport, method: str) -> None:
    async def hang_up(peer: Peer) -> None:
        await peer.request()

    async with listen(hang_up, serve) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            await send_request(transport, httpx.Request(method, server.url, content=b"a"))
        assert server.connections == 1


async def test_no_retry_if_the_transport_is_closed(transport: Transport) -> None:
    async def work(peer: Peer) -> None:
        await peer.request()
        await peer.answer()
        await peer.left()

    async with listen(work, serve) as server:
        await send_request(transport, post(server.url, b"a"))
        call = asyncio.create_task(send_request(transport, post(server.url, b"b")))
        await until(lambda: connections_in_use(transport) != [])
        await transport.aclose()
        with pytest.raises(httpx.ReadError):
            await soon(call)
        assert server.connections == 1


async def test_no_retry_if_upstream_was_silent(clock: Clock) -> None:
    async def fall_silent(peer: Peer) -> None:
        await serve_once(peer)
        await clock.advance(6.0)
        await peer.left()

    async with (
        Transport(connect=20, headers=5, idle=20) as transport,
        listen(fall_silent, serve) as server,
    ):
        await send_request(transport, post(server.url, b"a"))
        with pytest.raises(httpx.ReadTimeout):
            await send_request(transport, post(server.url, b"b"))
        assert server.connections == 1


async def test_no_retry_if_upstream_had_time_to_work(transport: Transport, clock: Clock) -> None:
    async def fail_late(peer: Peer) -> None:
        await serve_once(peer)
        await clock.advance(STALE_SECONDS)

    async with listen(fail_late, serve) as server:
        await send_request(transport, post(server.url, b"a"))
        with pytest.raises(httpx.RemoteProtocolError):
            await send_request(transport, post(server.url, b"b"))
        assert server.connections == 1


async def test_a_connection_serves_one_request_after_another(transport: Transport) -> None:
    async with listen(serve) as server:
        for number in range(5):
            body = b"%d" % number
            assert await send_request(transport, post(server.url, body)) == body
        assert server.connections == 1


async def test_what_upstream_takes_no_more_of_prevents_reuse(transport: Transport) -> None:
    answered = asyncio.Event()

    async def refuse(peer: Peer) -> None:
        await peer.head()
        await peer.answer(b"too long", status=b"413 Content Too Large")
        await answered.wait()

    async with listen(refuse, serve) as server:
        request = post(server.url, b"x" * (16 << 20))
        assert await soon(send_request(transport, request)) == b"too long"
        assert await soon(send_request(transport, post(server.url, b"a"))) == b"a"
        answered.set()


async def test_connection_close_prevents_reuse(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b"ok", b"Connection: close")
        await peer.left()

    async with listen(script) as server:
        await send_request(transport, get(server.url))
        await send_request(transport, get(server.url))
        assert server.connections == 2


@pytest.mark.usefixtures("for_long")
async def test_unsolicited_data_answers_no_request(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b"mine")
        await idle.wait()
        await peer.answer(b"unasked", status=b"408 Request Timeout")
        await peer.left()
        gone.set()

    idle, gone = asyncio.Event(), asyncio.Event()
    async with listen(script, serve) as server:
        assert await send_request(transport, get(server.url)) == b"mine"
        idle.set()
        await soon(gone.wait())
        assert await send_request(transport, post(server.url, b"asked")) == b"asked"


async def test_a_second_response_to_one_request_is_dropped(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        answer = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n"
        await peer.send(answer + b"a" + answer + b"b")
        await peer.left()

    async with listen(script, serve) as server:
        assert await send_request(transport, get(server.url)) == b"a"
        assert await send_request(transport, post(server.url, b"c")) == b"c"
        assert server.connections == 2
