"""Original reasoning, as upstream sent it and as a store keeps it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from abridge.turn.conversation import Turn
from abridge.wire.codec import Json, dumps, loads

DIGEST = 16
"""Length of a text digest, in bytes."""

_RUN = re.compile(r"[A-Za-z0-9]+")


@dataclass(slots=True, frozen=True)
class Original:
    """Reasoning as upstream sent it."""

    spelled: bytes  # JSON of the reasoning, in upstream's own format
    raw: bytes  # digest of the reasoning's text
    altered: bool  # the client never saw that text

    @classmethod
    def of(cls, reasoning: list[Json], raw: str, *, altered: bool) -> Original:
        return cls(dumps(reasoning), digest(raw), altered)

    @property
    def reasoning(self) -> list[Json]:
        spelled: list[Json] = loads(self.spelled)
        return spelled

    def pack(self) -> bytes:
        return bytes([self.altered]) + self.raw + self.spelled

    @classmethod
    def unpack(cls, packed: bytes) -> Original:
        return cls(packed[1 + DIGEST :], packed[1 : 1 + DIGEST], packed[:1] == b"\x01")


def digest(text: str) -> bytes:
    return blake2b(text.strip().encode(errors="surrogatepass"), digest_size=DIGEST).digest()


def is_unique(turn: Turn) -> bool:
    """Return whether the turn's calls have random ids, so that no other conversation has it."""
    return bool(turn.calls) and all(is_random(call.id) for call in turn.calls)


@lru_cache(4096)
def is_random(identifier: str) -> bool:
    """Return whether an id is random, unlike `call_0`, which other conversations have too."""
    longest = max(_RUN.findall(identifier), key=len, default="")
    mixed = not (longest.isdigit() or longest.isalpha())
    return (len(longest) >= 9 and mixed) or len(longest) >= 20
