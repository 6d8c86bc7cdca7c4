"""Count the round trips to a real Redis that limits cost: `python -m tests.campaigns.limits`.

Replicas admit and end streams of one key and its team. It is run with blocks, as they are, and
without: then each stream reserves for itself, and writes what it used when it ends. There is no
limit of streams then.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from dataclasses import dataclass, replace
from math import inf
from uuid import uuid4

from prometheus_client import CollectorRegistry

from abridge.config.client_key import Limits
from abridge.memory.stores import redis_client
from abridge.memory.stores.redis_client import RedisConnection
from abridge.observability.metrics import metrics_for
from abridge.sidecar.client_keys import accounts
from abridge.sidecar.client_keys.accounts import Accounts, LimitReached
from abridge.sidecar.client_keys.limits import BLOCKS
from abridge.sidecar.client_keys.redis_book import RedisBook
from tests.support.redis_server import Server

TOKENS = 2000
"""Tokens of a stream on average."""


@dataclass
class Load:
    """So many streams at once, in all, for so long each on average."""

    streams: int
    seconds: float
    lasts: float

    @property
    def limits(self) -> dict[str, Limits]:
        """Limits that such a load just does not reach, with all that can be limited."""
        a_minute = round(60 * self.streams / self.lasts)
        of_key = Limits(
            requests_per_minute=2 * a_minute,
            tokens_per_minute=2 * a_minute * TOKENS,
            tokens_per_day=1440 * a_minute * TOKENS,
            tokens_per_month=31 * 1440 * a_minute * TOKENS,
            streams=2 * self.streams,
        )
        return {"key:load": of_key, "team:load": of_key.model_copy()}


@dataclass
class Result:
    """What one run cost."""

    ended: int = 0
    refused: int = 0
    rounds: int = 0
    microseconds: float = 0.0  # of the server's time


async def run(load: Load, replicas: int, *, blocks: bool) -> Result:
    result, namespace = Result(), uuid4().hex
    vars(accounts)["BLOCKS"] = BLOCKS if blocks else 1 << 60  # of 1
    with Server() as server, server.client() as client:
        books = [RedisBook(RedisConnection(server.url), namespace) for _ in range(replicas)]
        shared = [_accounts(book) for book in books]
        client.config_resetstat()
        ends_at = time.monotonic() + load.seconds
        streams = (
            _stream(shared[number % replicas], load, result, ends_at)
            if blocks
            else _stream_alone(books[number % replicas], load, result, ends_at)
            for number in range(load.streams)
        )
        await asyncio.gather(*streams)
        stats = client.info("commandstats")["cmdstat_eval"]
        result.rounds, result.microseconds = stats["calls"], stats["usec"]
        for each in shared:
            await each.aclose()
    vars(accounts)["BLOCKS"] = BLOCKS
    return result


def _accounts(book: RedisBook) -> Accounts:
    metrics = metrics_for(CollectorRegistry())
    return Accounts(book, metrics, processes=1, now=time.time, monotonic=time.monotonic)


async def _stream(shared: Accounts, load: Load, result: Result, ends_at: float) -> None:
    """Run one stream after the other."""
    limits = load.limits
    await asyncio.sleep(random.uniform(0, load.lasts))
    while time.monotonic() < ends_at:
        await _run_one(shared, limits, load, result)


async def _stream_alone(book: RedisBook, load: Load, result: Result, ends_at: float) -> None:
    await asyncio.sleep(random.uniform(0, load.lasts))
    limits = {name: each.model_copy(update={"streams": None}) for name, each in load.limits.items()}
    while time.monotonic() < ends_at:
        own = _accounts(book)
        own._present_at = inf
        await _run_one(own, limits, load, result)
        await own._write_due()
        if own._keeper is not None:
            own._keeper.cancel()


async def _run_one(of: Accounts, limits: dict[str, Limits], load: Load, result: Result) -> None:
    try:
        taken = await of.admit(limits)
    except LimitReached:
        result.refused += 1
        await asyncio.sleep(0.5)
        return
    await asyncio.sleep(random.uniform(0.5, 1.5) * load.lasts)
    taken.end(random.randrange(1, 2 * TOKENS), 0)
    result.ended += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--lasts", type=float, default=2.0, help="seconds of a stream")
    parser.add_argument("--replicas", type=int, default=4)
    words = parser.parse_args()
    load = Load(words.streams, words.seconds, words.lasts)
    redis_client.MAX_WAIT = 5.0  # counts are asked for, whatever else this machine does
    few = replace(load, streams=load.streams // 10)  # more would be too much for one process
    for blocks, some in ((True, load), (False, few)):
        result = asyncio.run(run(some, words.replicas, blocks=blocks))
        print(
            f"{'with' if blocks else 'without'} blocks: {some.streams} streams at once, "
            f"{result.ended / load.seconds:.0f} a second ended, {result.refused} refused; "
            f"{result.rounds / load.seconds:.1f} round trips a second, "
            f"{result.rounds / result.ended:.3f} a stream, "
            f"{result.microseconds / result.rounds:.0f} µs of the server each"
        )


if __name__ == "__main__":
    main()
