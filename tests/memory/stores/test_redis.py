"""What the store has in a real Redis: who can read it, for how long, and what a crash does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from abridge.memory.keys import Key, Keyring
from abridge.memory.registry import open_shared_store
from abridge.memory.stores import redis_client
from abridge.memory.stores.key_names import KeyNames
from abridge.memory.stores.redis import RedisBackend
from abridge.memory.stores.redis_client import RedisConnection
from abridge.memory.stores.store import (
    MARK_TTL_FACTOR,
    MAX_ORIGINALS,
    Store,
    StoreQuery,
)
from tests.memory.stores.cases import RING, TTL, Case, Observed, Time, in_redis, redis_store
from tests.support.redis_server import Server
from tests.support.servers import no_leaks, soon, until

__all__ = ["no_leaks"]

pytestmark = pytest.mark.usefixtures("patient")

SECRET = b"I think that the answer is forty-two. " * 10
TURN_KEY, PREFIX = b"the turn", b"the prefix"
OLD, NEW = Key.derive("old", bytes([1] * 32)), Key.derive("new", bytes([2] * 32))


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that a test may kill."""
    with Server() as server:
        yield server


@pytest.fixture
async def case(redis_server: Server) -> AsyncIterator[Case]:
    case = in_redis(redis_server)
    yield case
    await case.store.aclose()


async def fill(store: Store) -> None:
    """Store something of every kind."""
    for number in range(6):
        await store.remember(TURN_KEY, PREFIX + bytes([number]), SECRET)
    await store.remember(TURN_KEY, PREFIX, SECRET)
    await store.put({b"a key": SECRET, b"large": SECRET * 1000})
    await store.add_marks([b"a mark"])


def backend(store: Store) -> RedisBackend:
    assert isinstance(store._backend, RedisBackend)
    return store._backend


def names(store: Store) -> KeyNames:
    return backend(store)._names


def inside(server: Server, store: Store) -> dict[bytes, Any]:
    """Return everything of a store that the server shows."""
    with server.client() as client:
        keys = list(client.scan_iter(names(store)._namespace + b":*"))
        return {
            key: client.get(key) if client.type(key) == b"string" else client.zrange(key, 0, -1)
            for key in keys
        }


async def test_nothing_is_stored_in_the_clear(case: Case, redis_server: Server) -> None:
    await fill(case.store)
    kept = inside(redis_server, case.store)
    assert {key.split(b":")[1] for key in kept} == {b"o", b"i", b"v", b"m"}
    for key, value in kept.items():
        for clear in (b"think", b"forty", TURN_KEY, b"a key", b"a mark"):
            assert clear not in key
            assert clear not in repr(value).encode()


async def test_every_key_expires(case: Case, redis_server: Server) -> None:
    await fill(case.store)
    case.later(TTL / 2)
    await fill(case.store)
    with redis_server.client() as client:
        lives = {key: client.pttl(key) for key in inside(redis_server, case.store)}
    for key, life in lives.items():
        longest = TTL * (MARK_TTL_FACTOR if key.split(b":")[1] == b"m" else 1)
        assert 0 < life <= 1000 * longest
    case.later(TTL)
    assert {key.split(b":")[1] for key in inside(redis_server, case.store)} == {b"m"}


async def test_forgotten_originals_are_deleted(case: Case, redis_server: Server) -> None:
    await fill(case.store)
    kept = inside(redis_server, case.store)
    assert sum(key.split(b":")[1] == b"o" for key in kept) == MAX_ORIGINALS
    (index,) = [value for key, value in kept.items() if key.split(b":")[1] == b"i"]
    assert len(index) == MAX_ORIGINALS


