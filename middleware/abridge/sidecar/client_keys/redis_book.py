"""The book of limits in the Redis, Valkey or cluster of such that all replicas share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from redis.asyncio.cluster import RedisCluster

from abridge.memory.stores.redis_client import RedisConnection
from abridge.sidecar.client_keys.limits import (
    KEPT,
    LEASE,
    REMEMBERED,
    Claim,
    Granted,
    Reply,
    month_starts,
)

SETTLE = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local process, replicas = 'p:' .. ARGV[1], tonumber(ARGV[2])
local lease, remembered, kept = tonumber(ARGV[3]), ARGV[4], ARGV[5]
local day, month, at = now - now % 86400000, 0, 7
for start in string.gmatch(ARGV[6], '%d+') do
  if tonumber(start) <= now then month = math.max(month, tonumber(start)) end
end

local function still_used(amount, since, window, limit)
  if window == 'minute' then
    return math.max(0, amount - math.max(0, now - since) * limit / 60000)
  end
  return since >= (window == 'day' and day or month) and amount or 0
end

local function held_elsewhere(page)
  local fields, sum = redis.call('HGETALL', page), 0
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, 2) == 'p:' and fields[i] ~= process then
      local expires, held = string.match(fields[i + 1], '(%S+) (%S+)')
      if tonumber(expires) <= now then
        redis.call('HDEL', page, fields[i])
      else
        sum = sum + tonumber(held)
      end
    end
  end
  return sum
end

local function settle(page, mine, number, first, last)
  local before = redis.call('GET', mine)
  before = before and cmsgpack.unpack(before)
  if before and before[1] >= number then return before[2] end
  local reply, holds = {string.format('%.0f', now)}, false
  for i = first, last, 7 do
    local name, window, limit, more = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), ARGV[i + 3]
    local amount, since = ARGV[i + 5], ARGV[i + 6]
    if window == 'open' then
      amount = held_elsewhere(page) + more
    else
      local used = redis.call('HGET', page, name)
      if used then amount, since = string.match(used, '(%S+) (%S+)') end
      amount = math.max(0, still_used(tonumber(amount), tonumber(since), window, limit) + more)
    end
    local room, block = math.floor(limit - amount + 1e-6), 0
    if room > 0 then
      block = math.min(tonumber(ARGV[i + 4]), math.max(1, math.floor(room / (2 * replicas))))
    end
    amount = amount + block
    if window == 'open' then
      local held = string.format('%.0f %.0f', now + lease, more + block)
      holds = redis.call('HSET', page, process, held)
    else
      redis.call('HSET', page, name, string.format('%.6f %.0f', amount, now))
    end
    table.insert(reply, string.format('%.0f', block))
    table.insert(reply, string.format('%.6f', amount))
  end
  if not holds then redis.call('HDEL', page, process) end
  redis.call('SET', mine, cmsgpack.pack({number, reply}), 'PX', remembered)
  redis.call('PEXPIRE', page, kept)
  return reply
end

local replies = {}
for i = 1, #KEYS, 2 do
  local number, count = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  table.insert(replies, settle(KEYS[i], KEYS[i + 1], number, at + 2, at + 1 + count))
  at = at + 2 + count
end
return replies
"""
"""Writes claims on their pages, as `settle` does, by the server's own time."""


class RedisBook:
    """Keeps each page in one hash, which has names and amounts, no key of a client; beside it what
    each process was last told."""

    counts_processes = True

    def __init__(self, connection: RedisConnection, namespace: str = "abridge") -> None:
        self._connection = connection
        self._prefix = f"{namespace}:limits:"
        self.name = connection.server

    async def settle(self, claims: Sequence[Claim]) -> Sequence[Reply]:
        return await self._connection.run(lambda client: self._evaluate(client, claims))

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def _evaluate(self, client: Any, claims: Sequence[Claim]) -> list[Reply]:
        """Run the scripts in one round trip, or in one for each node of a cluster, where a script
        must have one page alone."""
        pipe = client.pipeline(transaction=False)
        size = 1 if isinstance(client, RedisCluster) else len(claims)
        for start in range(0, len(claims), size):
            some = claims[start : start + size]
            pages = [f"{self._prefix}{{{each.account}}}" for each in some]
            names = [name for page in pages for name in (page, f"{page}:{some[0].sender.process}")]
            pipe.eval(SETTLE, len(names), *names, *_words(some))
        return [_read_reply(each) for some in await pipe.execute() for each in some]


def _words(claims: Sequence[Claim]) -> Iterator[Any]:
    """Yield the arguments of the script."""
    process, _, sent_at, processes = claims[0].sender
    starts = " ".join(map(str, month_starts(sent_at)))
    yield from (process, processes, LEASE, REMEMBERED, KEPT, starts)
    for claim in claims:
        words = [word for wish in claim.wishes for word in wish]
        yield from (claim.sender.number, len(words), *words)


def _read_reply(words: Sequence[bytes]) -> Reply:
    at, *rest = map(float, words)
    return Reply(int(at), tuple(map(Granted, map(int, rest[::2]), rest[1::2])))
