"""What is remembered between requests, and where.

Each is kept under a key made of everything that says whose it is: tenant, upstream, model and the
assistant's turn; and each knows what preceded it, since the same words may be said twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

MOST_ORIGINALS = 4
"""How many conversations may share a turn before the oldest is forgotten."""

ENTRY = 200
"""Bytes that an original costs beside its own."""

LONGER = 24
"""A mark is kept for so many times as long as all else."""


class Wanted(NamedTuple):
    """A value that is looked for: the one remembered at `place` after `prefix`, or, if what is at
    that place is `unique`, the only one there is."""

    place: bytes
    prefix: bytes
    unique: bool


Watch: TypeAlias = Callable[[str, str, float], None]
"""Told of each operation by name, its result, and the seconds it took. Who reads has a `hit` where
anything was found, else a `miss`; who writes, `ok`; what went wrong is an `error` in either."""


def unwatched(_operation: str, _result: str, _seconds: float) -> None:
    """Nobody watches."""


def found_any(answers: Iterable[object]) -> str:
    """The result of an operation that reads."""
    return "miss" if all(answer is None or answer is False for answer in answers) else "hit"


class Store(Protocol):
    """Keeps bytes for a while under keyed digests, and marks, which are digests only.

    What cannot be reached is a miss, never an error. Answers come in the order of the questions.
    """

    @property
    def size(self) -> int | None:
        """Bytes in use, where that is known."""

    async def recall(self, wanted: Sequence[Wanted]) -> list[bytes | None]: ...

    async def remember(self, place: bytes, prefix: bytes, value: bytes) -> None:
        """Keep a value; beyond `MOST_ORIGINALS` at a place, the oldest goes."""

    async def known(self, marks: Sequence[bytes]) -> list[bool]: ...

    async def mark(self, marks: Sequence[bytes]) -> bool:
        """Know each of them from now on, and `LONGER` than all else is kept; whether that could be
        had."""

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    async def put(self, values: Mapping[bytes, bytes]) -> None: ...

    async def delete(self, keys: Sequence[bytes]) -> None: ...

    async def aclose(self) -> None:
        """Close what is open on the running loop; a later operation opens anew."""
