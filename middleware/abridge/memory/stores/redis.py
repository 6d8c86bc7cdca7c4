"""The layout of data in Redis, and the commands that read and write it.

    <namespace>:o:<turn key>:<prefix>   an original
    <namespace>:i:<turn key>            its prefixes, each scored by when the original expires
    <namespace>:v:<key>                 any other value
    <namespace>:m:<mark>                a mark, whose value is empty

Digests are written as base64url. Every key expires by itself; times are the server's.

The store that several replicas share, in Redis or Valkey.

A value is sealed before it leaves the process and bound to its key: moved to another key it does
not open, so no answer can pass for another's. Operations on many keys are split into batches, so
that none blocks the server, or this process, for others.
"""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

from redis.asyncio import Redis as Client
from redis.exceptions import InvalidResponse

from abridge.memory.box import Box
from abridge.memory.stores.redis_client import RedisConnection
from abridge.memory.stores.store import (
    MARK_TTL_FACTOR,
    MAX_ORIGINALS,
    StoreObserver,
    StoreQuery,
    observe_nothing,
    read_result,
)

FoundValues: TypeAlias = list[tuple[bytes, bytes | None]]
"""Keys and their values, in the order of the request."""

PrefixIndex: TypeAlias = list[tuple[bytes, float]]
"""Prefixes, oldest first, and when their originals expire."""


class RedisLayout:
    """Keys and commands under a namespace. Originals expire after `ttl` seconds."""

    def __init__(self, namespace: str, ttl: float) -> None:
        self._namespace = namespace.encode()
        self._ttl = ttl

    def original_key(self, turn_key: bytes, prefix: bytes) -> bytes:
        return self._make_key(b"o", turn_key, prefix)

    def value_key(self, key: bytes) -> bytes:
        return self._make_key(b"v", key)

    def mark_key(self, mark: bytes) -> bytes:
        return self._make_key(b"m", mark)

    async def find_originals(self, client: Client, queries: Sequence[StoreQuery]) -> FoundValues:
        """Read the originals of a request. Those identified by their turn alone need a second round
        trip."""
        keys = [self.original_key(query.turn_key, query.prefix) for query in queries]
        turn_keys = list(dict.fromkeys(query.turn_key for query in queries if query.unique))
        pipe = client.pipeline(transaction=False)
        pipe.mget(keys)
        pipe.time()
        for turn_key in turn_keys:
            pipe.zrange(self._index_key(turn_key), 0, -1, withscores=True)
        values, time, *indices = await pipe.execute()
        found = _pair_values(keys, values)
        live = dict(zip(turn_keys, (_live_prefixes(index, time) for index in indices), strict=True))
        others = {
            number: self.original_key(query.turn_key, live[query.turn_key][0])
            for number, query in enumerate(queries)
            if found[number][1] is None and query.unique and len(live[query.turn_key]) == 1
        }
        for number, other in zip(
            others, await get_values(client, list(others.values())), strict=True
        ):
            found[number] = other
        return found

    async def add_original(
        self, client: Client, turn_key: bytes, prefix: bytes, value: bytes
    ) -> object:
        """Write an original; delete the oldest of its turn beyond `MAX_ORIGINALS`."""
        index = self._index_key(turn_key)
        pipe = client.pipeline(transaction=False)
        pipe.time()
        pipe.zrange(index, 0, -1, withscores=True)
        time, members = await pipe.execute()
        others = [other for other in _live_prefixes(members, time) if other != prefix]
        kept_prefixes = {prefix, *others[1 - MAX_ORIGINALS :]}
        removed = [member for member, _ in members if member not in kept_prefixes]

        pipe = client.pipeline(transaction=True)
        if removed:
            pipe.zrem(index, *removed)
            pipe.delete(*(self.original_key(turn_key, other) for other in removed))
        pipe.set(self.original_key(turn_key, prefix), value, px=_to_milliseconds(self._ttl))
        pipe.zadd(index, {prefix: _to_seconds(time) + self._ttl})
        pipe.pexpire(index, _to_milliseconds(self._ttl))
        return await pipe.execute()

    def _index_key(self, turn_key: bytes) -> bytes:
        return self._make_key(b"i", turn_key)

    def _make_key(self, kind: bytes, *digests: bytes) -> bytes:
        encoded = (urlsafe_b64encode(digest).rstrip(b"=") for digest in digests)
        return b":".join([self._namespace, kind, *encoded])


async def get_values(client: Client, keys: Sequence[bytes]) -> FoundValues:
    if not keys:
        return []
    pipe = client.pipeline(transaction=False)
    pipe.mget(keys)
    (values,) = await pipe.execute()
    return _pair_values(keys, values)


async def set_values(client: Client, values: Mapping[bytes, bytes], ttl: float) -> object:
    pipe = client.pipeline(transaction=False)
    for key, value in values.items():
        pipe.set(key, value, px=_to_milliseconds(ttl))
    return await pipe.execute()


async def delete_keys(client: Client, keys: Iterable[bytes]) -> object:
    pipe = client.pipeline(transaction=False)
    pipe.delete(*keys)
    return await pipe.execute()


def _pair_values(keys: Sequence[bytes], values: Any) -> FoundValues:
    """Pair keys with values. Raise InvalidResponse if the server replied with something else."""
    if not all(isinstance(value, bytes | None) for value in values):
        raise InvalidResponse
    return list(zip(keys, values, strict=True))


def _live_prefixes(index: PrefixIndex, time: tuple[int, int]) -> list[bytes]:
    return [prefix for prefix, expires in index if expires > _to_seconds(time)]


