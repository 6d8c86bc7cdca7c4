"""The store: what is remembered between requests, for a while, under keyed digests.

`Store` is what callers use. It seals what leaves the process, splits long operations into batches,
reports each, and turns a failure into a miss. `Backend` is what holds the bytes, in this process
(`memory.py`) or on a server that replicas share (`redis.py`).

A backend neither seals nor counts anything. If its keys are text, `KeyNames` names them. If its
server cannot be used, it raises `BackendError`, soon: callers wait for it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from abridge.memory.stores.key_names import KeyNames

if TYPE_CHECKING:
    from abridge.memory.stores.sealing import ValueSealer

MAX_ORIGINALS = 4
"""Conversations that may share a turn before the oldest is forgotten."""

MARK_TTL_FACTOR = 24
"""Factor by which marks live longer than everything else."""

LOG_INTERVAL = 60.0
"""Seconds for which the same problem is not logged again."""

_log = logging.getLogger(__name__)

K = TypeVar("K")

T = TypeVar("T")


class StoreQuery(NamedTuple):
    """A lookup: the value after `prefix`, or else, if `unique`, the only value of the turn."""

    turn_key: bytes
    prefix: bytes
    unique: bool


FoundOriginal: TypeAlias = tuple[bytes, bytes]
"""The prefix that an original was remembered after, and the original. The prefix is another than
the query's if the turn is unique."""

StoreObserver: TypeAlias = Callable[[str, str, float], None]
"""Called after each operation with its name, its result and the seconds it took. A read results in
`hit` if anything was found, else `miss`; a write in `ok`; either in `error` if it failed."""


def observe_nothing(_operation: str, _result: str, _seconds: float) -> None:
    """Observe nothing."""


class BackendError(Exception):
    """The backend cannot be reached, or refuses an operation."""


class Backend(Protocol):
    """Holds bytes until they expire: originals by turn key and prefix, other values by key, and
    marks, which are keys without a value and live `MARK_TTL_FACTOR` times as long.

    Keys are digests of any bytes; the three kinds never collide. No argument is empty. Results are
    in the order of the arguments. Raise `BackendError` for what cannot be done.
    """

    @property
    def name(self) -> str:
        """Its name in the log."""

    @property
    def in_process(self) -> bool:
        """True if nothing leaves this process, so that nothing needs to be sealed."""

    @property
    def batch_size(self) -> int | None:
        """Keys to read or write at once, so that nobody else waits for long; None if it does not
        matter."""

    @property
    def size(self) -> int | None:
        """Bytes in use; None if unknown."""

    def may_hold(self, turn_key: bytes, /) -> bool:
        """Return whether it may have originals of a turn, from any thread and without waiting."""

    async def find_originals(self, queries: Sequence[StoreQuery]) -> list[FoundOriginal | None]: ...

    async def add_original(self, turn_key: bytes, prefix: bytes, value: bytes) -> None:
        """Add or replace an original; beyond `MAX_ORIGINALS` for a turn, forget the oldest."""

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    async def put(self, values: Mapping[bytes, bytes], ttl: float | None = None) -> None:
        """Store values, for `ttl` seconds where that is less than the backend's own time."""

    async def delete(self, keys: Sequence[bytes]) -> None: ...

    async def has_marks(self, marks: Sequence[bytes]) -> list[bool]: ...

    async def add_marks(self, marks: Sequence[bytes]) -> None: ...

    async def aclose(self) -> None:
        """Close the connections of the running loop. A later operation opens new ones."""


