"""Reasoning as upstream told it, to be sealed."""

from __future__ import annotations

from io import StringIO

from abridge.wire.codec import Json
from abridge.wire.responses.items import raw_parts


class Pieces:
    """One stretch of it: an item for each piece that has opaque state, since each signature is for
    its own text, and for what comes after the last. `told`: there is something to read."""

    def __init__(self) -> None:
        self._items: list[Json] = []
        self._said = StringIO()
        self.told = False

    def think(self, text: str) -> None:
        self._said.write(text)
        self.told = self.told or bool(text.strip())

    def seal(self, state: str) -> None:
        """Opaque state of what was said since the last."""
        self._items.append({**self._piece(), "encrypted_content": state})
        self._said = StringIO()

    def items(self, identity: str) -> list[Json]:
        """All of them; the first is known to the client by this id."""
        rest = [self._piece()] if self._said.tell() else []
        first, *others = self._items + rest
        return [{"id": identity, **first}, *others]

    def _piece(self) -> Json:
        texts = filter(None, [self._said.getvalue()])
        return {"type": "reasoning", "summary": [], "content": raw_parts(texts)}
