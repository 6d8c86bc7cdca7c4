"""The pages in a real Redis and a real cluster: as `settle` has it, by the server's own time."""

from __future__ import annotations

import asyncio
import time
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from redis.asyncio.cluster import RedisCluster

from abridge.memory.stores.redis_client import RedisConnection
from abridge.memory.stores.store import BackendError
from abridge.sidecar.client_keys.limits import LIMIT_KINDS, Claim, Page, Sender, Wish, settle
from abridge.sidecar.client_keys.redis_book import RedisBook
from tests.support.redis_server import Cluster, Server
from tests.support.servers import HANG


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a server as long as it takes: this machine may have other things to do."""
    monkeypatch.setattr("abridge.memory.stores.redis_client.MAX_WAIT", HANG)
    monkeypatch.setattr("abridge.memory.stores.redis_client.OPERATION_TIMEOUT", HANG)


NAMES = [(kind.name, kind.window) for kind in LIMIT_KINDS]


def wish(used: int = 0, wanted: int = 0, limit: int = 100, kind: int = 2) -> Wish:
    return Wish(*NAMES[kind], limit, used, wanted, 0, 0)


def claim(*wishes: Wish, account: str = "key:a", process: str = "a", number: int = 1) -> Claim:
    now = round(time.time() * 1000)
    return Claim(account, Sender(process, number, now, 1), wishes)


@pytest.fixture
def book(redis_server: Server) -> RedisBook:
    return RedisBook(RedisConnection(redis_server.url), uuid4().hex)


wishes = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(0, len(NAMES) - 1),
        st.integers(-50, 400),
        st.integers(0, 300),
        st.sampled_from([1, 6, 997, 10**15]),
    ),
    min_size=1,
    max_size=12,
)


@given(moves=wishes)
@settings(
    deadline=None,
    max_examples=20,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_the_script_writes_what_the_function_does(
    redis_server: Server, moves: list[tuple[str, int, int, int, int]]
) -> None:
    async def compare() -> None:
        book, page = RedisBook(RedisConnection(redis_server.url), uuid4().hex), Page()
        for number, (process, kind, used, wanted, limit) in enumerate(moves, 1):
            asked = claim(wish(used, wanted, limit, kind), process=process, number=number)
            (reply,) = await book.settle([asked])
            expected = settle(page, asked, reply.at)
            assert reply.at == expected.at
            for one, other in zip(reply.granted, expected.granted, strict=True):
                assert one.amount == other.amount
                assert one.used == pytest.approx(other.used, abs=0.01)
        await book.aclose()

    asyncio.run(compare())


async def test_a_claim_that_is_sent_again_counts_once(book: RedisBook) -> None:
    asked = claim(wish(used=30, wanted=5))
    first, again = [await book.settle([asked]) for _ in range(2)]
    assert first == again
    (reply,) = await book.settle([claim(wish(), number=2)])
    assert reply.granted == ((0, 35.0),)
    await book.aclose()


async def test_all_expires(book: RedisBook, redis_server: Server) -> None:
    await book.settle([claim(wish(used=1))])
    with redis_server.client() as client:
        names = [name for name in client.keys("*") if name.decode().startswith(book._prefix)]
        assert len(names) == 2
        assert all(client.pttl(name) > 0 for name in names)
    await book.aclose()


async def test_the_servers_time_counts_whatever_the_process_thinks(book: RedisBook) -> None:
    hour = 3_600_000
    for number, wrong in enumerate((-hour, hour), 1):
        asked = claim(wish(used=50, kind=3), number=number)
        (reply,) = await book.settle([_sent(asked, wrong)])
        assert abs(reply.at / 1000 - time.time()) < 60
        assert reply.granted[0].used == 50 * number
    await book.aclose()


def _sent(asked: Claim, wrong: int) -> Claim:
    """Return a claim of a process whose clock is wrong."""
    sender = asked.sender
    return asked._replace(sender=sender._replace(sent_at=sender.sent_at + wrong))


async def test_a_round_is_one_round_trip(book: RedisBook, redis_server: Server) -> None:
    """All claims are sent before any reply is read."""
    claims = [claim(wish(used=1), account=f"key:{number}", number=2) for number in range(50)]
    await book.settle(claims[:1])
    with redis_server.client() as client:
        reads = client.info("stats")["total_reads_processed"]
        await book.settle(claims)
        assert client.info("stats")["total_reads_processed"] - reads <= 4  # and those of `info`
    await book.aclose()


async def test_a_server_that_is_gone_is_out_of_reach() -> None:
    with Server() as server:
        book = RedisBook(RedisConnection(server.url))
        await book.settle([claim(wish(used=1))])
        server.kill()
        with pytest.raises(BackendError):
            await book.settle([claim(wish(used=1), number=2)])
        await book.aclose()


async def test_pages_are_spread_over_a_cluster(redis_cluster: Cluster) -> None:
    before, namespace = redis_cluster.sizes(), uuid4().hex
    book = RedisBook(RedisConnection(redis_cluster.url), namespace)
    claims = [claim(wish(used=number), account=f"key:{number}") for number in range(60)]
    assert [reply.granted[0].used for reply in await book.settle(claims)] == list(range(60))
    after = redis_cluster.sizes()
    assert all(more > size for more, size in zip(after, before, strict=True))
    assert await book._connection.run(_is_cluster)
    await book.aclose()


async def _is_cluster(client: object) -> bool:
    return isinstance(client, RedisCluster)
