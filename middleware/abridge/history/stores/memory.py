"""The store of a single process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from time import monotonic
from typing import NamedTuple, TypeVar

from cachetools import TTLCache

from abridge.history.stores.store import (
    ENTRY,
    LONGER,
    MOST_ORIGINALS,
    Wanted,
    Watch,
    found_any,
    unwatched,
)

MOST_MARKS = 100_000

T = TypeVar("T")


class _Value(NamedTuple):
    """A value and the prefix it was remembered after."""

    prefix: bytes
    data: bytes
    expires: float  # on the store's clock, in seconds


class Memory:
    """Holds at most `size` bytes of values, each for `ttl` seconds, and `max_marks` marks. When
    full, it evicts the least recently used."""

    def __init__(
        self,
        size: int,
        ttl: float,
        time: Callable[[], float] = monotonic,
        *,
        observe: Watch = unwatched,
        most_marks: int = MOST_MARKS,
    ) -> None:
        self._ttl = ttl
        self._time = time
        self._observe = observe
        self._values: TTLCache[tuple[str, bytes], tuple[_Value, ...]] = TTLCache(
            size, ttl, timer=time, getsizeof=_cost
        )
        self._marks: TTLCache[bytes, None] = TTLCache(most_marks, LONGER * ttl, timer=time)

    def __bool__(self) -> bool:
        return bool(self._values or self._marks)

    @property
    def size(self) -> int:
        """Bytes in use by values."""
        return int(self._values.currsize)

    async def recall(self, wanted: Sequence[Wanted]) -> list[bytes | None]:
        return self._read("recall", [self._recall(*one) for one in wanted])

    async def remember(self, place: bytes, prefix: bytes, value: bytes) -> None:
        self._keep(("place", place), prefix, value)
        self._wrote("remember", [value])

    async def known(self, marks: Sequence[bytes]) -> list[bool]:
        return self._read("known", [mark in self._marks for mark in marks])

    async def mark(self, marks: Sequence[bytes]) -> bool:
        self._marks.update(dict.fromkeys(marks))
        self._wrote("mark", marks)
        return True

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self._read("get", [self._only(("key", key)) for key in keys])

    async def put(self, values: Mapping[bytes, bytes]) -> None:
        for key, value in values.items():
            self._keep(("key", key), b"", value)
        self._wrote("put", values)

    async def delete(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            self._values.pop(("key", key), None)
        self._wrote("delete", keys)

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""

    def _recall(self, place: bytes, prefix: bytes, unique: bool) -> bytes | None:  # noqa: FBT001
        live = self._live(("place", place))
        for value in live:
            if value.prefix == prefix:
                return value.data
        return live[0].data if unique and len(live) == 1 else None

    def _only(self, at: tuple[str, bytes]) -> bytes | None:
        live = self._live(at)
        return live[0].data if len(live) == 1 else None

    def _live(self, at: tuple[str, bytes]) -> list[_Value]:
        values = self._values.get(at, ())
        now = self._time() if values else 0.0
        return [value for value in values if now < value.expires]

    def _keep(self, at: tuple[str, bytes], prefix: bytes, data: bytes) -> None:
        """Replace the value after that prefix; drop the old one even if it does not fit."""
        kept = [value for value in self._live(at) if value.prefix != prefix]
        new = _Value(prefix, data, self._time() + self._ttl)
        if _cost([new]) <= self._values.maxsize:
            kept = [*kept, new][-MOST_ORIGINALS:]
        while _cost(kept) > self._values.maxsize:
            del kept[0]
        self._values.pop(at, None)
        if kept:
            self._values[at] = tuple(kept)

    def _read(self, operation: str, answers: list[T]) -> list[T]:
        if answers:
            self._observe(operation, found_any(answers), 0.0)
        return answers

    def _wrote(self, operation: str, things: Sized) -> None:
        if things:
            self._observe(operation, "ok", 0.0)


def _cost(values: Iterable[_Value]) -> int:
    return sum(len(value.data) + ENTRY for value in values)
