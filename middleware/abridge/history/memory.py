"""A store in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from cachetools import TTLCache

from abridge.history.store import MOST_ORIGINALS, Wanted

ENTRY = 200
"""Bytes that a value costs beside its own."""

_Entry = tuple[tuple[bytes, bytes], ...]


class Memory:
    """At most `size` bytes of values, each for `ttl` seconds. See `abridge.history.store.Store`."""

    shared = False

    def __init__(self, size: int, ttl: float, time: Callable[[], float] = monotonic) -> None:
        self._values: TTLCache[bytes, _Entry] = TTLCache(size, ttl, timer=time, getsizeof=_size)
        self._marks: TTLCache[bytes, None] = TTLCache(100_000, 24 * ttl, timer=time)

    @property
    def size(self) -> int:
        return int(self._values.currsize)

    async def recall(self, wanted: Sequence[Wanted]) -> list[bytes | None]:
        return [self._recall(one) for one in wanted]

    def _recall(self, wanted: Wanted) -> bytes | None:
        found = self._values.get(wanted.place, ())
        exact = (value for prefix, value in found if prefix == wanted.prefix)
        alone = found[0][1] if wanted.unique and len(found) == 1 else None
        return next(exact, alone)

    async def remember(self, place: bytes, prefix: bytes, value: bytes) -> None:
        others = [entry for entry in self._values.get(place, ()) if entry[0] != prefix]
        self._keep(place, (*others, (prefix, value))[-MOST_ORIGINALS:])

    async def known(self, marks: Sequence[bytes]) -> list[bool]:
        return [mark in self._marks for mark in marks]

    async def mark(self, marks: Sequence[bytes]) -> None:
        for mark in marks:
            self._marks[mark] = None

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._recall(Wanted(key, b"", unique=False)) for key in keys]

    async def put(self, values: Mapping[bytes, bytes]) -> None:
        for key, value in values.items():
            self._keep(key, ((b"", value),))

    async def delete(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            self._values.pop(key, None)

    async def aclose(self) -> None:
        """It is gone with the process."""

    def _keep(self, key: bytes, entry: _Entry) -> None:
        if _size(entry) <= self._values.maxsize:
            self._values[key] = entry


def _size(entry: _Entry) -> int:
    return sum(len(value) + ENTRY for _, value in entry)
