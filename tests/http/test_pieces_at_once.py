"""Test that what comes of a body is taken as it comes, without waking the task that reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.http.connections import MAX_AT_ONCE, UpstreamConnection
from abridge.http.transport import HttpRequest, HttpResponse, Transport
from tests.http.requests import connections_in_use
from tests.support.servers import Peer, listen, soon, until

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

CALLER: ContextVar[str] = ContextVar("CALLER", default="nobody")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def ask(transport: Transport, url: str) -> HttpResponse:
    return await transport.send(HttpRequest("GET", url, b"/", [], b"", 0))


class Taker:
    """Takes pieces until it is full; fails at one that says so."""

    def __init__(self, *, full_after: int | None = None) -> None:
        self.taken: list[bytes] = []
        self.context = ""
        self.tasks: set[object] = set()
        self._full_after = full_after

    def take(self, data: bytes) -> bool:
        if data == b"fail":
            raise RuntimeError("the taker fails")
        if self._full_after is not None and len(self.taken) >= self._full_after:
            return False
        self.taken.append(data)
        self.context = CALLER.get()
        self.tasks.add(asyncio.current_task())
        return True


async def read(response: HttpResponse, taker: Taker) -> list[bytes]:
    """Read a body; return what was left to the reader."""
    response.write_to(taker.take)
    return [piece async for piece in response.body]


def sending(*reads: bytes, taker: Taker, last: bytes = b"0\r\n\r\n") -> Callable[[Peer], Any]:
    """Return a server that sends each read once the one before was taken."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD)
        for number, data in enumerate(reads):
            await until(lambda: len(taker.taken) >= number)  # noqa: B023 -- awaited at once
            await asyncio.sleep(0.01)
            await peer.send(data)
        await until(lambda: len(taker.taken) >= len(reads))
        await peer.send(last)

    return script


async def test_what_comes_is_taken_in_the_readers_context_but_not_in_its_task(
    transport: Transport,
) -> None:
    taker = Taker()
    reads = chunk(b"one"), chunk(b"two") + chunk(b"three"), chunk(b"four")
    async with listen(sending(*reads, taker=taker)) as server:
        response = await ask(transport, server.url)
        CALLER.set("the reader")
        left = await soon(read(response, taker))
    assert taker.taken == [b"one", b"twothree", b"four"]
    assert left == []
    assert (taker.context, taker.tasks) == ("the reader", {None})
    assert connections_in_use(transport) == []


async def test_what_is_refused_is_read(transport: Transport) -> None:
    taker = Taker(full_after=1)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + chunk(b"read, as it came with the head"))
        await asyncio.sleep(0.02)
        await peer.send(chunk(b"taken"))
        await until(lambda: taker.taken == [b"taken"])
        await peer.send(chunk(b"refused") + chunk(b""))

    async with listen(script) as server:
        left = await soon(read(await ask(transport, server.url), taker))
    assert left == [b"read, as it came with the head", b"refused"]


async def test_a_large_read_is_left_to_the_task_so_that_other_streams_get_a_turn(
    transport: Transport,
) -> None:
    taker = Taker()
    large = b"x" * 40 * MAX_AT_ONCE

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD)
        await asyncio.sleep(0.02)
        await peer.send(chunk(large))
        await peer.send(chunk(b""))

    async with listen(script) as server:
        left = await soon(read(await ask(transport, server.url), taker))
    assert max(map(len, taker.taken), default=0) <= MAX_AT_ONCE
    assert len(b"".join(left)) + len(b"".join(taker.taken)) == len(large)


async def test_what_taking_raises_is_raised_where_the_body_is_read(transport: Transport) -> None:
    taker = Taker()
    async with listen(sending(chunk(b"one"), chunk(b"fail"), taker=taker)) as server:
        response = await ask(transport, server.url)
        with pytest.raises(RuntimeError, match="the taker fails"):
            await soon(read(response, taker))
        await response.aclose()
        await until(lambda: connections_in_use(transport) == [])


