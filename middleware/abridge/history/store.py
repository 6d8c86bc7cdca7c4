"""Originals that are remembered, in this process.

Each is kept under a key made of everything that says whose it is: tenant, upstream, model and the
assistant's turn; and each knows what preceded it, since the same words may be said twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from cachetools import TTLCache

from abridge.turn.conversation import Turn
from abridge.wire.codec import Json, dumps, loads

MOST_ORIGINALS = 4
"""How many conversations may share a turn before the oldest is forgotten."""

ENTRY = 200
"""Bytes that an original costs beside its own."""

_RUN = re.compile(r"[A-Za-z0-9]+")


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
