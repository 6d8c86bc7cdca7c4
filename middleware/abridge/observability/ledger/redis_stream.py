"""The ledger in a stream of Redis or Valkey, 6.2 or newer: `abridge:{ledger}`.

Each entry has the columns as its fields, empty for what is not known. The server's time counts for
how long they are kept. Its entries are never changed, and other programs may read them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from abridge.apis.json import loads
from abridge.memory.stores.redis_client import client_maker
from abridge.observability.ledger.entry import COLUMNS, Entry
from abridge.observability.ledger.usage import Usage, UsageQuery, UsageSums
from abridge.observability.record import new_request_id

STREAM = "abridge:{ledger}"

LAST_BATCH_SECONDS = 7 * 86400
"""Seconds for which the server knows the last batch of a process, and does not write it twice."""

CLOCK_SLACK = timedelta(days=1)
"""Time by which the clock of a process may be ahead of the server's."""

PATIENCE = 5.0
"""Seconds to find the server, and for its reply."""

PAGE_SIZE = 1000
"""Entries read at once."""

WRITE_SCRIPT = """
if redis.call('GET', KEYS[2]) == ARGV[1] then return 0 end
local oldest = redis.call('TIME')[1] * 1000 - ARGV[2]
redis.call('XTRIM', KEYS[1], 'MINID', '~', string.format('%.0f', math.max(0, oldest)))
local width = tonumber(ARGV[4])
for first = 5, #ARGV, width do
  redis.call('XADD', KEYS[1], '*', unpack(ARGV, first, first + width - 1))
end
redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[3])
return 1
"""
"""Takes the id of a batch, the milliseconds and seconds that entries and ids are kept, the number
of words of each entry, and those words: names and values."""


READ_SCRIPT = """
return cjson.encode(redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', ARGV[2]))
"""
"""Takes where to begin and how many entries to read. To read each word by itself takes ten times as
long."""


class RedisStream:
    """Keeps entries for `retention` seconds. Raises ValueError for an invalid address."""

    def __init__(self, url: str, retention: float) -> None:
        self._new_client, self.server = client_maker(url, PATIENCE)
        self._client: Any = None
        self._retention = retention
        self._last_batch = f"{STREAM}:{new_request_id()}"

    async def write(self, batch: Sequence[Entry]) -> None:
        words = [word for entry in batch for word in _words(entry)]
        kept = (round(self._retention * 1000), LAST_BATCH_SECONDS)
        head = (batch[0].id, *kept, 2 * len(COLUMNS))
        await self._eval(WRITE_SCRIPT, 2, STREAM, self._last_batch, *head, *words)

    async def read(self, query: UsageQuery) -> list[Usage]:
        sums = UsageSums(query)
        start = str(max(0, round((query.since - CLOCK_SLACK).timestamp() * 1000)))
        while page := await self._read_page(start):
            for _, words in page:
                sums.add(dict(zip(words[::2], words[1::2], strict=True)))
            start = f"({page[-1][0]}"
        return sums.sorted()

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                await client.aclose()

    async def _read_page(self, start: str) -> Any:
        """Return entries from there on: when each was written, and its names and values."""
        return loads(await self._eval(READ_SCRIPT, 1, STREAM, start, PAGE_SIZE))

    async def _eval(self, script: str, *arguments: object) -> Any:
        """Run a script. After a failure, a new client finds the server that is in charge then."""
        if self._client is None:
            self._client = self._new_client()
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._client.eval(script, *arguments)
        except BaseException:
            await self.aclose()
            raise


def _words(entry: Entry) -> Iterator[str]:
    """Yield names and values."""
    for column in COLUMNS:
        value = getattr(entry, column)
        yield column
        if isinstance(value, datetime):
            yield value.isoformat()
        elif isinstance(value, Decimal):
            yield f"{value:f}"
        else:
            yield "" if value is None else str(value)