def _to_seconds(time: tuple[int, int]) -> float:
    return time[0] + time[1] / 1e6


def _to_milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


BATCH_SIZE = 128
"""Keys read or written at once."""

THREAD_BYTES = 64 << 10
"""Bytes from which values are sealed and opened in a thread, so that no stream waits for it."""

T = TypeVar("T")

U = TypeVar("U")

FindValues: TypeAlias = Callable[[Client, Sequence[T]], Awaitable[FoundValues]]
"""An operation that looks up values."""


class RedisStore:
    """Stores values for `ttl` seconds on the server of `connection`, sealed by `box`. A value too
    large for the box is not stored."""

    def __init__(
        self,
        connection: RedisConnection,
        box: Box,
        *,
        ttl: float,
        namespace: str = "abridge",
        observe: StoreObserver = observe_nothing,
    ) -> None:
        self._connection = connection
        self._box = box
        self._ttl = ttl
        self._layout = RedisLayout(namespace, ttl)
        self._observe = observe

    @property
    def size(self) -> int | None:
        """None: the server may hold the data of others too."""
        return None

    async def recall(self, queries: Sequence[StoreQuery]) -> list[bytes | None]:
        return await self._read("recall", queries, self._layout.find_originals)

    async def remember(self, turn_key: bytes, prefix: bytes, value: bytes) -> None:
        key = self._layout.original_key(turn_key, prefix)
        if sealed := await self._seal_fitting("remember", {key: value}):
            await self._write(
                "remember",
                lambda client: self._layout.add_original(client, turn_key, prefix, sealed[key]),
            )

    async def has_marks(self, marks: Sequence[bytes]) -> list[bool]:
        keys = [self._layout.mark_key(mark) for mark in marks]
        return [
            is_known for batch in _batches(keys) for is_known in await self._has_marks_batch(batch)
        ]

    async def add_marks(self, marks: Sequence[bytes]) -> bool:
        keys = [self._layout.mark_key(mark) for mark in marks]
        return await self._set_values("mark", dict.fromkeys(keys, b""), MARK_TTL_FACTOR * self._ttl)

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return await self._read("get", [self._layout.value_key(key) for key in keys], get_values)

    async def put(self, values: Mapping[bytes, bytes]) -> None:
        by_key = {self._layout.value_key(key): value for key, value in values.items()}
        await self._set_values("put", await self._seal_fitting("put", by_key), self._ttl)

    async def delete(self, keys: Sequence[bytes]) -> None:
        for batch in _batches([self._layout.value_key(key) for key in keys]):
            await self._write("delete", partial(delete_keys, keys=batch))

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def _read(
        self, operation: str, queries: Sequence[T], find: FindValues[T]
    ) -> list[bytes | None]:
        return [
            answer
            for batch in _batches(queries)
            for answer in await self._read_batch(operation, batch, find)
        ]

    async def _read_batch(
        self, operation: str, queries: Sequence[T], find: FindValues[T]
    ) -> list[bytes | None]:
        report = self._start_timer(operation)
        found = await self._connection.run(lambda client: find(client, queries))
        if found is None:
            report("error")
            return [None] * len(queries)
        values = await _run_off_loop(
            self._unseal_values, found, sum(len(data or b"") for _, data in found)
        )
        if any(value is None is not data for value, (_, data) in zip(values, found, strict=True)):
            self._connection.log_problem(
                "a value does not open: it was changed, moved, or sealed by others"
            )
            report("error")
        else:
            report(read_result(values))
        return values

    async def _has_marks_batch(self, keys: Sequence[bytes]) -> list[bool]:
        report = self._start_timer("known")
        found = await self._connection.run(lambda client: get_values(client, keys))
        known = [value is not None for _, value in found or ()]
        report("error" if found is None else read_result(known))
        return known or [False] * len(keys)

    async def _set_values(self, operation: str, values: Mapping[bytes, bytes], ttl: float) -> bool:
        for batch in _batches(list(values.items())):
            if not await self._write(operation, partial(set_values, values=dict(batch), ttl=ttl)):
                return False
        return True

    async def _write(self, operation: str, command: Callable[[Client], Awaitable[object]]) -> bool:
        report = self._start_timer(operation)
        written = await self._connection.run(command) is not None
        report("ok" if written else "error")
        return written

    def _start_timer(self, operation: str) -> Callable[[str], None]:
        """Start timing an operation. Return the function to call with its result."""
        started_at = perf_counter()
        return lambda result: self._observe(operation, result, perf_counter() - started_at)

    async def _seal_fitting(
        self, operation: str, values: Mapping[bytes, bytes]
    ) -> dict[bytes, bytes]:
        """Seal the values that are not too large."""
        fitting = {key: value for key, value in values.items() if len(value) <= self._box.limit}
        if len(fitting) < len(values):
            self._connection.log_problem("a value is too large to be kept")
            self._observe(operation, "error", 0.0)
        return await _run_off_loop(self._seal_values, fitting, sum(map(len, fitting.values())))

    def _seal_values(self, values: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        return {key: self._box.seal(value, key) for key, value in values.items()}

    def _unseal_values(self, found: FoundValues) -> list[bytes | None]:
        return [data if data is None else self._box.unseal(data, key) for key, data in found]


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), BATCH_SIZE):
        yield items[start : start + BATCH_SIZE]


async def _run_off_loop(function: Callable[[T], U], argument: T, size: int) -> U:
    """Call a function, in a thread if `size` bytes of work would block the loop."""
    return (
        function(argument) if size < THREAD_BYTES else await asyncio.to_thread(function, argument)
    )
