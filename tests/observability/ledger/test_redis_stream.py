"""Test what only Redis has: a stream that it trims, and a batch that it remembers."""

from __future__ import annotations

import time

import pytest

from abridge.observability.ledger.redis_stream import STREAM, RedisStream
from tests.observability.ledger.cases import entry, requests, usage_query
from tests.support.redis_server import Server

DAY = 86400.0


@pytest.fixture
def server(redis_server: Server) -> Server:
    with redis_server.client() as client:
        client.flushdb()
    return redis_server


async def test_old_entries_are_removed_by_the_servers_clock(server: Server) -> None:
    """As far as whole blocks of the stream are old, some hundred entries."""
    with server.client() as client:
        old = round((time.time() - 2 * DAY) * 1000)
        for number in range(1000):
            client.xadd(STREAM, {"time": "2026-11-01T00:00:00+00:00"}, id=f"{old}-{number + 1}")
        stream = RedisStream(server.url, DAY)
        await stream.write([entry(1)])
        assert client.xlen(STREAM) < 200
        await stream.aclose()


async def test_retention_that_is_longer_than_the_clock_runs_keeps_all(server: Server) -> None:
    stream = RedisStream(server.url, 1e12)
    await stream.write([entry(1)])
    assert requests(await stream.read(usage_query())) == {"research": 1}
    await stream.aclose()


async def test_what_a_process_leaves_beside_the_stream_expires(server: Server) -> None:
    stream = RedisStream(server.url, DAY)
    await stream.write([entry(1)])
    with server.client() as client:
        (mark,) = client.scan_iter(f"{STREAM}:*")
        assert 0 < client.ttl(mark) <= 7 * DAY
        client.delete(mark)
    await stream.aclose()


async def test_what_is_no_entry_is_an_error(server: Server) -> None:
    stream = RedisStream(server.url, DAY)
    with server.client() as client:
        client.xadd(STREAM, {"time": "now"})
    with pytest.raises(ValueError, match="now"):
        await stream.read(usage_query())
    await stream.aclose()


async def test_an_entry_of_an_older_ledger_lacks_what_that_did_not_know(server: Server) -> None:
    stream = RedisStream(server.url, DAY)
    with server.client() as client:
        client.xadd(STREAM, {"time": "2026-11-28T12:00:00+00:00", "team": "research"})
    (found,) = await stream.read(usage_query())
    assert (found.name, found.requests, found.price, found.currency) == ("research", 1, 0, "")
    await stream.aclose()


async def test_the_rights_that_the_page_names_are_enough(server: Server) -> None:
    writes = ("+eval", "+get", "+set", "+time", "+xadd", "+xtrim")
    with server.client() as client:
        for name, rights in (("writer", writes), ("reader", ("+eval", "+xrange"))):
            keys = f"~{STREAM}*"
            client.execute_command("ACL", "SETUSER", name, "on", ">secret", keys, *rights)
    writer = RedisStream(f"redis://writer:secret@{server.address}", DAY)
    await writer.write([entry(1)])
    reader = RedisStream(f"redis://reader:secret@{server.address}", DAY)
    assert requests(await reader.read(usage_query())) == {"research": 1}
    await writer.aclose()
    await reader.aclose()
