"""The layout of data in Redis, and the commands that read and write it.

    <namespace>:o:<turn key>:<prefix>   an original
    <namespace>:i:<turn key>            its prefixes, each scored by when the original expires
    <namespace>:v:<key>                 any other value
    <namespace>:m:<mark>                a mark, whose value is empty

Digests are written as base64url. Every key expires by itself; times are the server's.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from redis.asyncio import Redis as Client
from redis.exceptions import InvalidResponse

from abridge.history.stores.store import MOST_ORIGINALS, Wanted

Found: TypeAlias = list[tuple[bytes, bytes | None]]
"""Keys and their values, in the order of the request."""

Index: TypeAlias = list[tuple[bytes, float]]
"""Prefixes, oldest first, and when their originals expire."""


class Shelves:
    """Keys and commands under a namespace. Originals expire after `ttl` seconds."""

    def __init__(self, namespace: str, ttl: float) -> None:
        self._namespace = namespace.encode()
        self._ttl = ttl

    def original(self, place: bytes, prefix: bytes) -> bytes:
        return self._key(b"o", place, prefix)

    def value(self, key: bytes) -> bytes:
        return self._key(b"v", key)

    def mark(self, mark: bytes) -> bytes:
        return self._key(b"m", mark)

    async def find(self, client: Client, wanted: Sequence[Wanted]) -> Found:
        """Read the originals of a request. Those identified by their turn alone need a second round
        trip."""
        keys = [self.original(one.place, one.prefix) for one in wanted]
        places = list(dict.fromkeys(one.place for one in wanted if one.unique))
        pipe = client.pipeline(transaction=False)
        pipe.mget(keys)
        pipe.time()
        for place in places:
            pipe.zrange(self._index(place), 0, -1, withscores=True)
        values, time, *indices = await pipe.execute()
        found = _paired(keys, values)
        live = dict(zip(places, (_live(index, time) for index in indices), strict=True))
        others = {
            number: self.original(one.place, live[one.place][0])
            for number, one in enumerate(wanted)
            if found[number][1] is None and one.unique and len(live[one.place]) == 1
        }
        for number, other in zip(others, await fetch(client, list(others.values())), strict=True):
            found[number] = other
        return found

    async def add(self, client: Client, place: bytes, prefix: bytes, value: bytes) -> object:
        """Write an original; delete the oldest of its turn beyond `MAX_ORIGINALS`."""
        index = self._index(place)
        pipe = client.pipeline(transaction=False)
        pipe.time()
        pipe.zrange(index, 0, -1, withscores=True)
        time, members = await pipe.execute()
        others = [other for other in _live(members, time) if other != prefix]
        stay = {prefix, *others[1 - MOST_ORIGINALS :]}
        gone = [member for member, _ in members if member not in stay]

        pipe = client.pipeline(transaction=True)
        if gone:
            pipe.zrem(index, *gone)
            pipe.delete(*(self.original(place, other) for other in gone))
        pipe.set(self.original(place, prefix), value, px=_milliseconds(self._ttl))
        pipe.zadd(index, {prefix: _seconds(time) + self._ttl})
        pipe.pexpire(index, _milliseconds(self._ttl))
        return await pipe.execute()

    def _index(self, place: bytes) -> bytes:
        return self._key(b"i", place)

    def _key(self, kind: bytes, *digests: bytes) -> bytes:
        spelled = (urlsafe_b64encode(digest).rstrip(b"=") for digest in digests)
        return b":".join([self._namespace, kind, *spelled])


async def fetch(client: Client, keys: Sequence[bytes]) -> Found:
    if not keys:
        return []
    pipe = client.pipeline(transaction=False)
    pipe.mget(keys)
    (values,) = await pipe.execute()
    return _paired(keys, values)


async def fill(client: Client, values: Mapping[bytes, bytes], ttl: float) -> object:
    pipe = client.pipeline(transaction=False)
    for key, value in values.items():
        pipe.set(key, value, px=_milliseconds(ttl))
    return await pipe.execute()


async def clear(client: Client, keys: Iterable[bytes]) -> object:
    pipe = client.pipeline(transaction=False)
    pipe.delete(*keys)
    return await pipe.execute()


def _paired(keys: Sequence[bytes], values: Any) -> Found:
    """Pair keys with values. Raise InvalidResponse if the server replied with something else."""
    if not all(isinstance(value, bytes | None) for value in values):
        raise InvalidResponse
    return list(zip(keys, values, strict=True))


def _live(index: Index, time: tuple[int, int]) -> list[bytes]:
    return [prefix for prefix, ends in index if ends > _seconds(time)]


def _seconds(time: tuple[int, int]) -> float:
    return time[0] + time[1] / 1e6


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
