"""A server that is out of reach or misbehaves is a miss, and costs hardly any time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from abridge.memory.stores import redis_client
from abridge.memory.stores.redis import RedisBackend
from abridge.memory.stores.redis_client import RedisConnection
from abridge.memory.stores.store import LOG_INTERVAL, Store, StoreQuery
from tests.memory.stores.cases import Observed, Time, redis_store
from tests.support.redis_server import Server, forward, relay
from tests.support.servers import (
    HANG,
    Listener,
    Peer,
    Script,
    listen,
    no_leaks,
    soon,
    until,
    unused_address,
)

__all__ = ["no_leaks"]


def address(server: Listener, credential: str = "") -> str:
    return server.url.replace("http://", f"redis://{credential}")


def opened() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


async def idle(store: Store) -> None:
    """Wait until no operation runs in the background."""
    backend = store._backend
    assert isinstance(backend, RedisBackend)
    await until(lambda: not any(end._tasks for end in backend._connection._loop_clients.values()))


class Patience:
    """A context in which operations are waited for as long as they take."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch

    def __enter__(self) -> None:
        self._before = redis_client.MAX_WAIT
        self._patch.setattr(redis_client, "MAX_WAIT", HANG)

    def __exit__(self, *_: object) -> None:
        self._patch.setattr(redis_client, "MAX_WAIT", self._before)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Patience:
    return Patience(monkeypatch)


@asynccontextmanager
async def store_at(url: str, clock: Time | None = None) -> AsyncIterator[tuple[Store, Observed]]:
    observed = Observed()
    store = redis_store(RedisConnection(url, clock or Time()), observe=observed)
    try:
        yield store, observed
    finally:
        await store.aclose()


async def misses(store: Store) -> bool:
    """Return whether each operation ends and finds nothing."""
    await soon(store.remember(b"place", b"prefix", b"value"))
    await soon(store.add_marks([b"mark"]))
    await soon(store.put({b"key": b"value"}))
    await soon(store.delete([b"key"]))
    found: list[object] = [
        *await soon(
            store.recall([StoreQuery(b"place", b"prefix", True), StoreQuery(b"x", b"y", False)])
        ),
        *await soon(store.get([b"key", b"other"])),
        *await soon(store.has_marks([b"mark", b"other", b"third"])),
    ]
    return found == [None, None, None, None, False, False, False]


async def silent(peer: Peer) -> None:
    """Accept, and never answer."""
    await peer.left()


def replies(reply: bytes) -> Script:
    async def script(peer: Peer) -> None:
        while await peer.reader.read(1 << 16):
            await peer.send(reply)

    return script


async def test_a_refused_connection_is_a_miss() -> None:
    async with store_at(unused_address().replace("http", "redis")) as (store, observed):
        assert await misses(store)
    assert {result for _, result in observed.operations} == {"error"}
    assert len(observed.operations) == 7


async def test_an_unknown_host_is_a_miss() -> None:
    async with store_at("redis://nobody.invalid:6379") as (store, _):
        assert await misses(store)


async def test_a_silent_server_is_not_used_for_a_while() -> None:
    clock = Time()
    async with listen(silent) as server, store_at(address(server), clock) as (store, observed):
        assert await soon(store.get([b"key"])) == [None]
        await until(lambda: server.connections == 1)
        assert await misses(store)
        assert server.connections == 1
        assert {result for _, result in observed.operations} == {"error"}
        clock.advance(redis_client.COOLDOWN)
        await asyncio.gather(*(store.get([b"key"]) for _ in range(10)))
        await until(lambda: server.connections == 2)  # one of them has tried
        await asyncio.gather(*(store.get([b"key"]) for _ in range(10)))
        assert server.connections == 2


async def test_a_slow_operation_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_client, "OPERATION_TIMEOUT", 0.1)
    left = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.left()
        left.set()

    async with listen(script) as server, store_at(address(server)) as (store, _):
        assert await soon(store.get([b"key"])) == [None]
        assert await soon(left.wait())


