"""Test streaming bodies in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from abridge.http.connections import READ_BUFFER
from abridge.http.transport import Transport
from tests.http.requests import (
    connections_in_use,
    get,
    iter_chunks,
    post,
    read_body,
    send_request,
    unread_bytes,
)
from tests.support.servers import Peer, listen, soon, stalled, until

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def test_each_event_is_seen_when_it_is_sent(transport: Transport) -> None:
    seen = asyncio.Semaphore(0)
    events = [b"data: %d\n\n" % number for number in range(10)]

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED)
        for event in events:
            await seen.acquire()
            await peer.send(chunk(event))
        await seen.acquire()
        await peer.send(chunk(b""))

    async with listen(script) as server:
        body = iter_chunks(await transport.handle_async_request(get(server.url)))
        for event in events:
            seen.release()
            assert await soon(anext(body)) == event
        seen.release()
        assert await soon(anext(body, b"the end")) == b"the end"


async def test_chunks_of_one_byte_are_read_many_at_once(transport: Transport) -> None:
    count = 5000  # more than one read holds

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED + chunk(b"x") * count + chunk(b""))

    async with listen(script) as server:
        response = await transport.handle_async_request(get(server.url))
        pieces = [piece async for piece in iter_chunks(response)]
    assert b"".join(pieces) == b"x" * count
    assert len(pieces) < count / 100


@pytest.mark.parametrize("length", [None, 15])
async def test_a_request_body_goes_out_as_it_comes(
    transport: Transport, length: int | None
) -> None:
    seen = asyncio.Semaphore(0)
    parts = [b"one--", b"two--", b"three"]

    async def source() -> AsyncIterator[bytes]:
        for part in parts:
            yield part
            await seen.acquire()

    async def script(peer: Peer) -> None:
        await peer.head()
        for part in parts:
            received = peer.reader.readexactly(5) if length else peer.chunk()
            assert await received == part
            seen.release()
        if not length:
            assert await peer.chunk() == b""
        await peer.answer()

    async with listen(script) as server:
        assert await soon(send_request(transport, post(server.url, source(), length))) == b"ok"


@pytest.mark.usefixtures("for_long")
async def test_an_answer_may_come_before_the_request_has_ended(transport: Transport) -> None:
    never = asyncio.Event()
    noticed = asyncio.Event()

    async def source() -> AsyncIterator[bytes]:
        yield b"begun"
        await never.wait()

    async def script(peer: Peer) -> None:
        await peer.head()
        assert await peer.chunk() == b"begun"
        await peer.answer(b"enough")
        await peer.left()
        noticed.set()

    async with listen(script) as server:
        assert await soon(send_request(transport, post(server.url, source()))) == b"enough"
        await soon(noticed.wait())


async def test_an_exception_in_the_body_source_ends_the_request(transport: Transport) -> None:
    noticed = asyncio.Event()

    async def source() -> AsyncIterator[bytes]:
        yield b"begun"
        raise KeyError("mine")

    async def script(peer: Peer) -> None:
        await peer.head()
        await peer.left()
        noticed.set()

    async with listen(script) as server:
        with pytest.raises(KeyError, match="mine"):
            await soon(send_request(transport, post(server.url, source())))
        await soon(noticed.wait())


@pytest.mark.parametrize("begun", [CHUNKED + chunk(b"half"), b"HTTP/1.1 200 OK\r\n\r\nhalf"])
async def test_an_exception_in_the_body_source_ends_an_early_response(
    transport: Transport, begun: bytes
) -> None:
    answered = asyncio.Event()

    async def source() -> AsyncIterator[bytes]:
        yield b"begun"
        await answered.wait()
        raise KeyError("mine")

    async def script(peer: Peer) -> None:
        await peer.head()
        await peer.send(begun)
        await peer.left()

    async with listen(script) as server:
        body = iter_chunks(await transport.handle_async_request(post(server.url, source())))
        assert await soon(anext(body)) == b"half"
        answered.set()
        with pytest.raises(httpx.TransportError):
            await soon(anext(body))


@pytest.mark.parametrize("declared", [4, 6])
async def test_a_body_of_another_length_than_declared_is_not_finished(
    transport: Transport, declared: int
) -> None:
    received = bytearray()

    async def source() -> AsyncIterator[bytes]:
        yield b"12"
        yield b"345"

    async def script(peer: Peer) -> None:
        await peer.head()
        received.extend(await peer.reader.read())

    async with listen(script) as server:
        with pytest.raises(httpx.LocalProtocolError, match="than its Content-Length"):
            await soon(send_request(transport, post(server.url, source(), declared)))
    assert len(received) < declared


async def test_upstream_is_not_read_faster_than_its_reader_reads(transport: Transport) -> None:
    block, blocks = b"x" * (1 << 20), 128
    sent = 0

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(block) * blocks))
        for _ in range(blocks):
            await peer.send(block)
            sent += 1
        await peer.left()

    async with listen(script) as server:
        response = await transport.handle_async_request(get(server.url))
        assert await stalled(lambda: sent) < blocks // 2
        assert len(await soon(read_body(response))) == len(block) * blocks


async def test_what_was_received_is_read_after_a_cut_while_reading_was_paused(
    transport: Transport,
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED + chunk(b"x" * 4 * READ_BUFFER))
        await peer.left()

    async with listen(script) as server:
        response = await transport.handle_async_request(get(server.url))
        (link,) = connections_in_use(transport)
        await until(lambda: unread_bytes(link) > READ_BUFFER)
        link.transport.abort()
        await soon(link.closed.wait())
        body = iter_chunks(response)
        assert len(await anext(body)) > READ_BUFFER
        with pytest.raises(httpx.RemoteProtocolError):
            await anext(body)


async def test_closing_unread_is_noticed_upstream(transport: Transport) -> None:
    noticed = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED + chunk(b"first"))
        await peer.left()
        noticed.set()

    async with listen(script) as server:
        response = await transport.handle_async_request(get(server.url))
        body = iter_chunks(response)
        assert await anext(body) == b"first"
        await response.aclose()
        with pytest.raises(httpx.ReadError):
            await anext(body)
        await soon(noticed.wait())


@pytest.mark.parametrize("framing", [b"content-length: 9\r\n\r\n", b"\r\n"])
async def test_what_the_transport_cuts_while_nobody_reads_is_not_whole(
    transport: Transport, framing: bytes
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n" + framing + b"half")
        await peer.left()

    async with listen(script) as server:
        body = iter_chunks(await transport.handle_async_request(get(server.url)))
        assert await soon(anext(body)) == b"half"
        await transport.aclose()
        with pytest.raises(httpx.ReadError):
            await soon(anext(body))


async def test_closing_ends_a_read_that_waits(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED + chunk(b"first"))
        await peer.left()

    async with listen(script) as server:
        response = await transport.handle_async_request(get(server.url))
        body = iter_chunks(response)
        assert await anext(body) == b"first"
        waiting = asyncio.ensure_future(anext(body))
        await asyncio.sleep(0)
        await response.aclose()
        with pytest.raises(httpx.ReadError):
            await soon(waiting)


async def test_closing_does_not_wait_for_upstream_to_take_the_rest(transport: Transport) -> None:
    async def source() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * (1 << 20)

    async def script(peer: Peer) -> None:
        await peer.head()
        peer.writer.transport.pause_reading()
        await peer.send(CHUNKED)
        await asyncio.Event().wait()

    async with listen(script) as server:
        response = await transport.handle_async_request(post(server.url, source()))
        (link,) = connections_in_use(transport)
        await until(lambda: link._writable is not None)
        await response.aclose()
        await soon(link.closed.wait())
        assert connections_in_use(transport) == []


async def test_cancelling_before_the_headers_is_noticed_upstream(transport: Transport) -> None:
    arrived, noticed = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        arrived.set()
        await peer.left()
        noticed.set()

    async with listen(script) as server:
        call = asyncio.create_task(send_request(transport, post(server.url, b"{}")))
        await soon(arrived.wait())
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await soon(noticed.wait())


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n"),
        ("GET", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
    ],
)
async def test_an_answer_without_a_body_leaves_the_connection_for_the_next(
    transport: Transport, method: str, answer: bytes
) -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(answer)

    async with listen(script) as server:
        for _ in range(2):
            request = httpx.Request(method, server.url, stream=httpx.ByteStream(b""))
            response = await transport.handle_async_request(request)
            assert response.headers.get("content-length") in (None, "0", "5")
            assert await read_body(response) == b""
        assert server.connections == 1


async def test_interim_responses_are_skipped(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
        await peer.answer(b"final")

    async with listen(script) as server:
        assert await send_request(transport, get(server.url)) == b"final"


async def test_it_works_in_an_ordinary_httpx_client(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            await peer.answer(request.body[::-1])

    async with listen(script) as server, httpx.AsyncClient(transport=transport) as client:
        assert (await client.post(server.url, content=b"abc")).text == "cba"
        async with client.stream("POST", server.url, content=b"def") as response:
            assert [piece async for piece in response.aiter_raw()] == [b"fed"]


async def test_each_loop_has_connections_of_its_own(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.answer()

    def elsewhere(url: str, *, close: bool) -> bytes:
        async def once() -> bytes:
            answer = await send_request(transport, get(url))
            if close:
                await transport.aclose()
            return answer

        return asyncio.run(once())

    async with listen(script) as server:
        assert await send_request(transport, get(server.url)) == b"ok"
        assert await asyncio.to_thread(elsewhere, server.url, close=True) == b"ok"
        assert await asyncio.to_thread(elsewhere, server.url, close=True) == b"ok"
        assert await send_request(transport, get(server.url)) == b"ok"
        assert server.connections == 3


async def test_it_works_again_after_closing(transport: Transport) -> None:
    noticed = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer()
        await peer.left()
        noticed.set()

    async with listen(script) as server:
        await send_request(transport, get(server.url))
        await transport.aclose()
        await soon(noticed.wait())
        assert await send_request(transport, get(server.url)) == b"ok"
