"""A limit is judged only once the loop has looked at its sockets again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from abridge.http.transport import Transport, _ResponseBody
from abridge.waiting import LAST_LOOK, SilenceTimer, silence_timeout
from tests.http.requests import get, iter_chunks
from tests.support.servers import HANG, Peer, listen, soon

SHORT = 0.05


async def test_a_limit_ends_what_takes_too_long() -> None:
    with pytest.raises(TimeoutError):
        async with silence_timeout(SHORT):
            await asyncio.sleep(HANG)


async def test_a_limit_that_is_kept_ends_nothing() -> None:
    async with silence_timeout(SHORT):
        pass
    await asyncio.sleep(2 * SHORT + LAST_LOOK)
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


def test_a_timer_can_be_cancelled_between_its_end_and_its_judgement() -> None:
    async def cancel_late() -> list[str]:
        expired: list[str] = []
        timer = SilenceTimer(lambda: expired.append("expired"))
        timer.start(0)
        await asyncio.sleep(LAST_LOOK / 2)
        timer.cancel()
        await asyncio.sleep(3 * LAST_LOOK)
        return expired

    assert asyncio.run(cancel_late()) == []


@asynccontextmanager
async def half_answered() -> AsyncIterator[tuple[Peer, AsyncIterator[bytes], Callable[[], None]]]:
    """Yield a response that is awaited: its peer, the rest of its body, and a call that has the
    time-out fire before the loop reads anything, as after a pause of the process."""
    peers: list[Peer] = []

    async def script(peer: Peer) -> None:
        peers.append(peer)
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf")
        await peer.left()

    async with (
        listen(script) as server,
        Transport(connect=HANG, headers=HANG, idle=HANG) as transport,
    ):
        response = await soon(transport.handle_async_request(get(server.url)))
        assert isinstance(response.stream, _ResponseBody)
        connection, body = response.stream._connection, iter_chunks(response)
        assert connection is not None

        def expire() -> None:
            connection._silence._deadline = 0.0
            connection._silence._on_end()

        assert await soon(anext(body)) == b"half"
        yield peers[0], body, expire
        await response.aclose()


async def test_what_has_come_is_read_though_its_time_is_over() -> None:
    async with half_answered() as (peer, body, expire):
        for data in (b"ab", b"cd"):
            rest = asyncio.create_task(anext(body))
            await asyncio.sleep(0)  # it waits
            peer.writer.write(data)
            expire()
            assert await soon(rest) == data


async def test_silence_is_still_a_failure() -> None:
    async with half_answered() as (_, body, expire):
        rest = asyncio.create_task(anext(body))
        await asyncio.sleep(0)
        expire()
        with pytest.raises(httpx.ReadTimeout):
            await soon(rest)
