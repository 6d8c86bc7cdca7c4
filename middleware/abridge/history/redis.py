"""The store that several replicas share, in Redis or Valkey.

A value is sealed before it leaves the process, and bound to its key: moved to another it does not
open, and so no answer can pass for another's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import TypeVar

from redis.asyncio import Redis as Client

from abridge.history.box import Box
from abridge.history.line import Line
from abridge.history.shelves import Found, Shelves, clear, fetch, fill
from abridge.history.store import LONGER, Wanted, Watch, found_any, unwatched

LARGE = 64 << 10
"""Bytes from which a value is sealed and opened beside the loop, so that no stream waits for it."""

T = TypeVar("T")


class Redis:
    """Keeps values for `ttl` seconds at the other end of `line`, sealed by `box`; one that is too
    large for the box is not kept."""

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
        """Not known: the server may be others', too."""
        return None

    async def recall(self, wanted: Sequence[Wanted]) -> list[bytes | None]:
        return await self._read(
            "recall", len(wanted), lambda client: self._shelves.find(client, wanted)
        )

    async def remember(self, place: bytes, prefix: bytes, value: bytes) -> None:
        key = self._shelves.original(place, prefix)
        sealed = await self._sealed("remember", {key: value})
        if sealed:
            await self._write(
                "remember", lambda client: self._shelves.add(client, place, prefix, sealed[key])
            )

    async def known(self, marks: Sequence[bytes]) -> list[bool]:
        if not marks:
            return []
        tell = self._begin("known")
        keys = [self._shelves.mark(mark) for mark in marks]
        found = await self._line.ask(lambda client: fetch(client, keys))
        known = [value is not None for _, value in found or ()]
        tell("error" if found is None else found_any(known))
        return known or [False] * len(marks)

    async def mark(self, marks: Sequence[bytes]) -> bool:
        values = dict.fromkeys(map(self._shelves.mark, marks), b"")
        if not values:
            return True
        return await self._write("mark", lambda client: fill(client, values, LONGER * self._ttl))

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        where = [self._shelves.value(key) for key in keys]
        return await self._read("get", len(keys), lambda client: fetch(client, where))

    async def put(self, values: Mapping[bytes, bytes]) -> None:
        where = {self._shelves.value(key): value for key, value in values.items()}
        sealed = await self._sealed("put", where)
        if sealed:
            await self._write("put", lambda client: fill(client, sealed, self._ttl))

    async def delete(self, keys: Sequence[bytes]) -> None:
        where = [self._shelves.value(key) for key in keys]
        if where:
            await self._write("delete", lambda client: clear(client, where))

    async def aclose(self) -> None:
        await self._line.aclose()

    async def _read(
        self, operation: str, count: int, work: Callable[[Client], Awaitable[Found]]
    ) -> list[bytes | None]:
        if not count:
            return []
        tell = self._begin(operation)
        found = await self._line.ask(work)
        if found is None:
            tell("error")
            return [None] * count
        values = [await self._opened(key, data) for key, data in found]
        if any(value is None is not data for value, (_, data) in zip(values, found, strict=True)):
            self._line.tell("a value does not open: it was changed, moved, or sealed by others")
            tell("error")
        else:
            tell(found_any(values))
        return values

    async def _write(self, operation: str, work: Callable[[Client], Awaitable[object]]) -> bool:
        tell = self._begin(operation)
        written = await self._line.ask(work) is not None
        tell("ok" if written else "error")
        return written

    def _begin(self, operation: str) -> Callable[[str], None]:
        """To be called with the operation's result."""
        began = perf_counter()
        return lambda result: self._observe(operation, result, perf_counter() - began)

    async def _sealed(self, operation: str, values: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Those that are not too large, by their keys."""
        sealed = {}
        for key, value in values.items():
            if len(value) > self._box.limit:
                self._line.tell("a value is too large to be kept")
                self._observe(operation, "error", 0.0)
            else:
                sealed[key] = await _aside(self._box.lock, value, key)
        return sealed

    async def _opened(self, key: bytes, data: bytes | None) -> bytes | None:
        return None if data is None else await _aside(self._box.unlock, data, key)


async def _aside(function: Callable[[bytes, bytes], T], data: bytes, key: bytes) -> T:
    if len(data) < LARGE:
        return function(data, key)
    return await asyncio.to_thread(function, data, key)
