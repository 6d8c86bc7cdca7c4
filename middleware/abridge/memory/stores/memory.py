"""The store of a single process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import NamedTuple

from cachetools import Cache, TTLCache

from abridge.caches import MARKS
from abridge.memory.stores.store import (
    MARK_TTL_FACTOR,
    MAX_ORIGINALS,
    FoundOriginal,
    Store,
    StoreObserver,
    StoreQuery,
    observe_nothing,
)

KEY_OVERHEAD = 500
"""Bytes of memory that a key takes beside its values: its digest, and its place in the cache."""

VALUE_OVERHEAD = 200
"""Bytes of memory that a value takes beside its own: its prefix, its expiry, the objects."""


class _Value(NamedTuple):
    """A value and the prefix it was remembered after."""

    prefix: bytes
    data: bytes
    expires: float  # on the backend's clock, in seconds


class MemoryBackend:
    """Holds values of at most `size` bytes of memory for `ttl` seconds each, and `max_marks` marks.
    When full, it evicts the least recently used."""

    name = "memory"
    in_process = True
    batch_size = None

    def __init__(
        self,
        size: int,
        ttl: float,
        time: Callable[[], float] = monotonic,
        *,
        max_marks: int = MARKS,
    ) -> None:
        self._ttl = ttl
        self._time = time
        self._values: TTLCache[tuple[str, bytes], tuple[_Value, ...]] = TTLCache(
            size, ttl, timer=time, getsizeof=_size_in_bytes
        )
        self._marks: TTLCache[bytes, None] = TTLCache(max_marks, MARK_TTL_FACTOR * ttl, timer=time)

    @property
    def size(self) -> int:
        """Bytes in use by values."""
        return int(self._values.currsize)

    def may_hold(self, turn_key: bytes) -> bool:
        return Cache.__contains__(self._values, ("original", turn_key))  # expired or not

    async def find_originals(self, queries: Sequence[StoreQuery]) -> list[FoundOriginal | None]:
        with self._values.timer as now:  # else each lookup asks for the time again and again
            return [self._find_original(*query, now) for query in queries]

    async def add_original(self, turn_key: bytes, prefix: bytes, value: bytes) -> None:
        self._set_value(("original", turn_key), prefix, value)

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        with self._values.timer as now:
            return [self._get_value(key, now) for key in keys]

    async def put(self, values: Mapping[bytes, bytes], ttl: float | None = None) -> None:
        for key, value in values.items():
            self._set_value(("value", key), b"", value, ttl)

    async def delete(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            self._values.pop(("value", key), None)

    async def has_marks(self, marks: Sequence[bytes]) -> list[bool]:
        return [mark in self._marks for mark in marks]

    async def add_marks(self, marks: Sequence[bytes]) -> None:
        self._marks.update(dict.fromkeys(marks))

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""

    def _find_original(
        self,
        turn_key: bytes,
        prefix: bytes,
        unique: bool,  # noqa: FBT001
        now: float,
    ) -> FoundOriginal | None:
        values = self._read(("original", turn_key))
        for value in values:
            if value.prefix == prefix and now < value.expires:
                return prefix, value.data
        live = [value for value in values if now < value.expires] if unique else ()
        return (live[0].prefix, live[0].data) if len(live) == 1 else None

    def _get_value(self, key: bytes, now: float) -> bytes | None:
        values = self._read(("value", key))
        return values[0].data if values and now < values[0].expires else None

    def _read(self, key: tuple[str, bytes]) -> tuple[_Value, ...]:
        """Return the values under a key, while the time stands still: one that is in does not
        expire before it is taken."""
        return self._values[key] if key in self._values else ()  # noqa: SIM401 -- in half the time

    def _set_value(
        self, key: tuple[str, bytes], prefix: bytes, data: bytes, ttl: float | None = None
    ) -> None:
        """Replace the value after that prefix; drop the old one even if it does not fit."""
        now = self._time()
        before = self._values.get(key, ())
        values = [value for value in before if now < value.expires and value.prefix != prefix]
        value = _Value(prefix, data, now + (self._ttl if ttl is None else min(ttl, self._ttl)))
        if _size_in_bytes([value]) <= self._values.maxsize:
            values.append(value)
            del values[:-MAX_ORIGINALS]
        while values and _size_in_bytes(values) > self._values.maxsize:
            del values[0]
        self._values.pop(key, None)
        if values:
            self._values[key] = tuple(values)


class MemoryStore(Store):
    """A store over a `MemoryBackend`, which takes the same arguments."""

    def __init__(
        self,
        size: int,
        ttl: float,
        time: Callable[[], float] = monotonic,
        *,
        observe: StoreObserver = observe_nothing,
        max_marks: int = MARKS,
    ) -> None:
        super().__init__(MemoryBackend(size, ttl, time, max_marks=max_marks), observe=observe)


def _size_in_bytes(values: Sequence[_Value]) -> int:
    return KEY_OVERHEAD + sum([len(value.data) + VALUE_OVERHEAD for value in values])
