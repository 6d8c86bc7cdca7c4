"""Test the store in a Redis Cluster of three servers, beyond what `test_store.py` has for all."""

from __future__ import annotations

import gc

import pytest
from redis.asyncio import Connection
from redis.asyncio import Redis as Client

from abridge.memory.stores.redis_client import COOLDOWN, RedisConnection
from abridge.memory.stores.store import BackendError
from tests.memory.stores.cases import in_redis
from tests.support.redis_server import Cluster
from tests.support.servers import Peer, listen, unused_address

pytestmark = pytest.mark.usefixtures("patient")


async def test_what_is_stored_is_spread_over_all_servers(redis_cluster: Cluster) -> None:
    case, before = in_redis(redis_cluster), redis_cluster.sizes()
    values = {b"%d" % number: b"value" for number in range(100)}
    await case.store.put(values)
    after = redis_cluster.sizes()
    assert all(more > size for more, size in zip(after, before, strict=True))
    assert await case.store.get([*values, b"none"]) == [*values.values(), None]
    await case.store.aclose()


async def test_any_server_leads_to_all(redis_cluster: Cluster) -> None:
    _, _, hosts = redis_cluster.url.partition("://")
    nobody = unused_address().removeprefix("http://")
    connection = RedisConnection(f"redis+cluster://{nobody},{hosts.partition(',')[0]}")
    assert await connection.run(lambda client: client.exists("one")) == 0
    assert hosts.partition(",")[0] in connection.server
    await connection.aclose()


async def test_a_server_that_is_silent_leaves_time_to_ask_another(
    redis_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("abridge.memory.stores.redis_client.OPERATION_TIMEOUT", 3.0)

    async def say_nothing(peer: Peer) -> None:
        await peer.reader.read()

    _, _, hosts = redis_cluster.url.partition("://")
    async with listen(say_nothing) as silent:
        connection = RedisConnection(f"{silent.url.replace('http', 'redis+cluster')},{hosts}")
        assert await connection.run(lambda client: client.exists("one")) == 0
        await connection.aclose()


@pytest.mark.parametrize("is_there", [True, False])
async def test_outages_leave_no_connections_behind(
    redis_cluster: Cluster, *, is_there: bool
) -> None:
    url = redis_cluster.url if is_there else unused_address().replace("http", "redis+cluster")
    now, counts = 0.0, []
    connection = RedisConnection(url.partition(",")[0], lambda: now)

    async def break_off(client: Client) -> None:
        await client.exists("one")
        raise ConnectionError

    for _ in range(4):
        with pytest.raises(BackendError):
            await connection.run(break_off)
        now += 2 * COOLDOWN
        gc.collect()
        counts.append(sum(isinstance(each, Connection) for each in gc.get_objects()))
    assert counts == counts[:1] * 4
    if is_there:
        assert await connection.run(lambda client: client.exists("one")) == 0
    await connection.aclose()


async def test_nobody_there_is_a_store_out_of_reach(caplog: pytest.LogCaptureFixture) -> None:
    connection = RedisConnection(unused_address().replace("http", "redis+cluster"))
    with pytest.raises(BackendError):
        await connection.run(lambda client: client.exists("one"))
    assert "store at cluster of 127.0.0.1" in caplog.text
    assert "unreachable" in caplog.text
    await connection.aclose()
