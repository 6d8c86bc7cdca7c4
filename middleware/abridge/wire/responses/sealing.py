"""The blobs of a response's reasoning items.

An item is told more than once, when it is done and in the final response, and has the same blob
each time: so it is sealed once.
"""

from __future__ import annotations

from abridge.wire.codec import Json, string
from abridge.wire.envelope import Envelope, Seal
from abridge.wire.responses.items import raw_text

MOST = 1 << 22
"""Characters of blobs that are kept until a response's end. What comes after gets none."""


class Blobs:
    """Seals the items of one response. Opaque state alone is nothing to seal: it is the client's to
    return as it is."""

    def __init__(self, seal: Seal | None) -> None:
        self._seal = seal
        self._made: dict[int, str] = {}
        self._room = MOST

    def blob(self, number: int, item: Json) -> str:
        """That of the item with this number, as upstream says it; empty where it has none."""
        if self._seal is None or number < 0:
            return ""
        if number not in self._made and self._room > 0 and raw_text(item).strip():
            made = self._seal(Envelope([item], string(item.get("id"))))
            self._room -= len(made)
            self._made[number] = made
        return self._made.get(number, "")
