"""Put reasoning and summaries into the deltas of a choice."""

from __future__ import annotations

from abridge.turn.conversation import ItemKey
from abridge.turn.events import Opened
from abridge.wire.chat.fields import Fields
from abridge.wire.codec import Json
from abridge.wire.display import Display, Listed

BETWEEN_PARTS = "\n\n"


class Shown:
    """Build the fields of deltas that hold reasoning or a summary.

    A blank line separates the parts of a summary, and the reasoning of several items that goes into
    one field.
    """

    def __init__(self, display: Display) -> None:
        self._details = display.details
        self._raw = display.raw
        self._fields = Fields(display)
        self._upstream: dict[int, str] = {}
        self._item: dict[int, int] = {}
        self._part: dict[int, tuple[int, int]] = {}
        self._count: dict[int, int] = {}

    def open(self, event: Opened) -> None:
        self._upstream[event.lane or 0] = event.field

    def upstream(self, lane: int) -> str:
        """Return the field in which upstream puts the lane's reasoning."""
        return self._upstream.get(lane, "")

    def raw_field(self, lane: int) -> str:
        return self._fields.raw(self.upstream(lane))

    def listed(self, lane: int, name: Listed) -> int:
        """Return how many entries of a list Abridge has written in a lane that had reasoning."""
        details = self._details and name == "reasoning_details"
        return self._raw + self._count.get(lane, -1) + 1 if details else 0

    def raw(self, key: ItemKey, text: str) -> Json:
        lane, item = key
        fresh = self._item.get(lane, item) != item
        self._item[lane] = item
        return self._fields.told(self.raw_field(lane), BETWEEN_PARTS * fresh + text)

    def part(self, key: ItemKey, index: int, text: str) -> Json:
        """Build the delta for a piece of a summary part of an item."""
        lane, item = key
        between = ""
        if self._part.get(lane) != (item, index):
            between = BETWEEN_PARTS if lane in self._part else ""
            self._part[lane] = item, index
            self._count[lane] = self._count.get(lane, -1) + 1
        delta: Json = {self._fields.summary(self.upstream(lane)): between + text}
        if self._details:
            delta["reasoning_details"] = [self._fields.detail(text, self._count[lane])]
        return delta
