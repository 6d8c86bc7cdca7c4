"""Original reasoning, as upstream sent it and as a store keeps it."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from abridge.apis.json import dumps, loads
from abridge.core.conversation import Json, Turn, is_random_id, without_blanks

TEXT_DIGEST_BYTES = 16
"""Length of a text digest, in bytes."""

NO_REASONING = b"[]"
"""What is remembered of an answer without reasoning: else that of one like it might be found."""


class Original(NamedTuple):
    """Reasoning as upstream sent it."""

    encoded: bytes  # JSON of the reasoning, in upstream's own format
    raw_digest: bytes  # digest of the reasoning's text
    altered: bool  # the client never saw that text

    @classmethod
    def from_reasoning(cls, reasoning: list[Json], raw: str, *, altered: bool) -> Original:
        return cls(dumps(reasoning), digest_text(raw), altered)

    @property
    def is_trace(self) -> bool:
        """True if it only says that there was no reasoning."""
        return self.encoded == NO_REASONING

    def decode(self) -> list[Json]:
        """Return the reasoning, as objects that are the caller's."""
        reasoning: list[Json] = loads(self.encoded)
        return reasoning

    def pack(self) -> bytes:
        return bytes([self.altered]) + self.raw_digest + self.encoded

    @classmethod
    def unpack(cls, packed: bytes) -> Original:
        return cls(
            packed[1 + TEXT_DIGEST_BYTES :],
            packed[1 : 1 + TEXT_DIGEST_BYTES],
            packed[:1] == b"\x01",
        )


NO_ORIGINAL = Original(NO_REASONING, b"\0" * TEXT_DIGEST_BYTES, altered=False)
"""The trace of a turn without reasoning."""


def digest_text(text: str) -> bytes:
    return blake2b(without_blanks(text), digest_size=TEXT_DIGEST_BYTES).digest()


def is_unique(turn: Turn) -> bool:
    """Return whether the turn's calls have random ids, so that no other conversation has it. The
    name of a call within its id is not random, as in Kimi's `functions.look:0`."""
    ids = [call.id.replace(call.name, "") for call in turn.calls]
    return bool(ids) and all(map(is_random_id, ids))
