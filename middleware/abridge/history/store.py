"""What is remembered between requests, and where.

Each is kept under a key made of everything that says whose it is: tenant, upstream, model and the
assistant's turn; and each knows what preceded it, since the same words may be said twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple, Protocol, TypeAlias

from cachetools import TTLCache

from abridge.turn.conversation import Turn
from abridge.wire.codec import Json, dumps, loads

MOST_ORIGINALS = 4
"""How many conversations may share a turn before the oldest is forgotten."""

ENTRY = 200
"""Bytes that an original costs beside its own."""

LONGER = 24
"""A mark is kept for so many times as long as all else."""

_RUN = re.compile(r"[A-Za-z0-9]+")


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

    async def mark(self, marks: Sequence[bytes]) -> None:
        """Know each of them from now on, and `LONGER` than all else is kept."""

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    async def put(self, values: Mapping[bytes, bytes]) -> None: ...

    async def delete(self, keys: Sequence[bytes]) -> None: ...

    async def aclose(self) -> None:
        """Close what is open on the running loop; a later operation opens anew."""


@dataclass(slots=True, frozen=True)
class Original:
    """Reasoning in upstream's spelling. `raw` is a digest of its text; `altered`: the client never
    saw that text."""

    prefix: bytes
    spelled: bytes
    raw: bytes
    altered: bool

    def reasoning(self) -> list[Json]:
        spelled: list[Json] = loads(self.spelled)
        return spelled


class Memory:
    """At most `size` bytes of originals, each for `ttl` seconds."""

    def __init__(self, size: int, ttl: float, time: Callable[[], float] = monotonic) -> None:
        self._originals: TTLCache[bytes, tuple[Original, ...]] = TTLCache(
            size, ttl, timer=time, getsizeof=_size
        )

    def __bool__(self) -> bool:
        return bool(self._originals)

    @property
    def size(self) -> int:
        """Bytes in use."""
        return int(self._originals.currsize)

    def remember(self, place: bytes, original: Original) -> None:
        """Keep an original; the oldest go when there is no room."""
        others = self._originals.get(place, ())
        kept = (*(other for other in others if other.prefix != original.prefix), original)
        if _size(kept[-MOST_ORIGINALS:]) <= self._originals.maxsize:
            self._originals[place] = kept[-MOST_ORIGINALS:]

    def recall(self, place: bytes, prefix: bytes, turn: Turn) -> Original | None:
        """The original after the same prefix, or the only one there is, where the turn cannot be
        another's, its call ids being random."""
        found = self._originals.get(place, ())
        for original in found:
            if original.prefix == prefix:
                return original
        unique = turn.calls and all(is_random(call.id) for call in turn.calls)
        return found[0] if unique and len(found) == 1 else None


def spell(reasoning: list[Json]) -> bytes:
    return dumps(reasoning)


def is_random(identifier: str) -> bool:
    """Whether an id is not one that another conversation would have too, as `call_0` is."""
    longest = max(_RUN.findall(identifier), key=len, default="")
    mixed = not (longest.isdigit() or longest.isalpha())
    return (len(longest) >= 9 and mixed) or len(longest) >= 20


def _size(originals: tuple[Original, ...]) -> int:
    return sum(len(original.spelled) + ENTRY for original in originals)