INVALID_REPLIES = [
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"+OK\r\n",
    b":1\r\n",
    b"$-1\r\n",
    b"*-1\r\n",
    b"*0\r\n",
    b"$5\r\nshort\r\n",
    b"$5\r\nlonger\r\n",
    b"$many\r\n",
    b"$-7\r\n",
    b"$1000000000000\r\n",
    b"*1\r\n",
    b"*1\r\n$1\r\nx\r\n",
    b"*2\r\n:1\r\n:2\r\n",
    b"*2\r\n+1\r\n+2\r\n",
    b"*3\r\n$-1\r\n$-1\r\n",
    b"*1000000000\r\n",
    b"%1\r\n+a\r\n:1\r\n",
    b">2\r\n+push\r\n+x\r\n",
    b"\x00\xff\xfe",
    b"\r\n",
    b"-\r\n",
    b"-ERR unknown command\r\n",
    b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
    b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    b"-NOAUTH Authentication required.\r\n",
    b"-WRONGPASS invalid username-password pair or user is disabled.\r\n",
    b"-LOADING Redis is loading the dataset in memory\r\n",
    b"-READONLY You can't write against a read only replica.\r\n",
    b"-MOVED 3999 127.0.0.1:6381\r\n",
    b"-ERR max number of clients reached\r\n",
]


@pytest.mark.parametrize("reply", INVALID_REPLIES, ids=repr)
@pytest.mark.parametrize("credential", ["", ":hunter2@"])
async def test_an_invalid_reply_is_a_miss(reply: bytes, credential: str) -> None:
    clock = Time()
    async with (
        listen(replies(1000 * reply)) as server,
        store_at(address(server, credential), clock) as (store, observed),
    ):
        for _ in range(2):
            assert await misses(store)
            clock.advance(redis_client.COOLDOWN)
        reads = {
            result for name, result in observed.operations if name in ("recall", "get", "known")
        }
        assert reads <= {"error", "miss"}


async def test_a_closed_connection_is_a_miss() -> None:
    async with listen(Peer.close) as server, store_at(address(server)) as (store, _):
        assert await misses(store)
        assert server.connections == 1


async def test_an_outage_is_logged_when_it_begins_and_when_it_ends(
    redis_server: Server, patience: Patience, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, redis_client.__name__)
    clock, gate = Time(), asyncio.Event()
    async with (
        relay(redis_server, gate) as between,
        store_at(address(between), clock) as (store, _),
    ):
        for _ in range(2):
            gate.clear()
            for _ in range(3):
                assert await misses(store)
                clock.advance(redis_client.COOLDOWN)
            gate.set()
            with patience:
                await soon(store.has_marks([b"mark"]))
                await soon(store.has_marks([b"mark"]))
    messages = [record.getMessage().partition(": ")[2] for record in caplog.records]
    assert messages == 2 * ["unreachable (TimeoutError)", "reachable again"]


async def test_passwords_are_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "anna:hunter2@"
    for script in (silent, replies(b"-ERR hunter2\r\n"), replies(b"hunter2\r\n"), Peer.close):
        async with listen(script) as server, store_at(address(server, secret)) as (store, _):
            assert await misses(store)
    assert "unreachable" in caplog.text
    assert "hunter2" not in caplog.text


async def test_a_late_reply_never_reaches_another_operation(
    redis_server: Server, patience: Patience
) -> None:
    clock, gate = Time(), opened()
    async with (
        relay(redis_server, gate) as between,
        store_at(address(between), clock) as (store, _),
    ):
        with patience:
            await store.put({b"a": b"of a", b"b": b"of b"})
        gate.clear()
        assert await soon(store.get([b"a"])) == [None]
        gate.set()
        await idle(store)
        clock.advance(redis_client.COOLDOWN)
        with patience:
            assert await soon(store.get([b"b"])) == [b"of b"]
        assert between.connections == 1


async def test_nor_does_the_reply_to_a_cancelled_operation(
    redis_server: Server, patience: Patience
) -> None:
    gate = opened()
    async with relay(redis_server, gate) as between, store_at(address(between)) as (store, _):
        with patience:
            await store.put({b"a": b"of a", b"b": b"of b"})
            gate.clear()
            asking = asyncio.create_task(store.get([b"a"]))
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait({asking})
            assert asking.cancelled()
            gate.set()
            assert await soon(store.get([b"b"])) == [b"of b"]


async def test_a_connection_that_is_slow_to_open_serves_the_next_operation(
    redis_server: Server, patience: Patience
) -> None:
    clock, gate = Time(), asyncio.Event()
    async with (
        relay(redis_server, gate) as between,
        store_at(address(between), clock) as (store, s),
    ):
        await soon(store.has_marks([b"mark"]))
        assert s.last == ("known", "error")
        gate.set()
        await idle(store)
        clock.advance(redis_client.COOLDOWN)
        with patience:
            await soon(store.has_marks([b"mark"]))
        assert s.last == ("known", "miss")
        assert between.connections == 1


