"""Where in Redis a thing is kept, and by which commands.

    <namespace>:o:<place>:<prefix>   an original
    <namespace>:i:<place>            the prefixes at a place, each scored by when its original ends
    <namespace>:v:<key>              any other value
    <namespace>:m:<mark>             a mark, which is empty

The digests are in letters. Each goes by itself when its time is over; times are the server's.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from redis.asyncio import Redis as Client
from redis.exceptions import InvalidResponse

from abridge.history.stores.store import MOST_ORIGINALS, Wanted

Found: TypeAlias = list[tuple[bytes, bytes | None]]
"""Keys, and what is there."""

Index: TypeAlias = list[tuple[bytes, float]]
"""Prefixes, the oldest first, and when their originals end."""


class Shelves:
    """Under a namespace, where originals are kept for `ttl` seconds."""

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
        """The originals that are wanted; for those known by their place alone, in a second trip."""
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
        """Keep an original; the oldest at its place go."""
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
    """Whatever answers is taken at its word only if it has the right form."""
    if not all(isinstance(value, bytes | None) for value in values):
        raise InvalidResponse
    return list(zip(keys, values, strict=True))


def _live(index: Index, time: tuple[int, int]) -> list[bytes]:
    return [prefix for prefix, ends in index if ends > _seconds(time)]


def _seconds(time: tuple[int, int]) -> float:
    return time[0] + time[1] / 1e6


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