async def test_a_value_that_was_changed_does_not_open(case: Case, redis_server: Server) -> None:
    await fill(case.store)
    for key in inside(redis_server, case.store):
        if key.split(b":")[1] in (b"o", b"v"):
            with redis_server.client() as client:
                client.setrange(key, 60, b"\x00\x01\x02")
    assert await case.recall(TURN_KEY, PREFIX) is None
    assert case.observed.last == ("recall", "error")
    assert await case.store.get([b"a key", b"large"]) == [None, None]
    assert case.observed.last == ("get", "error")
    assert await case.store.has_marks([b"a mark"]) == [True]  # it is not left alone for that


async def test_a_value_of_the_wrong_type_is_a_miss(case: Case, redis_server: Server) -> None:
    await fill(case.store)
    with redis_server.client() as client:
        for key in inside(redis_server, case.store):
            client.delete(key)
            client.lpush(key, "a list")
    await fill(case.store)
    assert await case.recall(TURN_KEY, PREFIX) is None
    assert await case.recall(TURN_KEY, b"other", unique=True) is None
    assert case.observed.last == ("recall", "error")
    assert await case.store.has_marks([b"another mark"]) == [False]


async def test_values_open_until_their_key_is_removed(redis_server: Server) -> None:
    name, observed = "rotated", Observed()
    rings = [Keyring((OLD,)), Keyring((NEW, OLD)), Keyring((NEW,))]
    before, between, after = (
        Case(
            open_shared_store(redis_server.url, ring, ttl=TTL, namespace=name),
            lambda _: None,
            observed,
        )
        for ring in rings
    )
    await fill(before.store)
    assert await between.recall(TURN_KEY, PREFIX) == SECRET
    assert await between.get(b"large") == SECRET * 1000
    await between.store.put({b"a key": b"newer"})
    assert await after.get(b"a key") == b"newer"
    assert await before.get(b"a key") is None
    assert await after.recall(TURN_KEY, PREFIX) is None
    for case in (before, between, after):
        await case.store.aclose()


