"""One output item of a response, as it streams."""

from __future__ import annotations

from collections.abc import Callable

from abridge.wire.codec import Json, string
from abridge.wire.responses.contents import Contents
from abridge.wire.responses.frames import Make, changed, frame_of
from abridge.wire.responses.items import is_reasoning, summary_text
from abridge.wire.responses.native import NativeSummary
from abridge.wire.responses.unmask import unmask_item


def _room(_size: int) -> bool:
    return True


class Item:
    """One output item: its beginning, its end, and what was streamed between them."""

    def __init__(
        self,
        number: int,
        added: Json,
        identity: str = "",
        take: Callable[[int], bool] = _room,
        make: Make = frame_of,
    ) -> None:
        self.number = number  # its `output_index` as the client knows it
        self.given = string(added.get("id"))  # upstream's id
        self.id = identity or self.given  # the id that the client knows
        self.kind = string(added.get("type"))
        self.reasoning = is_reasoning(added)
        self.open = True
        self.shut = False  # closed because another item began
        self.split = False  # the beginning or the rest of an item that went on after that
        self.native = NativeSummary(number, self.id, make)
        self.contents = Contents({"item_id": self.id, "output_index": number}, added, take, make)
        # Events of a native summary that may be raw reasoning, which only the item's end tells.
        self.held: list[tuple[Json, bytes | None]] = []
        self.masked = False  # its native summary is the raw reasoning
        self.done: Json | None = None  # the item at its end
        self.added = added  # the item at its beginning

    @property
    def whole(self) -> bool:
        """Return whether the item may be complete, judging by what was streamed."""
        return self.contents.whole

    def goes_on(self, event: Json) -> str:
        """Append the event's text if it is nothing but the next delta of the open content part.

        Return the text, or an empty string. Nearly every event of a stream is such a delta.
        """
        said, text = self.contents, event.get("delta")
        if (
            not said.delta
            or event.get("type") != said.delta
            or event.get("output_index") != self.number
            or event.get("content_index") != said.index
            or event.get("item_id") != self.id
            or not isinstance(text, str)
        ):
            return ""
        said.grow(text)
        return text

    def settle(self, item: Json) -> Json:
        """Return upstream's `item` with the first id and all that was streamed of it."""
        settled = unmask_item(item) if self.masked else item
        settled = {**settled, "id": self.id} if self.id else dict(settled)
        settled = self.contents.settled(settled, exactly=self.split)
        if self.native.texts and not summary_text(item):
            settled["summary"] = self.native.parts()
        return settled

    def as_it_stands(self, status: str) -> Json:
        """Return the item where upstream does not send its end.

        Leave out the opaque state that it was added with, which was provisional.
        """
        added = {key: value for key, value in self.added.items() if key != "encrypted_content"}
        if self.reasoning:
            added["summary"] = []
        return self.settle({**added, "status": status})

    def addressed(self, event: Json, frame: bytes | None) -> bytes | None:
        """Return the event's frame with this item's id and `output_index`."""
        named = event["item"].get("id") if "item" in event else event.get("item_id", self.id)
        if named == self.id and event.get("output_index") == self.number:
            return frame
        return changed(frame, self._address)

    def _address(self, event: Json) -> Json:
        addressed = {**event, "output_index": self.number}
        if "item" in event:
            return {**addressed, "item": {**event["item"], "id": self.id}}
        return {**addressed, "item_id": self.id} if "item_id" in event else addressed
