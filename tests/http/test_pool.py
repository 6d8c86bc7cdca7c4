"""Test which connections are kept, and which addresses new ones go to."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest
from aiohappyeyeballs import start_connection

from abridge.http.pool import KEEP_ALIVE, LOOKUP_LIFETIME, ConnectionPool
from abridge.http.transport import Transport
from tests.http.requests import connections_in_use, get, send_request
from tests.http.test_transport_defaults import PEM, certificate
from tests.support.clock import Clock
from tests.support.servers import HANG, Listener, Peer, Script, listen, soon, until


async def serve(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.answer()


@pytest.fixture
async def pool(clock: Clock) -> AsyncIterator[ConnectionPool]:
    pool = ConnectionPool(None, HANG)
    yield pool
    await pool.close()


async def test_an_idle_connection_is_closed_without_a_further_request(
    transport: Transport, clock: Clock
) -> None:
    gone = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer()
        await peer.left()
        gone.set()

    async with listen(script) as server:
        await send_request(transport, get(server.url))
        await clock.advance(KEEP_ALIVE + 0.1)
        await soon(gone.wait())
        (pool,) = transport._pools.values()
        await until(lambda: not pool._open)
        assert pool._idle == {}


async def test_what_upstream_closes_is_forgotten(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer()

    async with listen(script) as server:
        await send_request(transport, get(server.url))
        (pool,) = transport._pools.values()
        await until(lambda: not pool._open)
        assert connections_in_use(transport) == []


class Names:
    """Answers lookups; fails those of no address."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
        self.addresses, self.asked = addresses, 0
        self.options = dict[str, Any]()
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", self)

    async def __call__(self, host: str, port: int, **options: Any) -> list[Any]:
        self.asked += 1
        self.options = options
        await asyncio.sleep(0)
        if not self.addresses:
            raise socket.gaierror(socket.EAI_AGAIN, "later")
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in self.addresses
        ]


async def first_addresses(pool: ConnectionPool, count: int) -> list[str]:
    found = await asyncio.gather(*(pool._look_up(("model", 80)) for _ in range(count)))
    return [infos[0][4][0] for infos in found]


async def test_a_host_s_addresses_take_turns_and_are_looked_up_once(
    pool: ConnectionPool, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(monkeypatch, "10.0.0.1", "10.0.0.2", "10.0.0.3")
    assert await first_addresses(pool, 4) == ["10.0.0.2", "10.0.0.3", "10.0.0.1", "10.0.0.2"]
    assert names.asked == 1
    await clock.advance(LOOKUP_LIFETIME + 1)
    await first_addresses(pool, 1)
    assert names.asked == 2


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_an_ip_address_is_not_looked_up(
    pool: ConnectionPool, clock: Clock, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    names = Names(monkeypatch, "10.0.0.1")
    (info,) = await pool._look_up((host, 80))
    assert info[4][:2] == (host, 80)
    assert names.asked == 0


async def test_loopback_is_looked_up_where_no_other_address_is_of_its_family(
    pool: ConnectionPool, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(monkeypatch, "127.0.0.1")
    await first_addresses(pool, 1)
    assert not names.options.get("flags", 0) & socket.AI_ADDRCONFIG


async def test_a_lookup_that_failed_is_tried_again(
    pool: ConnectionPool, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(monkeypatch)
    with pytest.raises(httpx.ConnectError, match="later"):
        await pool.acquire("http://model", None, fresh=False)
    names.addresses = ("10.0.0.1",)
    assert await first_addresses(pool, 1) == ["10.0.0.1"]


async def test_a_request_that_gives_up_does_not_end_the_lookup_of_another(
    pool: ConnectionPool, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    Names(monkeypatch, "10.0.0.1")
    first, second = (asyncio.create_task(pool._look_up(("model", 80))) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second)[0][4] == ("10.0.0.1", 80)


@pytest.mark.parametrize("host", ["localhost", "localhost."])
async def test_a_dot_after_a_name_is_none_of_its_certificate(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    pool = ConnectionPool(ssl.create_default_context(cafile=PEM), HANG)
    async with listen(serve, ssl=certificate()) as server:
        Names(monkeypatch, "127.0.0.1")
        link = await pool.acquire(server.url.replace("127.0.0.1", host), None, fresh=False)
        assert link.transport.get_extra_info("peercert")
        await pool.close()


def have_addresses(
    monkeypatch: pytest.MonkeyPatch, pool: ConnectionPool, *servers: Listener
) -> None:
    """Have every name resolve to these servers, whose ports differ."""
    ports = [int(server.url.rpartition(":")[2]) for server in servers]
    infos = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in ports]
    monkeypatch.setattr(pool, "_ask", AsyncMock(side_effect=lambda _: deque(infos)))


async def reset(peer: Peer) -> None:
    peer.reset()


async def answer_plainly(peer: Peer) -> None:
    await peer.answer()
    await peer.left()


@pytest.mark.parametrize("fail", [reset, Peer.close, answer_plainly])
async def test_another_address_is_tried_where_tls_fails(
    monkeypatch: pytest.MonkeyPatch, fail: Script
) -> None:
    pool = ConnectionPool(ssl.create_default_context(cafile=PEM), HANG)
    async with listen(fail) as broken, listen(serve, ssl=certificate()) as server:
        have_addresses(monkeypatch, pool, server, broken)  # the second is tried first
        await soon(pool.acquire("https://localhost", None, fresh=False))
        await until(lambda: (broken.connections, server.connections) == (1, 1))
        have_addresses(monkeypatch, pool, broken, broken)
        with pytest.raises(httpx.ConnectError, match=r"\[.+\]"):
            await soon(pool.acquire("https://another", None, fresh=False))
        await until(lambda: broken.connections == 3)
        await pool.close()


async def test_what_connects_while_the_pool_is_closed_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = ConnectionPool(None, HANG)
    async with listen(serve) as server:
        Names(monkeypatch, "127.0.0.1")
        connecting = asyncio.create_task(pool.acquire(server.url, None, fresh=False))
        await asyncio.sleep(0)
        await pool.close()
        with pytest.raises(httpx.ConnectError, match="closed"):
            await soon(connecting)
        await until(lambda: not pool._open)


async def test_a_socket_that_is_reset_before_tls_is_closed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One closed below Python's socket is closed again with that, whosever it is by then."""
    made = list[socket.socket]()

    async def connect_and_be_reset(*given: Any, **options: Any) -> socket.socket:
        made.append(await start_connection(*given, **options))
        await soon(reset.wait())
        await asyncio.sleep(0.02)
        return made[0]

    async def script(peer: Peer) -> None:
        peer.reset()
        reset.set()

    reset = asyncio.Event()
    monkeypatch.setattr("abridge.http.pool.start_connection", connect_and_be_reset)
    pool = ConnectionPool(ssl.create_default_context(cafile=PEM), HANG)
    async with listen(script) as server:
        with pytest.raises(httpx.ConnectError):
            await pool.acquire(server.url.replace("http:", "https:"), None, fresh=False)
        await asyncio.sleep(0)
        assert made[0].fileno() == -1
        await pool.close()