async def test_a_recall_takes_two_round_trips_at_most(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    from redis.asyncio.client import Pipeline

    trips, execute = 0, Pipeline.execute

    async def counted(pipeline: Any, *given: Any) -> Any:
        nonlocal trips
        trips += 1
        return await execute(pipeline, *given)

    await fill(case.store)
    await case.store.remember(b"alone", PREFIX, SECRET)
    monkeypatch.setattr(Pipeline, "execute", counted)
    assert await case.recall(TURN_KEY, PREFIX) == SECRET
    assert trips == 1
    wanted = [StoreQuery(b"alone", bytes([number]), unique=True) for number in range(50)]
    assert await case.store.recall(wanted) == 50 * [SECRET]
    assert trips == 3


class TestOutages:
    """What happens during and after `kill -9`."""

    async def test_a_crash_is_a_miss_until_the_server_returns(self, server: Server) -> None:
        clock, observed, answers = Time(), Observed(), []
        store = redis_store(RedisConnection(server.url, clock), observe=observed)
        await store.put({b"key": SECRET})
        killed = asyncio.Event()

        async def ask() -> None:
            while not (killed.is_set() and observed.last == ("get", "error")):
                answers.extend(await store.get([b"key"]))

        asking = [asyncio.create_task(ask()) for _ in range(20)]
        await until(lambda: len(answers) > 100)
        server.kill()
        killed.set()
        await soon(asyncio.gather(*asking))
        assert set(answers) <= {SECRET, None}
        assert await store.get([b"key"]) == [None]

        server.start()
        assert await store.get([b"key"]) == [None]
        clock.advance(redis_client.COOLDOWN)
        assert await soon(store.get([b"key"])) == [None]
        assert observed.last == ("get", "miss")
        await store.put({b"key": SECRET})
        assert await store.get([b"key"]) == [SECRET]
        await store.aclose()

    async def test_a_restart_between_two_operations_is_not_noticed(self, server: Server) -> None:
        observed = Observed()
        store = redis_store(RedisConnection(server.url), observe=observed)
        await store.add_marks([b"mark"])
        server.kill()
        server.start()
        await asyncio.sleep(0)  # so that the loop hears of it
        assert await soon(store.has_marks([b"mark"])) == [False]
        assert observed.last == ("known", "miss")
        await store.aclose()

    async def test_a_full_server_is_still_read(self, server: Server) -> None:
        case = in_redis(server)
        await case.store.put({b"key": SECRET})
        with server.client() as client:
            client.config_set("maxmemory", 1)
        await case.store.put({b"other": SECRET})
        assert case.observed.last == ("put", "error")
        await case.store.remember(TURN_KEY, PREFIX, SECRET)
        assert case.observed.last == ("remember", "error")
        assert await case.get(b"key") == SECRET
        with server.client() as client:
            client.config_set("maxmemory", 0)
        await case.store.remember(TURN_KEY, PREFIX, SECRET)
        assert await case.recall(TURN_KEY, PREFIX) == SECRET
        await case.store.aclose()

    async def test_a_wrong_password_is_a_miss(
        self, server: Server, caplog: pytest.LogCaptureFixture
    ) -> None:
        with server.client() as client:
            client.config_set("requirepass", "sesame")
        for credential, works in {":sesame": True, ":hunter2": False, "anna:b%40d": False}.items():
            url = server.url.replace("://", f"://{credential}@")
            store = open_shared_store(url, RING, ttl=TTL)
            await store.put({b"key": SECRET})
            assert await store.get([b"key"]) == [SECRET if works else None]
            await store.aclose()
        assert "AuthenticationError" in caplog.text
        assert all(secret not in caplog.text for secret in ("sesame", "hunter2", "b@d", "b%40d"))


class TestLoops:
    """One store serves any number of event loops."""

    def test_loops_one_after_another(self, redis_server: Server) -> None:
        store = open_shared_store(redis_server.url, RING, ttl=TTL, namespace="loops")

        async def use(number: bytes) -> list[bytes | None]:
            await store.put({number: number})
            found = await store.get([number])
            await store.aclose()
            return found

        for number in (b"1", b"2"):
            assert asyncio.run(use(number)) == [number]

    @pytest.mark.filterwarnings("ignore::ResourceWarning")
    def test_a_loop_that_ended_without_closing(self, redis_server: Server) -> None:
        store = open_shared_store(redis_server.url, RING, ttl=TTL, namespace="loops")

        async def use(*, close: bool) -> list[bytes | None]:
            await store.put({b"key": b"x"})
            found = await store.get([b"key"])
            if close:
                await store.aclose()
            return found

        for close in (False, False, True):
            assert asyncio.run(use(close=close)) == [b"x"]
        assert backend(store)._connection._loop_clients == {}

    def test_loops_in_parallel_threads(self, redis_server: Server) -> None:
        store = open_shared_store(redis_server.url, RING, ttl=TTL, namespace="loops")
        wrong: list[object] = []

        async def use(name: bytes) -> None:
            for number in range(50):
                await store.put({name: bytes([number])})
                if (found := await store.get([name])) != [bytes([number])]:
                    wrong.append(found)
            await store.aclose()

        threads = [
            threading.Thread(target=lambda name=name: asyncio.run(use(name)))
            for name in (b"one", b"two", b"three")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


async def test_tls_certificates_are_verified(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Server(CERTIFICATE) as server:
        url = server.url.replace("redis://", "rediss://")
        trusting = open_shared_store(f"{url}?ssl_ca_certs={CERTIFICATE}", RING, ttl=TTL)
        await trusting.put({b"key": SECRET})
        assert await trusting.get([b"key"]) == [SECRET]
        await trusting.aclose()
        careful = open_shared_store(url, RING, ttl=TTL)
        assert await careful.get([b"key"]) == [None]
        await careful.aclose()
    assert "SSLCertVerificationError" in caplog.text


CERTIFICATE = str(Path(__file__).parents[2] / "http" / "localhost.pem")
