"""Where what is to be remembered is kept: bytes, for a while, under keyed digests.

What cannot be reached is a miss, and never an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

MOST_ORIGINALS = 4
"""How many conversations may share a turn before the oldest is forgotten."""


class Wanted(NamedTuple):
    """What is looked for at a place: what came after a prefix, or else, if the turn there is
    `unique`, the only thing there is."""

    place: bytes
    prefix: bytes
    unique: bool


class Store(Protocol):
    """`shared`: other processes see it, too. `size` is in bytes, where it is known."""

    @property
    def shared(self) -> bool: ...

    @property
    def size(self) -> int | None: ...

    async def recall(self, wanted: Sequence[Wanted]) -> list[bytes | None]: ...

    async def remember(self, place: bytes, prefix: bytes, value: bytes) -> None:
        """Keep a value; where a place has too many, the oldest goes."""

    async def known(self, marks: Sequence[bytes]) -> list[bool]: ...

    async def mark(self, marks: Sequence[bytes]) -> None: ...

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    async def put(self, values: Mapping[bytes, bytes]) -> None: ...

    async def delete(self, keys: Sequence[bytes]) -> None: ...

    async def aclose(self) -> None: ...
