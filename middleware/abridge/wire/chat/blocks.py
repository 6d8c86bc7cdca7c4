"""Write thinking blocks, in which clients keep the state that upstream wants back.

They have LiteLLM's shape: `{"type": "thinking", "thinking", "signature"}` and `{"type":
"redacted_thinking", "data"}`; pieces of one block have the same `index`.
"""

from __future__ import annotations

from abridge.turn.events import Sealed
from abridge.wire.chat.shown import BETWEEN_PARTS
from abridge.wire.codec import Json


class Blocks:
    """Write the blocks of one choice.

    A block without a signature holds a summary that upstream made; next to shown raw reasoning none
    is written. While raw reasoning streams it is not known if it will be signed, so the block of a
    signature has no text; with `with_text` it has the text, too.
    """

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._index = 0
        self._raw: list[str] | None = None
        self._part: int | None = None

    @property
    def index(self) -> int:
        """The index of the next block."""
        return self._index + (self._part is not None)

    def think(self, text: str) -> None:
        """Add a piece of raw reasoning that is shown."""
        self._raw = self._raw or []
        if self._whole:
            self._raw.append(text)

    def summarize(self, part: int, text: str) -> Json:
        """Write a piece of upstream's summary; empty if raw reasoning is shown."""
        if self._raw is not None:
            return {}
        between = BETWEEN_PARTS if self._part not in (None, part) else ""
        self._part = part
        return _blocks({"type": "thinking", "thinking": between + text, "index": self._index})

    def seal(self, event: Sealed) -> Json:
        if not event.signs:
            self.close()
            block = {"type": "redacted_thinking", "data": event.data, "index": self._index}
        else:
            text = "".join(self._raw or ())
            signed = {"thinking": text, "signature": event.data, "index": self._index}
            block = {"type": "thinking", **signed}
        self._index += 1
        self._raw = self._part = None
        return _blocks(block)

    def close(self) -> None:
        """End a stretch."""
        self._index += self._part is not None
        self._raw = self._part = None


def _blocks(block: Json) -> Json:
    return {"thinking_blocks": [block]}
