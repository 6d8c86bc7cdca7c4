"""What an upstream may do wrong, in httpx's words."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from weakref import ref

import httpx
import pytest

from abridge.http.transport import Transport, os_error_text
from tests.http.requests import connections_in_use, get, iter_chunks, post, read_body, send_request
from tests.support.clock import Clock
from tests.support.servers import HANG, Listener, Peer, Script, listen, soon, unused_address

SHORT = 0.05  # seconds; what waits for it waits for nothing else

Act = Callable[[Peer], Awaitable[None]]


async def stay(peer: Peer) -> None:
    await peer.left()


async def close(peer: Peer) -> None:
    await peer.close()


async def half_close(peer: Peer) -> None:
    peer.writer.write_eof()
    await peer.left()


async def reset(peer: Peer) -> None:
    peer.reset()


async def babble(peer: Peer) -> None:
    await peer.send(b"not a number\r\n")
    await peer.left()


@asynccontextmanager
async def patient(
    script: Script, headers: float = HANG, idle: float = HANG
) -> AsyncIterator[tuple[Listener, Transport]]:
    """Play a script to a transport that is patient, but for these times."""
    async with (
        listen(script) as server,
        Transport(connect=HANG, headers=headers, idle=idle) as transport,
    ):
        yield server, transport


async def answer(peer: Peer) -> None:
    await peer.request()
    await peer.answer()


def says(data: bytes, then: Act) -> Act:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(data)
        await then(peer)

    return script


async def test_nobody_listens(transport: Transport) -> None:
    with pytest.raises(httpx.ConnectError) as raised:
        await send_request(transport, get(unused_address()))
    assert os_error_text(raised.value) == os.strerror(errno.ECONNREFUSED)


async def test_no_such_host(transport: Transport) -> None:
    with pytest.raises(httpx.ConnectError) as raised:
        await send_request(transport, get("http://host.invalid"))
    assert f"[{os_error_text(raised.value)}]" in str(raised.value)


@pytest.mark.parametrize("host", ["a..b", "a" * 64, "x\\y"])
async def test_no_host_that_there_could_be(transport: Transport, host: str) -> None:
    url = httpx.URL("http://x").copy_with(netloc=host.encode())
    with pytest.raises(httpx.ConnectError):
        await send_request(transport, httpx.Request("GET", url))


async def test_connecting_takes_too_long() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        waiting = [socket.socket() for _ in range(8)]
        for client in waiting:  # until the kernel takes no more
            client.setblocking(False)
            client.connect_ex(deaf.getsockname())
        async with Transport(connect=SHORT, headers=HANG, idle=HANG) as transport:
            with pytest.raises(httpx.ConnectTimeout):
                await soon(send_request(transport, get(url)))
        for client in waiting:
            client.close()


async def test_silence_before_the_headers() -> None:
    async with patient(says(b"HTTP/1.1 200 OK\r\nx-beg", stay), headers=SHORT) as (
        server,
        transport,
    ):
        with pytest.raises(httpx.ReadTimeout):
            await soon(send_request(transport, get(server.url)))


async def test_silence_within_the_body() -> None:
    script = says(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", stay)
    async with patient(script, idle=SHORT) as (server, transport):
        body = iter_chunks(await transport.handle_async_request(get(server.url)))
        assert await soon(anext(body)) == b"half"
        with pytest.raises(httpx.ReadTimeout):
            await soon(anext(body))


async def test_silence_between_headers_and_body() -> None:
    async with patient(says(b"HTTP/1.1 200 OK\r\n\r\n", stay), idle=SHORT) as (server, transport):
        response = await transport.handle_async_request(get(server.url))
        with pytest.raises(httpx.ReadTimeout):
            await soon(read_body(response))


async def test_a_long_wait_for_the_headers_is_no_silence_within_the_body() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await asyncio.sleep(4 * SHORT)
        await peer.answer()

    async with patient(script, idle=SHORT) as (server, transport):
        assert await send_request(transport, get(server.url)) == b"ok"


async def test_an_idle_connection_does_not_time_out_for_whoever_comes_next(clock: Clock) -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.answer()

    async with patient(script, headers=2.0, idle=1.0) as (server, transport):
        await send_request(transport, get(server.url))
        await clock.advance(3.0)
        assert await send_request(transport, get(server.url)) == b"ok"
        assert server.connections == 1


async def test_an_upload_under_way_is_no_silence(clock: Clock) -> None:
    async def source() -> AsyncIterator[bytes]:
        for _ in range(4):
            await clock.advance(3.0)
            yield b"x"

    async with patient(answer, headers=5.0) as (server, transport):
        assert await send_request(transport, post(server.url, source())) == b"ok"


async def test_a_reader_s_own_slowness_is_no_silence(clock: Clock) -> None:
    body = b"x" * (4 << 20)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(body)

    async with patient(script, idle=5.0) as (server, transport):
        response = await transport.handle_async_request(get(server.url))
        await clock.advance(6.0)
        assert len(await read_body(response)) == len(body)


@pytest.mark.parametrize("begun", [b"", b"half"])
async def test_silence_that_nobody_waits_through_is_none(clock: Clock, begun: bytes) -> None:
    asked = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n" + begun)
        await asked.wait()
        await peer.send(b"whole now"[len(begun) :])
        await peer.left()

    async with patient(script, idle=5.0) as (server, transport):
        body = iter_chunks(await transport.handle_async_request(get(server.url)))
        if begun:
            assert await soon(anext(body)) == begun
        await clock.advance(6.0)
        reading = asyncio.ensure_future(read_rest(body))
        await clock.advance(4.0)
        asked.set()
        assert await soon(reading) == b"whole now"[len(begun) :]


async def read_rest(body: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in body])


async def test_chunks_of_a_stream_set_no_timer_each(clock: Clock) -> None:
    """A timer is set for the headers, an earlier one for the body, and that one again once it has
    ended too early."""
    more = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n")
        for _ in range(20):
            await more.wait()
            more.clear()
            await peer.send(b"x")
        await peer.left()

    async with patient(script, headers=9.0, idle=5.0) as (server, transport):
        response = await transport.handle_async_request(get(server.url))
        body = iter_chunks(response)
        (link,) = connections_in_use(transport)
        timers = set()
        for _ in range(20):
            reading = asyncio.ensure_future(anext(body))
            await asyncio.sleep(0)
            timers.add(link._silence._handle)
            more.set()
            assert await soon(reading) == b"x"
        assert len(timers) == 1
        reading = asyncio.ensure_future(anext(body))
        await clock.advance(4.9)
        assert not reading.done()
        await clock.advance(0.2)
        with pytest.raises(httpx.ReadTimeout):
            await soon(reading)


async def test_silence_begins_again_with_each_wait(clock: Clock) -> None:
    async with patient(says(LENGTH, stay), idle=5.0) as (server, transport):
        body = iter_chunks(await transport.handle_async_request(get(server.url)))
        assert await soon(anext(body)) == b"half"
        await clock.advance(6.0)
        waiting = asyncio.ensure_future(anext(body))
        await clock.advance(4.0)
        assert not waiting.done()
        await clock.advance(2.0)
        with pytest.raises(httpx.ReadTimeout):
            await soon(waiting)


@pytest.mark.parametrize(
    ("data", "then"),
    [
        (b"", close),
        (b"", half_close),
        (b"", reset),
        (b"HTTP/1.1 200 OK\r\nx-beg", close),
        (b"HTTP/1.1 200 OK\r\nx-beg", reset),
        (b"SSH-2.0-OpenSSH\r\n", stay),
        (b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", stay),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", stay),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", stay),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", stay),
        (b"HTTP/1.1 200 OK\r\nx: " + b"x" * (1 << 17) + b"\r\n\r\n", stay),
    ],
)
async def test_no_answer_that_could_be_understood(
    transport: Transport, data: bytes, then: Act
) -> None:
    async with listen(says(data, then)) as server:
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await soon(send_request(transport, post(server.url, b"{}")))
        assert server.connections == 1


LENGTH = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\n\r\nhalf"


@pytest.mark.parametrize(
    ("data", "then"),
    [
        (LENGTH, close),
        (LENGTH, half_close),
        (LENGTH, reset),
        (CHUNKED, close),
        (CHUNKED, half_close),
        (CHUNKED, reset),
        (CHUNKED + b"4\r\nwho", close),
        (CHUNKED, babble),
        (UNTIL_CLOSED, reset),
    ],
)
async def test_a_body_that_is_cut_is_read_up_to_the_cut(
    transport: Transport, data: bytes, then: Act
) -> None:
    taken = asyncio.Event()

    async def wait_then(peer: Peer) -> None:
        await taken.wait()
        await then(peer)

    async with listen(says(data, wait_then)) as server:
        response = await transport.handle_async_request(get(server.url))
        body = iter_chunks(response)
        assert (await soon(anext(body))).startswith(b"half")
        taken.set()
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await soon(read_body(response))


async def test_what_came_before_a_cut_is_read_even_if_the_cut_was_noticed_first(
    transport: Transport,
) -> None:
    async with listen(says(LENGTH, close)) as server:
        response = await transport.handle_async_request(get(server.url))
        await soon(server.tasks[0])
        await asyncio.sleep(SHORT)
        body = iter_chunks(response)
        assert await soon(anext(body)) == b"half"
        with pytest.raises(httpx.RemoteProtocolError):
            await soon(anext(body))


@pytest.mark.parametrize("then", [close, half_close])
async def test_a_body_without_a_length_ends_with_the_connection(
    transport: Transport, then: Act
) -> None:
    async with listen(says(UNTIL_CLOSED, then)) as server:
        assert await soon(send_request(transport, get(server.url))) == b"half"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([(b"x", b"a\r\ny: b")], b""),
        ([(b"x", b"a\nb")], b""),
        ([(b"x\r\n", b"a")], b""),
        ([(b"content-length", b"3")], b"12"),
        ([(b"content-length", b"+2")], b"12"),
        ([(b"content-length", b"2"), (b"content-length", b"2")], b"12"),
        ([(b"content-length", b"2"), (b"transfer-encoding", b"chunked")], b"12"),
        ([(b"transfer-encoding", b"gzip, chunked")], b"12"),
        ([], b"12"),
    ],
)
async def test_what_upstream_would_read_as_something_else_is_not_sent(
    transport: Transport, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    request = httpx.Request(
        "POST", unused_address(), headers=headers, stream=httpx.ByteStream(body)
    )
    with pytest.raises(httpx.LocalProtocolError):
        await send_request(transport, request)


@pytest.mark.parametrize("target", [b"/a b", b"/a HTTP/1.1\r\nx: y", b"/\n"])
async def test_a_target_that_is_more_than_one_is_not_sent(
    transport: Transport, target: bytes
) -> None:
    request = get(unused_address())
    request.extensions["target"] = target
    with pytest.raises(httpx.LocalProtocolError):
        await send_request(transport, request)


async def test_a_synchronous_stream_is_not_sent(transport: Transport) -> None:
    request = httpx.Request("POST", unused_address(), content=iter([b"x"]))
    with pytest.raises(httpx.LocalProtocolError):
        await send_request(transport, request)


@pytest.mark.parametrize(
    "script", [says(b"", close), says(LENGTH, close), says(b"", stay), says(b"", babble)]
)
async def test_what_failed_is_freed_without_the_collector(script: Script) -> None:
    """It is rarely run, and a request may be large."""
    gc.disable()
    try:
        async with patient(script, headers=SHORT) as (server, transport):
            try:
                await soon(send_request(transport, get(server.url)))
            except httpx.TransportError as error:
                failure = ref(error)
            assert failure() is None
    finally:
        gc.enable()
