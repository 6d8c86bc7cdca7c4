"""The store that several replicas share, in Redis or Valkey.

    <namespace>:o:<turn key>:<prefix>   an original
    <namespace>:i:<turn key>            its prefixes, each scored by when the original expires
    <namespace>:v:<key>                 any other value
    <namespace>:m:<mark>                a mark, whose value is empty

Digests are written as base64url. Every key expires by itself; times are the server's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from redis.asyncio import Redis as Client
from redis.asyncio.cluster import RedisCluster
from redis.exceptions import InvalidResponse

from abridge.memory.stores.key_names import KeyNames
from abridge.memory.stores.redis_client import RedisConnection
from abridge.memory.stores.store import MARK_TTL_FACTOR, MAX_ORIGINALS, FoundOriginal, StoreQuery

BATCH_SIZE = 128
"""Keys read or written at once."""

PrefixIndex: TypeAlias = list[tuple[bytes, float]]
"""Prefixes, oldest first, and when their originals expire."""


class RedisBackend:
    """Holds values for `ttl` seconds on the server of `connection`."""

    in_process = False
    batch_size = BATCH_SIZE
    is_transactional = True

    def __init__(self, connection: RedisConnection, names: KeyNames, ttl: float) -> None:
        self.name = connection.server
        self._connection = connection
        self._names = names
        self._ttl = ttl

    @property
    def size(self) -> int | None:
        """None: the server may hold the data of others too."""
        return None

    def may_hold(self, _turn_key: bytes) -> bool:
        return True

    async def find_originals(self, queries: Sequence[StoreQuery]) -> list[FoundOriginal | None]:
        return await self._connection.run(lambda client: self._find_originals(client, queries))

    async def add_original(self, turn_key: bytes, prefix: bytes, value: bytes) -> None:
        await self._connection.run(
            lambda client: self._add_original(client, turn_key, prefix, value)
        )

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        names = list(map(self._names.value, keys))
        return await self._connection.run(lambda client: self.read_values(client, names))

    async def put(self, values: Mapping[bytes, bytes], ttl: float | None = None) -> None:
        named = {self._names.value(key): value for key, value in values.items()}
        seconds = self._ttl if ttl is None else min(ttl, self._ttl)
        await self._connection.run(lambda client: _set_values(client, named, seconds))

    async def delete(self, keys: Sequence[bytes]) -> None:
        names = list(map(self._names.value, keys))
        await self._connection.run(lambda client: self.delete_values(client, names))

    async def has_marks(self, marks: Sequence[bytes]) -> list[bool]:
        names = list(map(self._names.mark, marks))
        values = await self._connection.run(lambda client: self.read_values(client, names))
        return [value is not None for value in values]

    async def add_marks(self, marks: Sequence[bytes]) -> None:
        named = dict.fromkeys(map(self._names.mark, marks), b"")
        ttl = MARK_TTL_FACTOR * self._ttl
        await self._connection.run(lambda client: _set_values(client, named, ttl))

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def _find_originals(
        self, client: Client, queries: Sequence[StoreQuery]
    ) -> list[FoundOriginal | None]:
        """Read originals. Those identified by their turn alone need a second round trip."""
        names = [self._names.original(query.turn_key, query.prefix) for query in queries]
        turn_keys = list(dict.fromkeys(query.turn_key for query in queries if query.unique))
        values, time, indices = await self.read_with_time(
            client, names, list(map(self._index_name, turn_keys))
        )
        live = dict(zip(turn_keys, (_live_prefixes(index, time) for index in indices), strict=True))
        found: list[FoundOriginal | None] = [
            (query.prefix, value) if value is not None else None
            for query, value in zip(queries, values, strict=True)
        ]
        others = {
            number: live[query.turn_key][0]
            for number, query in enumerate(queries)
            if found[number] is None and query.unique and len(live[query.turn_key]) == 1
        }
        names = [
            self._names.original(queries[number].turn_key, prefix)
            for number, prefix in others.items()
        ]
        for (number, prefix), value in zip(
            others.items(), await self.read_values(client, names), strict=True
        ):
            found[number] = (prefix, value) if value is not None else None
        return found

    async def _add_original(
        self, client: Client, turn_key: bytes, prefix: bytes, value: bytes
    ) -> object:
        """Write an original; delete the oldest of its turn beyond `MAX_ORIGINALS`."""
        index = self._index_name(turn_key)
        _, time, (members,) = await self.read_with_time(client, [], [index])
        others = [other for other in _live_prefixes(members, time) if other != prefix]
        kept_prefixes = {prefix, *others[1 - MAX_ORIGINALS :]}
        removed = [member for member, _ in members if member not in kept_prefixes]

        pipe = client.pipeline(transaction=self.is_transactional)
        if removed:
            pipe.zrem(index, *removed)
        for other in removed:
            pipe.delete(self._names.original(turn_key, other))
        pipe.set(self._names.original(turn_key, prefix), value, px=_to_milliseconds(self._ttl))
        pipe.zadd(index, {prefix: _to_seconds(time) + self._ttl})
        pipe.pexpire(index, _to_milliseconds(self._ttl))
        return await pipe.execute()

    async def read_values(self, client: Client, names: Sequence[bytes]) -> list[bytes | None]:
        if not names:
            return []
        pipe = client.pipeline(transaction=False)
        pipe.mget(names)
        (values,) = await pipe.execute()
        return checked(values, names)

    async def read_with_time(
        self, client: Client, names: Sequence[bytes], indices: Sequence[bytes]
    ) -> tuple[list[bytes | None], tuple[int, int], list[PrefixIndex]]:
        """Read values and indices, and the server's time, in one round trip."""
        pipe = client.pipeline(transaction=False)
        if names:
            pipe.mget(names)
        pipe.time()
        for index in indices:
            pipe.zrange(index, 0, -1, withscores=True)
        found = await pipe.execute()
        values = found.pop(0) if names else []
        time, *read = found
        return checked(values, names), time, read

    async def delete_values(self, client: Client, names: Sequence[bytes]) -> object:
        pipe = client.pipeline(transaction=False)
        pipe.delete(*names)
        return await pipe.execute()

    def _index_name(self, turn_key: bytes) -> bytes:
        return self._names.join(b"i", turn_key)


