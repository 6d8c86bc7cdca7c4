"""Collect reasoning as upstream sent it, for an envelope."""

from __future__ import annotations

from io import StringIO

from abridge.wire.codec import Json
from abridge.wire.responses.items import raw_parts


class Pieces:
    """Collects one stretch of reasoning.

    Make an item of each piece of text that opaque state belongs to, since each signature is for its
    own text, and one of the text after the last.
    """

    def __init__(self) -> None:
        self._items: list[Json] = []
        self._said = StringIO()
        self.told = False  # there is text that can be read

    def think(self, text: str) -> None:
        self._said.write(text)
        self.told = self.told or bool(text.strip())

    def seal(self, state: str) -> None:
        """Add opaque state, which belongs to the text since the last one."""
        self._items.append({**self._piece(), "encrypted_content": state})
        self._said = StringIO()

    def items(self, identity: str) -> list[Json]:
        """Return all items. The first gets this id, which the client knows."""
        rest = [self._piece()] if self._said.tell() else []
        first, *others = self._items + rest
        return [{"id": identity, **first}, *others]

    def _piece(self) -> Json:
        texts = filter(None, [self._said.getvalue()])
        return {"type": "reasoning", "summary": [], "content": raw_parts(texts)}