async def test_a_busy_loop_is_not_taken_for_a_silent_server(
    redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_client, "MAX_WAIT", 1.0)
    async with store_at(redis_server.url) as (store, observed):
        asyncio.get_running_loop().call_soon(time.sleep, 1.1)  # connecting takes several turns
        await soon(store.has_marks([b"mark"]))
        assert observed.last == ("known", "miss")


async def test_a_loop_that_is_late_each_time_is_not_taken_for_a_silent_server(
    redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_client, "OPERATION_TIMEOUT", HANG)
    loop = asyncio.get_running_loop()

    def be_late(times: int) -> None:
        time.sleep(redis_client.MAX_WAIT)
        if times:
            loop.call_soon(be_late, times - 1)

    async with (
        relay(redis_server, opened()) as between,
        store_at(address(between)) as (store, observed),
    ):
        loop.call_soon(be_late, 30)  # the relay is on the same loop, and takes many turns
        await soon(store.has_marks([b"mark"]))
        assert observed.last == ("known", "miss")


async def test_waiting_for_a_connection_of_ones_own_is_no_silence_of_the_server(
    redis_server: Server, patience: Patience, caplog: pytest.LogCaptureFixture
) -> None:
    gate = asyncio.Event()
    async with (
        relay(redis_server, gate) as between,
        store_at(address(between)) as (store, observed),
    ):
        with patience:
            taken = [
                asyncio.create_task(store.has_marks([b"mark"]))
                for _ in range(redis_client.MAX_CONNECTIONS)
            ]
            await until(lambda: between.connections == redis_client.MAX_CONNECTIONS)
        for _ in range(3):
            await soon(store.has_marks([b"mark"]))
            assert observed.last == ("known", "error")
        assert "unreachable" not in caplog.text
        with patience:
            gate.set()
            await soon(asyncio.gather(*taken))
            await soon(store.has_marks([b"mark"]))  # at once: the server was not given up
        assert observed.last == ("known", "miss")
        assert between.connections == redis_client.MAX_CONNECTIONS


async def test_a_few_connections_serve_many_operations(
    redis_server: Server, patience: Patience
) -> None:
    async with (
        relay(redis_server, opened()) as between,
        store_at(address(between)) as (store, observed),
    ):
        with patience:
            await soon(asyncio.gather(*(store.has_marks([b"mark"]) for _ in range(200))))
        assert observed.operations == 200 * [("known", "miss")]
        assert between.connections <= redis_client.MAX_CONNECTIONS


async def test_a_server_that_refuses_stays_in_use(
    caplog: pytest.LogCaptureFixture, patience: Patience
) -> None:
    clock, asked = Time(), 0

    async def script(peer: Peer) -> None:
        nonlocal asked
        while data := await peer.reader.read(1 << 16):
            asked += data.count(b"MGET")
            await peer.send(b"-NOPERM this user has no permissions\r\n" * data.count(b"*"))

    async with listen(script) as server, store_at(address(server), clock) as (store, observed):
        with patience:
            for _ in range(5):
                assert await soon(store.get([b"key"])) == [None]
        assert observed.operations == 5 * [("get", "error")]
        assert asked == 5
        assert caplog.text.count("refuses") == 1
        clock.advance(LOG_INTERVAL)
        with patience:
            await soon(store.get([b"key"]))
        assert caplog.text.count("refuses") == 2


async def test_a_read_only_server_is_connected_to_anew(
    redis_server: Server, patience: Patience
) -> None:
    """A server that became a replica: its name may lead to its successor by now."""

    async def replica(peer: Peer) -> None:
        await peer.reader.read(1 << 16)
        await peer.send(b"+OK\r\n" * 2)
        while await peer.reader.read(1 << 16):
            await peer.send(b"-READONLY You can't write against a read only replica.\r\n")

    async def successor(peer: Peer) -> None:
        await forward(redis_server, peer)

    clock = Time()
    async with (
        listen(replica, successor) as server,
        store_at(address(server), clock) as (store, observed),
    ):
        with patience:
            await soon(store.add_marks([b"mark"]))
            assert observed.last == ("mark", "error")
            clock.advance(redis_client.COOLDOWN)
            await soon(store.add_marks([b"mark"]))
            assert observed.last == ("mark", "ok")


async def test_closing_cancels_running_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_client, "OPERATION_TIMEOUT", 10 * HANG)
    async with listen(silent) as server, store_at(address(server)) as (store, observed):
        asking = asyncio.create_task(store.get([b"key"]))
        await until(lambda: server.connections == 1)
        await soon(store.aclose())
        assert await soon(asking) == [None]
        assert observed.last == ("get", "error")
