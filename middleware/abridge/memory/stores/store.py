"""The interface of a store: what is remembered between requests.

The key of an original is a digest of everything that identifies its owner and turn: tenant,
upstream, model and the assistant's turn. Each original also has a digest of what preceded it, since
the same text may occur twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

MAX_ORIGINALS = 4
"""Conversations that may share a turn before the oldest is forgotten."""

ENTRY_OVERHEAD = 200
"""Overhead of a stored value, in bytes."""

MARK_TTL_FACTOR = 24
"""Factor by which marks live longer than everything else."""


class StoreQuery(NamedTuple):
    """A lookup: the value after `prefix`, or else, if `unique`, the only value of the turn."""

    turn_key: bytes  # the turn's key
    prefix: bytes
    unique: bool


StoreObserver: TypeAlias = Callable[[str, str, float], None]
"""Called after each operation with its name, its result and the seconds it took. A read results in
`hit` if anything was found, else `miss`; a write in `ok`; either in `error` if it failed."""


def observe_nothing(_operation: str, _result: str, _seconds: float) -> None:
    """Observe nothing."""


def read_result(results: Iterable[object]) -> str:
    """Return the result of an operation that reads."""
    return "miss" if all(result is None or result is False for result in results) else "hit"


class Store(Protocol):
    """Stores bytes for a while under keyed digests, and marks, which are digests only.

    A store that cannot be reached is a miss, never an error. Results are in the order of the
    arguments.
    """

    @property
    def size(self) -> int | None:
        """Bytes in use; None if unknown."""

    async def recall(self, queries: Sequence[StoreQuery]) -> list[bytes | None]: ...

    async def remember(self, turn_key: bytes, prefix: bytes, value: bytes) -> None:
        """Store an original; beyond `MAX_ORIGINALS` for a turn, the oldest is forgotten."""

    async def has_marks(self, marks: Sequence[bytes]) -> list[bool]: ...

    async def add_marks(self, marks: Sequence[bytes]) -> bool:
        """Store marks, for `MARK_TTL_FACTOR` times as long as everything else. Return whether that
        worked."""

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    async def put(self, values: Mapping[bytes, bytes]) -> None: ...

    async def delete(self, keys: Sequence[bytes]) -> None: ...

    async def aclose(self) -> None:
        """Close the connections of the running loop. A later operation opens new ones."""