class Store:
    """Stores values for a while on a backend, and marks. Values are sealed by `sealer`; one too
    large to be sealed is not stored. Raises ValueError if values would leave the process in the
    clear.

    A store that cannot be reached is a miss, never an error. Results are in the order of the
    arguments.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        sealer: ValueSealer | None = None,
        observe: StoreObserver = observe_nothing,
    ) -> None:
        if sealer is None and not backend.in_process:
            raise ValueError("what leaves the process is sealed; takes a sealer")
        self._backend, self.may_hold = backend, backend.may_hold
        self._sealer = sealer
        self._observe = observe
        self._problems = ProblemLog(_log, backend.name)
        self.is_down = False  # whether the last read found it out of reach

    @property
    def size(self) -> int | None:
        """Bytes in use; None if unknown."""
        return self._backend.size

    def note_miss(self) -> None:
        """Note that nothing is held of what was to be recalled."""
        self._observe("recall", "miss", 0.0)

    async def recall(self, queries: Sequence[StoreQuery]) -> list[bytes | None]:
        return await self._read("recall", queries, self._find_originals, None)

    async def remember(self, turn_key: bytes, prefix: bytes, value: bytes) -> None:
        """Store an original; beyond `MAX_ORIGINALS` for a turn, the oldest is forgotten."""
        values = {(turn_key, prefix): value}
        if self._sealer is not None:
            values = await self._seal(self._sealer, "remember", values, _original_name)
        for fitting in values.values():
            await self._write("remember", self._backend.add_original(turn_key, prefix, fitting))

    async def has_marks(self, marks: Sequence[bytes]) -> list[bool]:
        return await self._read("known", marks, self._backend.has_marks, False)

    async def add_marks(self, marks: Sequence[bytes]) -> bool:
        """Store marks, for `MARK_TTL_FACTOR` times as long as everything else. Return whether that
        worked."""
        return await self._write_all("mark", marks, self._backend.add_marks)

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return await self._read("get", keys, self._get, None)

    async def put(self, values: Mapping[bytes, bytes], ttl: float | None = None) -> bool:
        """Store values, for `ttl` seconds where that is less than the store's own time. Return
        whether the store could be reached."""
        if self._sealer is not None:
            values = await self._seal(self._sealer, "put", values, KeyNames.value)

        def put(keys: Sequence[bytes]) -> Awaitable[None]:
            batch = values if len(keys) == len(values) else {key: values[key] for key in keys}
            return self._backend.put(batch, ttl)

        return await self._write_all("put", list(values), put)

    async def delete(self, keys: Sequence[bytes]) -> bool:
        """Delete values. Return whether the store could be reached."""
        return await self._write_all("delete", keys, self._backend.delete)

    async def aclose(self) -> None:
        """Close the connections of the running loop. A later operation opens new ones."""
        await self._backend.aclose()

    async def _find_originals(self, queries: Sequence[StoreQuery]) -> list[bytes | None]:
        found = await self._backend.find_originals(queries)
        values = [original[1] if original is not None else None for original in found]
        if self._sealer is None:
            return values
        keys = [
            (query.turn_key, original[0] if original is not None else query.prefix)
            for query, original in zip(queries, found, strict=True)
        ]
        return await self._open(self._sealer, keys, values, _original_name)

    async def _get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        values = await self._backend.get(keys)
        if self._sealer is None:
            return values
        return await self._open(self._sealer, keys, values, KeyNames.value)

    async def _open(
        self,
        sealer: ValueSealer,
        keys: Sequence[K],
        values: list[bytes | None],
        name: Callable[[KeyNames, K], bytes],
    ) -> list[bytes | None]:
        """Open values that had left the process. Raises _DamagedError if one does not open."""
        opened = await sealer.open([name(sealer.names, key) for key in keys], values)
        if opened.count(None) > values.count(None):
            self._problems.warn(
                "a value cannot be opened: it was changed, moved, or sealed with other keys"
            )
            raise _DamagedError(opened)
        return opened

    async def _seal(
        self,
        sealer: ValueSealer,
        operation: str,
        values: Mapping[K, bytes],
        name: Callable[[KeyNames, K], bytes],
    ) -> dict[K, bytes]:
        """Seal values that leave the process. Leave out those that are too large."""
        fitting = {key: value for key, value in values.items() if len(value) <= sealer.limit}
        if len(fitting) < len(values):
            self._problems.warn("a value is too large to keep")
            self._observe(operation, "error", 0.0)
        names = [name(sealer.names, key) for key in fitting]
        return dict(zip(fitting, await sealer.seal(names, list(fitting.values())), strict=True))

    def _batches(self, items: Sequence[K]) -> Iterable[Sequence[K]]:
        size = self._backend.batch_size
        if size is None or len(items) <= size:
            return (items,) if items else ()
        return (items[start : start + size] for start in range(0, len(items), size))

    async def _read(
        self,
        operation: str,
        items: Sequence[K],
        read: Callable[[Sequence[K]], Awaitable[list[T]]],
        absent: T,
    ) -> list[T]:
        """Read in batches. Return `absent` for those that cannot be read."""
        results: list[T] = []
        is_down = self.is_down and not items
        for batch in self._batches(items):
            started_at = perf_counter()
            try:
                found = await read(batch)
                result = _read_result(found)
            except _DamagedError as error:
                found, result = error.opened, "error"
            except BackendError:
                found, result, is_down = [absent] * len(batch), "error", True
            self._observe(operation, result, perf_counter() - started_at)
            results += found
        self.is_down = is_down
        return results

    async def _write_all(
        self, operation: str, items: Sequence[K], write: Callable[[Sequence[K]], Awaitable[None]]
    ) -> bool:
        """Write in batches until one fails. Return whether the store could be reached."""
        for batch in self._batches(items):
            if not await self._write(operation, write(batch)):
                return False
        return True

    async def _write(self, operation: str, written: Awaitable[None]) -> bool:
        started_at = perf_counter()
        try:
            await written
            result = "ok"
        except BackendError:
            result = "error"
        self._observe(operation, result, perf_counter() - started_at)
        return result == "ok"


class _DamagedError(Exception):
    """Some of the values found do not open."""

    def __init__(self, opened: list[Any]) -> None:
        self.opened = opened  # all of them, None for those that do not


def _original_name(names: KeyNames, key: tuple[bytes, bytes]) -> bytes:
    return names.original(*key)


def _read_result(found: Iterable[object]) -> str:
    return "miss" if all(value is None or value is False for value in found) else "hit"


class ProblemLog:
    """Logs the problems of the store at `name`, each at most once per interval."""

    def __init__(
        self, log: logging.Logger, name: str, time: Callable[[], float] = monotonic
    ) -> None:
        self._log = log
        self._name = name
        self._time = time
        self._logged_at: dict[str, float] = {}

    def warn(self, problem: str) -> None:
        """Log a problem. The text must not contain what was sent."""
        now = self._time()
        if self._logged_at.get(problem, -LOG_INTERVAL) + LOG_INTERVAL <= now:
            self._logged_at[problem] = now
            self._log.warning("store at %s: %s", self._name, problem)


class OutageLog:
    """Logs when an outage of a server begins, and when it ends: each once. `server` says what it is
    and where, `back` what is said at the end."""

    def __init__(self, log: logging.Logger, server: str, back: str = "reachable again") -> None:
        self._log, self._server, self._back = log, server, back
        self.is_on = False

    def begin(self, problem: str) -> None:
        """Note a failure. The text must not contain what was sent."""
        if not self.is_on:
            self._log.warning("%s: %s", self._server, problem)
        self.is_on = True

    def end(self) -> None:
        """Note a success."""
        if self.is_on:
            self._log.info("%s: %s", self._server, self._back)
        self.is_on = False