@pytest.mark.parametrize("last", [b"", b"nonsense\r\n"])
async def test_a_body_that_breaks_off_is_an_error_after_all_of_it(
    transport: Transport, last: bytes
) -> None:
    taker = Taker()
    reads = chunk(b"one"), chunk(b"two")
    async with listen(sending(*reads, taker=taker, last=last)) as server:
        response = await ask(transport, server.url)
        with pytest.raises(httpx.RemoteProtocolError):
            await soon(read(response, taker))
    assert taker.taken == [b"one", b"two"]


async def test_upstreams_silence_is_an_error_then_too() -> None:
    taker = Taker()
    async with Transport(connect=5, headers=5, idle=0.1) as transport:
        ended = asyncio.Event()

        async def script(peer: Peer) -> None:
            await peer.request()
            await peer.send(HEAD)
            for number in range(4):
                await asyncio.sleep(0.05)
                await peer.send(chunk(b"%d" % number))
            await ended.wait()

        async with listen(script) as server:
            response = await ask(transport, server.url)
            with pytest.raises(httpx.ReadTimeout):
                await soon(read(response, taker))
            ended.set()
    assert taker.taken == [b"0", b"1", b"2", b"3"]


async def test_a_reader_that_is_cancelled_takes_nothing_more(transport: Transport) -> None:
    taker = Taker()
    more = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD)
        await asyncio.sleep(0.02)
        await peer.send(chunk(b"one"))
        await more.wait()

    async with listen(script) as server:
        response = await ask(transport, server.url)
        reading = asyncio.create_task(read(response, taker))
        await until(lambda: taker.taken == [b"one"])
        [connection] = connections_in_use(transport)
        reading.cancel()
        connection.data_received(chunk(b"two"))
        await asyncio.wait([reading])
        connection.data_received(chunk(b"three"))
        assert reading.cancelled()
        await response.aclose()
        more.set()
    assert taker.taken == [b"one"]


class Link(asyncio.Transport):
    """A transport that sends nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.paused = False

    def write(self, data: Any) -> None: ...

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


async def receive(reads: list[tuple[bytes, bool]], refused: list[bool]) -> list[bytes]:
    """Have a connection receive these reads, and the loop run after those that say so; refuse
    pieces in this order. Return all pieces in the order in which they were taken or read."""
    connection, pieces = UpstreamConnection(id, id), list[bytes]()
    connection.connection_made(Link())
    connection.send_request(b"", idle_timeout=60, is_head=False)
    connection.data_received(HEAD)
    await connection.read_head()

    def take(data: bytes) -> bool:
        if refused and refused.pop():
            return False
        pieces.append(data)
        return True

    async def read_all() -> None:
        while piece := await connection.read_body(take):
            pieces.append(piece)

    reading = asyncio.create_task(read_all())
    for data, pauses in reads:
        connection.data_received(data)
        if pauses:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    await asyncio.wait_for(reading, 5)
    return pieces


TEXTS = st.lists(st.binary(min_size=1, max_size=20) | st.just(b"x" * (MAX_AT_ONCE + 1)))


@given(TEXTS, st.data(), st.lists(st.booleans()))
def test_any_reads_and_any_refusals_give_the_body_in_its_order(
    texts: list[bytes], data: st.DataObject, refused: list[bool]
) -> None:
    sent = b"".join(map(chunk, texts)) + chunk(b"")
    cuts = data.draw(st.lists(st.integers(0, len(sent)), max_size=8).map(sorted))
    ends = [*cuts, len(sent)]
    reads = [
        (sent[start:end], data.draw(st.booleans()))
        for start, end in zip([0, *cuts], ends, strict=True)
    ]
    received = asyncio.run(receive([read for read in reads if read[0]], refused))
    assert b"".join(received) == b"".join(texts)


def test_many_small_chunks_in_one_read_are_taken_together() -> None:
    small = [b"%d" % (number % 10) for number in range(MAX_AT_ONCE // 6)]
    sent = b"".join(map(chunk, small))
    received = asyncio.run(receive([(b"", True), (sent, True), (chunk(b"") * 1, True)], []))
    assert received == [b"".join(small)]
