"""Rebuild what upstream sends from what is known of it, where raw reasoning is hidden.

`shapes.py` says what is known. Thinking blocks are kept whole for upstream; the writer shows them.
"""

from __future__ import annotations

from abridge.apis.json import as_object, string
from abridge.apis.messages.shapes import CONTENT_BLOCKS, EVENTS, MESSAGE
from abridge.apis.shapes import DropCount, rebuild
from abridge.core.conversation import Json

BLOCK_EVENTS = ("content_block_start", "content_block_delta", "content_block_stop")

MAX_INDEXES = 8192
"""Indexes of blocks that are remembered. An answer with more of them goes on without the rest of
its blocks."""


class MessageRebuilder:
    """Rebuild the events of one answer, or a whole one.

    Of a block of unknown type nothing is left: neither its beginning and end nor its deltas, even
    those of a known type.
    """

    def __init__(self) -> None:
        self.drops = DropCount()
        self._is_known: dict[int | None, bool] = {}
        """Whether a block's type is known, by its index; of the last one by None, to which belongs
        what names no block that has begun."""

    def rebuild_message(self, message: Json) -> Json:
        """Return a whole message rebuilt. Thinking in its texts is still there."""
        rebuilt: Json = rebuild(message, MESSAGE, self.drops)
        return rebuilt

    def rebuild(self, event: Json) -> Json | None:
        """Return the event rebuilt; None if it, or what it brings, is not understood."""
        kind = string(event.get("type"))
        shape = EVENTS.get(kind)
        if kind in BLOCK_EVENTS and self._is_of_unknown_block(event):
            shape = None
        if shape is None:
            self.drops.drop(event)
            return None
        rebuilt: Json = rebuild(event, shape, self.drops)
        if "delta" in event and "delta" not in rebuilt:
            return None
        has_only_type = as_object(rebuilt.get("delta")).keys() <= {"type"}
        return None if kind == "content_block_delta" and has_only_type else rebuilt

    def _is_of_unknown_block(self, event: Json) -> bool:
        """Return whether an event is about a block of unknown type, from whose start on its index
        stands for it."""
        index = event["index"] if isinstance(event.get("index"), int) else None
        known = self._is_known
        if event["type"] == "content_block_start":
            block_type = string(as_object(event.get("content_block")).get("type"))
            known[None] = block_type in CONTENT_BLOCKS
            if len(known) <= MAX_INDEXES:
                known[index] = known[None]
        return not known.get(index, known.get(None, True)) or len(known) > MAX_INDEXES
