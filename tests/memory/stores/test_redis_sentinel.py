"""Test a store at an address of Redis Sentinel, with a real sentinel, a primary and a replica."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from abridge.memory.stores.redis_client import RedisConnection
from abridge.memory.stores.redis_sentinel import SentinelAddress
from abridge.memory.stores.store import Store
from tests.memory.stores.cases import redis_store
from tests.support.redis_server import Server, free_port, sentinel
from tests.support.servers import HANG, until

pytestmark = pytest.mark.usefixtures("patient")


def test_the_parts_of_an_address() -> None:
    address = SentinelAddress.parse(
        "redis-sentinel://anna:p%40ss@one,two:7,[::1]:8/main/3?sentinel_password=s"
    )
    assert address.sentinels == [("one", 26379), ("two", 7), ("::1", 8)]
    assert address.service == "main"
    assert address.primary == "redis://anna:p%40ss@localhost/3"
    assert address.login == {"password": "s"}
    assert "p%40ss" not in address.server


async def test_the_new_primary_is_found_after_a_failover(tmp_path: Path) -> None:
    with Server() as primary, Server() as replica:
        replica.client().replicaof("127.0.0.1", primary.port)
        await until(lambda: replica.client().info("replication")["master_link_status"] == "up")
        with sentinel(tmp_path, primary) as port:
            watcher = Server.client_at(port)
            await until(lambda: watcher.sentinel_master("main")["num-slaves"] == 1)
            nobody = free_port()
            store = redis_store(
                RedisConnection(f"redis-sentinel://127.0.0.1:{nobody},127.0.0.1:{port}/main/0")
            )
            await until_kept(store, b"before")
            await until(lambda: replica.client().dbsize() == 1)
            primary.kill()
            await until(lambda: watcher.sentinel_get_master_addr_by_name("main")[1] == replica.port)
            await until_kept(store, b"after")
            assert replica.client().dbsize() == 2
            await store.aclose()


async def until_kept(store: Store, key: bytes) -> None:
    async def is_kept() -> bool:
        await store.put({key: b"value"})
        return await store.get([key]) == [b"value"]

    async with asyncio.timeout(HANG):
        while not await is_kept():  # noqa: ASYNC110 -- there is no event to wait for
            await asyncio.sleep(0.05)
