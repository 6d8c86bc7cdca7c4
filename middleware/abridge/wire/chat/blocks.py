"""Thinking blocks, in which clients keep what upstream wants back with its reasoning.

LiteLLM's shape: `{"type": "thinking", "thinking", "signature"}` and `{"type": "redacted_thinking",
"data"}`, pieces of one under the same `index` (LLM-06, LLM-07).
"""

from __future__ import annotations

from abridge.turn.events import Sealed
from abridge.wire.chat.shown import BETWEEN_PARTS
from abridge.wire.codec import Json


class Blocks:
    """Those of one choice.

    A block without a signature is a summary that upstream made, and is not needed beside the
    reasoning itself. Of reasoning that is shown nobody knows, while it streams, whether it will be
    signed: then the signature stands alone. With `whole` true its block has the text, too.
    """

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._index = 0
        self._raw: list[str] | None = None
        self._part: int | None = None

    @property
    def index(self) -> int:
        """That of the block after those that were told."""
        return self._index + (self._part is not None)

    def think(self, text: str) -> None:
        """A piece of reasoning that is shown."""
        self._raw = self._raw or []
        if self._whole:
            self._raw.append(text)

    def summarize(self, part: int, text: str) -> Json:
        """A piece of upstream's own summary; what is to be said beside it."""
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
        """A stretch ends."""
        self._index += self._part is not None
        self._raw = self._part = None


def _blocks(block: Json) -> Json:
    return {"thinking_blocks": [block]}
