"""The store of a single process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from time import monotonic
from typing import NamedTuple, TypeVar

from cachetools import TTLCache

from abridge.memory.stores.store import (
    ENTRY_OVERHEAD,
    MARK_TTL_FACTOR,
    MAX_ORIGINALS,
    StoreObserver,
    StoreQuery,
    observe_nothing,
    read_result,
)

MAX_MARKS = 100_000

T = TypeVar("T")


class _Value(NamedTuple):
    """A value and the prefix it was remembered after."""

    prefix: bytes
    data: bytes
    expires: float  # on the store's clock, in seconds


class MemoryStore:
    """Holds at most `size` bytes of values, each for `ttl` seconds, and `max_marks` marks. When
    full, it evicts the least recently used."""

    def __init__(
        self,
        size: int,
        ttl: float,
        time: Callable[[], float] = monotonic,
        *,
        observe: StoreObserver = observe_nothing,
        max_marks: int = MAX_MARKS,
    ) -> None:
        self._ttl = ttl
        self._time = time
        self._observe = observe
        self._values: TTLCache[tuple[str, bytes], tuple[_Value, ...]] = TTLCache(
            size, ttl, timer=time, getsizeof=_size_in_bytes
        )
        self._marks: TTLCache[bytes, None] = TTLCache(max_marks, MARK_TTL_FACTOR * ttl, timer=time)

    def __bool__(self) -> bool:
        return bool(self._values or self._marks)

    @property
    def size(self) -> int:
        """Bytes in use by values."""
        return int(self._values.currsize)

    async def recall(self, queries: Sequence[StoreQuery]) -> list[bytes | None]:
        return self._observe_read("recall", [self._find_original(*query) for query in queries])

    async def remember(self, turn_key: bytes, prefix: bytes, value: bytes) -> None:
        self._set_value(("place", turn_key), prefix, value)
        self._observe_write("remember", [value])

    async def has_marks(self, marks: Sequence[bytes]) -> list[bool]:
        return self._observe_read("known", [mark in self._marks for mark in marks])

    async def add_marks(self, marks: Sequence[bytes]) -> bool:
        self._marks.update(dict.fromkeys(marks))
        self._observe_write("mark", marks)
        return True

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self._observe_read("get", [self._get_value(("key", key)) for key in keys])

    async def put(self, values: Mapping[bytes, bytes]) -> None:
        for key, value in values.items():
            self._set_value(("key", key), b"", value)
        self._observe_write("put", values)

    async def delete(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            self._values.pop(("key", key), None)
        self._observe_write("delete", keys)

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""

    def _find_original(self, turn_key: bytes, prefix: bytes, unique: bool) -> bytes | None:  # noqa: FBT001
        live = self._live_values(("place", turn_key))
        for value in live:
            if value.prefix == prefix:
                return value.data
        return live[0].data if unique and len(live) == 1 else None

    def _get_value(self, key: tuple[str, bytes]) -> bytes | None:
        live = self._live_values(key)
        return live[0].data if len(live) == 1 else None

    def _live_values(self, key: tuple[str, bytes]) -> list[_Value]:
        values = self._values.get(key, ())
        now = self._time() if values else 0.0
        return [value for value in values if now < value.expires]

    def _set_value(self, key: tuple[str, bytes], prefix: bytes, data: bytes) -> None:
        """Replace the value after that prefix; drop the old one even if it does not fit."""
        values = [value for value in self._live_values(key) if value.prefix != prefix]
        new = _Value(prefix, data, self._time() + self._ttl)
        if _size_in_bytes([new]) <= self._values.maxsize:
            values = [*values, new][-MAX_ORIGINALS:]
        while _size_in_bytes(values) > self._values.maxsize:
            del values[0]
        self._values.pop(key, None)
        if values:
            self._values[key] = tuple(values)

    def _observe_read(self, operation: str, results: list[T]) -> list[T]:
        if results:
            self._observe(operation, read_result(results), 0.0)
        return results

    def _observe_write(self, operation: str, written: Sized) -> None:
        if written:
            self._observe(operation, "ok", 0.0)


def _size_in_bytes(values: Iterable[_Value]) -> int:
    return sum(len(value.data) + ENTRY_OVERHEAD for value in values)
