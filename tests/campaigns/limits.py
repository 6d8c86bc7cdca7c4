"""Count the round trips to a real Redis that limits cost: `python -m tests.campaigns.limits`.

Replicas admit and end streams of one key and its team. It is run with blocks, as they are, and
without: then each stream reserves what it needs alone, and what it used is written when it ends.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from dataclasses import dataclass
from uuid import uuid4

from prometheus_client import CollectorRegistry

from abridge.config.client_key import Limits
from abridge.memory.stores.redis_client import RedisConnection
from abridge.observability.metrics import metrics_for
from abridge.sidecar.client_keys import accounts as module
from abridge.sidecar.client_keys.accounts import Accounts, LimitReached
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
    result, namespace, most = Result(), uuid4().hex, module.BLOCKS
    module.BLOCKS = most if blocks else 1 << 60
    with Server() as server, server.client() as client:
        each = [_accounts(server, namespace) for _ in range(replicas)]
        await asyncio.gather(*(one.admit({}) for one in each))
        client.config_resetstat()
        ends_at = time.monotonic() + load.seconds
        streams = (
            _stream(each[number % replicas], load, result, ends_at, writes=not blocks)
            for number in range(load.streams)
        )
        await asyncio.gather(*streams)
        stats = client.info("commandstats")["cmdstat_eval"]
        result.rounds, result.microseconds = stats["calls"], stats["usec"]
        for one in each:
            await one.aclose()
    module.BLOCKS = most
    return result


def _accounts(server: Server, namespace: str) -> Accounts:
    book = RedisBook(RedisConnection(server.url), namespace)
    metrics = metrics_for(CollectorRegistry())
    return Accounts(book, metrics, processes=1, now=time.time, monotonic=time.monotonic)


async def _stream(
    accounts: Accounts, load: Load, result: Result, ends_at: float, *, writes: bool
) -> None:
    """Run one stream after the other."""
    limits = load.limits
    await asyncio.sleep(random.uniform(0, load.lasts))
    while time.monotonic() < ends_at:
        try:
            taken = await accounts.admit(limits)
        except LimitReached:
            result.refused += 1
            await asyncio.sleep(0.5)
            continue
        await asyncio.sleep(random.uniform(0.5, 1.5) * load.lasts)
        taken.end(random.randrange(1, 2 * TOKENS), 0)
        result.ended += 1
        if writes:
            await accounts._write(list(accounts._limited(limits)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--lasts", type=float, default=2.0, help="seconds of a stream")
    parser.add_argument("--replicas", type=int, default=4)
    words = parser.parse_args()
    load = Load(words.streams, words.seconds, words.lasts)
    for blocks in (True, False):
        result = asyncio.run(run(load, words.replicas, blocks=blocks))
        per_second = result.rounds / load.seconds
        how = "with" if blocks else "without"
        print(
            f"{how} blocks: {result.ended / load.seconds:.0f} streams a second ended, "
            f"{result.refused} refused, {per_second:.1f} round trips a second, "
            f"{result.microseconds / max(1, result.rounds):.0f} µs of the server each"
        )


if __name__ == "__main__":
    main()
