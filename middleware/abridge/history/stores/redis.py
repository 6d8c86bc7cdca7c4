"""The store that several replicas share, in Redis or Valkey.

A value is sealed before it leaves the process and bound to its key: moved to another key it does
not open, so no answer can pass for another's. Operations on many keys are split into batches, so
that none blocks the server, or this process, for others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TypeAlias, TypeVar

from redis.asyncio import Redis as Client

from abridge.history.box import Box
from abridge.history.stores.line import Line
from abridge.history.stores.shelves import Found, Shelves, clear, fetch, fill
from abridge.history.stores.store import LONGER, Wanted, Watch, found_any, unwatched

PORTION = 128
"""Keys read or written at once."""

LARGE = 64 << 10
"""Bytes from which values are sealed and opened in a thread, so that no stream waits for it."""

T = TypeVar("T")
U = TypeVar("U")

Find: TypeAlias = Callable[[Client, Sequence[T]], Awaitable[Found]]
"""An operation that looks up values."""


class Redis:
    """Stores values for `ttl` seconds on the server of `connection`, sealed by `box`. A value too
    large for the box is not stored."""

    def __init__(
        self,
        line: Line,
        box: Box,
        *,
        ttl: float,
        namespace: str = "abridge",
        observe: Watch = unwatched,
    ) -> None:
        self._line = line
        self._box = box
        self._ttl = ttl
        self._shelves = Shelves(namespace, ttl)
        self._observe = observe

    @property
    def size(self) -> int | None:
        """None: the server may hold the data of others too."""
        return None

    async def recall(self, wanted: Sequence[Wanted]) -> list[bytes | None]:
        return await self._read("recall", wanted, self._shelves.find)

    async def remember(self, place: bytes, prefix: bytes, value: bytes) -> None:
        key = self._shelves.original(place, prefix)
        if sealed := await self._sealed("remember", {key: value}):
            await self._write(
                "remember", lambda client: self._shelves.add(client, place, prefix, sealed[key])
            )

    async def known(self, marks: Sequence[bytes]) -> list[bool]:
        keys = [self._shelves.mark(mark) for mark in marks]
        return [known for some in _portions(keys) for known in await self._known(some)]

    async def mark(self, marks: Sequence[bytes]) -> bool:
        keys = [self._shelves.mark(mark) for mark in marks]
        return await self._fill("mark", dict.fromkeys(keys, b""), LONGER * self._ttl)

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return await self._read("get", [self._shelves.value(key) for key in keys], fetch)

    async def put(self, values: Mapping[bytes, bytes]) -> None:
        where = {self._shelves.value(key): value for key, value in values.items()}
        await self._fill("put", await self._sealed("put", where), self._ttl)

    async def delete(self, keys: Sequence[bytes]) -> None:
        for some in _portions([self._shelves.value(key) for key in keys]):
            await self._write("delete", partial(clear, keys=some))

    async def aclose(self) -> None:
        await self._line.aclose()

    async def _read(self, operation: str, asked: Sequence[T], find: Find[T]) -> list[bytes | None]:
        return [
            answer
            for some in _portions(asked)
            for answer in await self._read_some(operation, some, find)
        ]

    async def _read_some(
        self, operation: str, asked: Sequence[T], find: Find[T]
    ) -> list[bytes | None]:
        tell = self._begin(operation)
        found = await self._line.ask(lambda client: find(client, asked))
        if found is None:
            tell("error")
            return [None] * len(asked)
        values = await _aside(self._opened, found, sum(len(data or b"") for _, data in found))
        if any(value is None is not data for value, (_, data) in zip(values, found, strict=True)):
            self._line.tell("a value does not open: it was changed, moved, or sealed by others")
            tell("error")
        else:
            tell(found_any(values))
        return values

    async def _known(self, keys: Sequence[bytes]) -> list[bool]:
        tell = self._begin("known")
        found = await self._line.ask(lambda client: fetch(client, keys))
        known = [value is not None for _, value in found or ()]
        tell("error" if found is None else found_any(known))
        return known or [False] * len(keys)

    async def _fill(self, operation: str, values: Mapping[bytes, bytes], ttl: float) -> bool:
        for some in _portions(list(values.items())):
            if not await self._write(operation, partial(fill, values=dict(some), ttl=ttl)):
                return False
        return True

    async def _write(self, operation: str, work: Callable[[Client], Awaitable[object]]) -> bool:
        tell = self._begin(operation)
        written = await self._line.ask(work) is not None
        tell("ok" if written else "error")
        return written

    def _begin(self, operation: str) -> Callable[[str], None]:
        """Start timing an operation. Return the function to call with its result."""
        began = perf_counter()
        return lambda result: self._observe(operation, result, perf_counter() - began)

    async def _sealed(self, operation: str, values: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Seal the values that are not too large."""
        fitting = {key: value for key, value in values.items() if len(value) <= self._box.limit}
        if len(fitting) < len(values):
            self._line.tell("a value is too large to be kept")
            self._observe(operation, "error", 0.0)
        return await _aside(self._locked, fitting, sum(map(len, fitting.values())))

    def _locked(self, values: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        return {key: self._box.lock(value, key) for key, value in values.items()}

    def _opened(self, found: Found) -> list[bytes | None]:
        return [data if data is None else self._box.unlock(data, key) for key, data in found]


def _portions(things: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(things), PORTION):
        yield things[start : start + PORTION]


async def _aside(function: Callable[[T], U], given: T, size: int) -> U:
    """Call a function, in a thread if `size` bytes of work would block the loop."""
    return function(given) if size < LARGE else await asyncio.to_thread(function, given)
