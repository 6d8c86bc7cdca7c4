"""What each part costs a Redis, for `scale`: from a run of `fleet`, and measured one by one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from abridge.memory.stores import redis_client
from abridge.memory.stores.redis_client import RedisConnection
from abridge.observability.ledger.redis_stream import RedisStream
from abridge.sidecar.client_keys.limits import DAY, LIMIT_KINDS, Claim, Sender, Wish
from abridge.sidecar.client_keys.redis_book import RedisBook
from tests.observability.ledger.cases import entry
from tests.support.redis_server import Server

FILE = Path(__file__).with_name("constants.json")

TIMES = 200
"""How often each part is done."""

CLAIMS = 20
"""Claims in a round."""

TRIPS = 16
"""Round trips at once, each by a connection of its own."""

BATCH = 50
"""Entries of the ledger in a batch."""

MANY = 100
"""Replicas on the full page."""

LIMITS = 1 << 40


class Constants(NamedTuple):
    """Times are in microseconds of a Redis's one processor."""

    claim: float  # of one key or team, without other replicas on its page
    claim_replica: float  # more for each other replica there
    round_trip: float  # beside the scripts and commands in it
    store_trips: float  # round trips to the store of an answer
    store_trip: float  # of the commands in one
    entry: float  # of the ledger

    @classmethod
    def load(cls) -> Constants:
        return cls(**json.loads(FILE.read_text()))

    def save(self) -> None:
        FILE.write_text(json.dumps(self._asdict(), indent=2) + "\n")


async def constants_of(idle: Mapping[str, float], load: Mapping[str, float]) -> Constants:
    """Return the constants of a run: what an idle fleet did a second, and what one under load."""
    redis_client.MAX_WAIT = 5.0
    with Server() as server:
        alone, among_many = [await claim_cost(server, count) for count in (1, MANY)]
        written, trip = await entry_cost(server), await trip_cost(server)
    trips = load["reads"] - idle["reads"] - load["limits"] - load["ledger"]
    store = load["store_reads"] * load["mget_us"] + load["store_writes"] * load["exec_us"]
    return Constants(
        claim=round(alone, 1),
        claim_replica=round((among_many - alone) / (MANY - 1), 2),
        round_trip=round(trip, 1),
        store_trips=round(trips / load["whole"], 1),
        store_trip=round(store / trips, 1),
        entry=round(written, 1),
    )


async def claim_cost(server: Server, replicas: int) -> float:
    """Return the microseconds of one claim, on a page of so many replicas."""
    book = RedisBook(RedisConnection(server.url), f"of-{replicas}")
    number = 0

    async def settle() -> None:
        nonlocal number
        number += 1
        sender = Sender(f"{number % replicas:032x}", number, 20_000 * DAY, replicas)
        wishes = tuple(Wish(*kind[:2], LIMITS, 1, 1, 0, 0) for kind in LIMIT_KINDS)
        await book.settle([Claim(f"key:{each}", sender, wishes) for each in range(CLAIMS)])

    for _ in range(replicas):
        await settle()
    cost = await _cost(server, settle)
    await book.aclose()
    return cost / CLAIMS


async def entry_cost(server: Server) -> float:
    """Return the microseconds of an entry of the ledger."""
    stream, number = RedisStream(server.url, 86400.0), 0

    async def write() -> None:
        nonlocal number
        number += BATCH
        await stream.write([entry(number + each) for each in range(BATCH)])

    cost = await _cost(server, write)
    await stream.aclose()
    return cost / BATCH


async def trip_cost(server: Server) -> float:
    """Return the microseconds of a round trip whose command does next to nothing."""
    connection = RedisConnection(server.url)

    async def send(client: Any) -> None:
        await client.ping()

    async def ping() -> None:
        await asyncio.gather(*(connection.run(send) for _ in range(TRIPS)))

    cost = await _cost(server, ping)
    await connection.aclose()
    return cost / TRIPS


async def _cost(server: Server, do: Callable[[], Awaitable[object]]) -> float:
    """Return the microseconds of the server's processor that something takes."""
    before = _processor(server)
    for _ in range(TIMES):
        await do()
    return (_processor(server) - before) / TIMES


def _processor(server: Server) -> float:
    with server.client() as client:
        used = client.info("cpu")
    return 1e6 * float(used["used_cpu_user"] + used["used_cpu_sys"])
