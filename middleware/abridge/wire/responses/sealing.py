"""Seal the reasoning items of a response.

An item is sent more than once, when it is done and in the final response, with the same blob each
time. So it is sealed once.
"""

from __future__ import annotations

from abridge.wire.codec import Json, string
from abridge.wire.envelope import Envelope, Seal
from abridge.wire.responses.items import raw_text

MOST = 1 << 22
"""Characters of blobs that are stored until a response's end. Items after that get no blob."""


class Blobs:
    """Seals the items of one response.

    An item with only opaque state is not sealed: the client can return that as it is.
    """

    def __init__(self, seal: Seal | None) -> None:
        self._seal = seal
        self._made: dict[int, str] = {}
        self._room = MOST

    def blob(self, number: int, item: Json) -> str:
        """Return the blob of upstream's item with this output index, or an empty string."""
        if self._seal is None or number < 0:
            return ""
        if number not in self._made and self._room > 0 and raw_text(item).strip():
            made = self._seal(Envelope([item], string(item.get("id"))))
            self._room -= len(made)
            self._made[number] = made
        return self._made.get(number, "")