class ClusterBackend(RedisBackend):
    """Holds values in the cluster of `connection`: each command has one key, since keys are spread
    over nodes.

    Nothing is written in one transaction. Should a write break off in the middle, an original is
    found by its prefix alone, or the index names one that is not there, until both have expired.
    """

    is_transactional = False

    async def read_values(self, client: Any, names: Sequence[bytes]) -> list[bytes | None]:
        pipe = client.pipeline()
        for name in names:
            pipe.get(name)
        return checked(await pipe.execute(), names) if names else []

    async def read_with_time(
        self, client: Any, names: Sequence[bytes], indices: Sequence[bytes]
    ) -> tuple[list[bytes | None], tuple[int, int], list[PrefixIndex]]:
        """Read values and indices, and the time of one of the nodes, whose clocks should agree."""
        values = await self.read_values(client, names)
        pipe = client.pipeline()
        for index in indices:
            pipe.zrange(index, 0, -1, withscores=True)
        found = await pipe.execute() if indices else []
        return values, await client.time(target_nodes=RedisCluster.RANDOM), found

    async def delete_values(self, client: Any, names: Sequence[bytes]) -> object:
        pipe = client.pipeline()
        for name in names:
            pipe.delete(name)
        return await pipe.execute()


async def _set_values(client: Client, values: Mapping[bytes, bytes], ttl: float) -> object:
    pipe = client.pipeline(transaction=False)
    for name, value in values.items():
        pipe.set(name, value, px=_to_milliseconds(ttl))
    return await pipe.execute()


def checked(values: Any, names: Sequence[bytes]) -> list[bytes | None]:
    """Check a reply. Raise InvalidResponse if it is not one value, or none, for each name."""
    if len(values) != len(names) or not all(isinstance(value, bytes | None) for value in values):
        raise InvalidResponse
    return list(values)


def _live_prefixes(index: PrefixIndex, time: tuple[int, int]) -> list[bytes]:
    return [prefix for prefix, expires in index if expires > _to_seconds(time)]


def _to_seconds(time: tuple[int, int]) -> float:
    return time[0] + time[1] / 1e6


def _to_milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
