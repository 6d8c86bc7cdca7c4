"""Test the proxy's lifespan, its open connections and its backpressure."""

from __future__ import annotations

import asyncio

import pytest

from abridge.sidecar.proxy.proxy import Proxy
from tests.sidecar.proxy.upstreams import serve_proxy, settings
from tests.support.servers import Peer, connect, listen, serve, soon, stalled, until

GET = b"GET /v1/x HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture(autouse=True)
def for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("abridge.http.pool.KEEP_ALIVE", 1000.0)


@pytest.mark.parametrize("lifespan", ["on", "off"])
async def test_what_it_opened_is_closed_by_its_lifespan_or_by_hand(lifespan: str) -> None:
    closed = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer()
        await peer.left()
        closed.set()

    async with listen(script) as upstream:
        proxy = Proxy(settings(upstream.url))
        async with serve(proxy, lifespan=lifespan) as url:
            async with connect(url) as client:
                await client.send(GET)
                assert (await soon(client.response())).body == b"ok"
            assert not closed.is_set()
        if lifespan == "off":
            assert not closed.is_set()
            await proxy.aclose()
        await soon(closed.wait())


async def test_a_slow_client_slows_its_own_upstream_and_nobody_else() -> None:
    block, blocks = b"x" * (1 << 20), 256
    sent = 0

    async def flood(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(block) * blocks))
        for _ in range(blocks):
            await peer.send(block)
            sent += 1
        await peer.left()

    async def answer(peer: Peer) -> None:
        await peer.request()
        await peer.answer()

    async with (
        serve_proxy(flood, answer) as chain,
        connect(chain.url) as slow,
        connect(chain.url) as quick,
    ):
        slow.writer.transport.pause_reading()
        await slow.send(GET)
        await until(lambda: sent > 0)
        assert await stalled(lambda: sent) < blocks // 2
        await quick.send(GET)
        assert (await soon(quick.response())).body == b"ok"
        slow.writer.transport.resume_reading()
        assert len((await soon(slow.response())).body) == len(block) * blocks
