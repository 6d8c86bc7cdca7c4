"""Test the store in a Redis Cluster of three servers, beyond what `test_store.py` has for all."""

from __future__ import annotations

import pytest

from abridge.memory.stores.redis_client import RedisConnection
from abridge.memory.stores.store import BackendError
from tests.memory.stores.cases import in_redis
from tests.support.redis_server import Cluster
from tests.support.servers import unused_address

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


async def test_nobody_there_is_a_store_out_of_reach(caplog: pytest.LogCaptureFixture) -> None:
    connection = RedisConnection(unused_address().replace("http", "redis+cluster"))
    with pytest.raises(BackendError):
        await connection.run(lambda client: client.exists("one"))
    assert "store at cluster of 127.0.0.1" in caplog.text
    assert "out of reach" in caplog.text
    await connection.aclose()
