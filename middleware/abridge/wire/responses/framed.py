"""Read a stream's items for clients of the same API, and put the answer's items in order too.

An item of the answer that is still open when the next begins is closed then, if it is a message or
a call with complete arguments. No other type shows whether it is complete, so the events that
follow are queued until it is done. llama.cpp's server ends no item before the whole answer is sent
(ggml-org/llama.cpp tools/server/server-task.cpp).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from abridge.turn.events import Event, Other, Said
from abridge.wire.codec import Json, string
from abridge.wire.responses.contents import Piece
from abridge.wire.responses.frames import changed
from abridge.wire.responses.item import Item
from abridge.wire.responses.itemreader import ItemReader
from abridge.wire.responses.items import LANE
from abridge.wire.responses.output import unnamed
from abridge.wire.responses.spelling import STAGES, TEXT, Spelling, spelling_in, text_in, unsaid


class _Waiting(NamedTuple):
    kind: str
    event: Json
    frame: bytes | None
    came: int


class FramedItems(ItemReader):
    """Reads the items of one response into framed events."""

    def __init__(self, limit: int, *, hidden: bool) -> None:
        super().__init__(limit, hidden=hidden)
        self.answer: Item | None = None  # the item of the answer that is added and not done
        self._waiting: list[_Waiting] = []  # events of later items

    def more(self, event: Json, frame: bytes | None) -> Event | None:
        item = self.answer
        if item is None:
            return super().more(event, frame)
        if self._waiting or not (text := item.goes_on(event)):
            return None
        return Said(LANE, frame, text if event["type"] == TEXT.delta else "")

    def read(self, kind: str, event: Json, frame: bytes | None) -> list[Event]:
        item = self.answer
        if item is None:
            return super().read(kind, event, frame)
        if not self._waits(item, event):
            return super().read(kind, event, frame)
        if self.output.take(self.came):
            self._waiting.append(_Waiting(kind, event, frame, self.came))
            return []
        return [*self._shut(), *self._release(), *self.read(kind, event, frame)]

    def finish(self, status: str) -> list[Event]:
        events = self.close(status)
        while self.answer is not None:
            events += [*self._shut(status), *self._release(), *self.close(status)]
        return events

    def break_off(self) -> list[Event]:
        released = list[Event]()
        while self._waiting:
            released += [*self._shut("incomplete"), *self._release()]
        return [*released, *super().break_off()]

    # Order

    def _waits(self, item: Item, event: Json) -> bool:
        """Return whether the event is about a later item, and this one may not be complete."""
        about = self._about(event)
        if about is item or (about is not None and not (about.open or about.shut)):
            return False
        addressed = "item" in event or "item_id" in event or "output_index" in event
        return addressed and (bool(self._waiting) or not item.whole)

    def _about(self, event: Json) -> Item | None:
        item = event.get("item")
        if isinstance(item, dict):
            return self._ending(item, event.get("output_index"))
        return self._named(event)

    def _named(self, event: Json) -> Item | None:
        """Find the event's item. An unknown id is the open answer's, if the content fits it."""
        item, answer = super()._named(event), self.answer
        if item is not None or answer is None or self._waiting:
            return item
        if spelling_in(event, answer.kind) is None:
            return None
        self.output.name(answer, event.get("item_id"))
        return answer

    def _begin(self, item: Item, frame: bytes | None) -> list[Event]:
        ended = self._shut()
        if not item.reasoning:
            self.answer = item
            if unsaid(item.added) != item.added:
                frame = changed(frame, lambda event: {**event, "item": unsaid(event["item"])})
        return [*ended, *super()._begin(item, frame)]

    def _shut(self, status: str = "completed") -> list[Event]:
        """Close the open item of the answer because others follow, or the response ends."""
        item, self.answer = self.answer, None
        if item is None:
            return []
        rest = self._said(item.contents.complete(item.added))
        item.open, item.shut = False, True
        item.done = item.as_it_stands(status)
        fields = {"output_index": item.number, "item": item.done}
        return [*rest, Other(LANE, self.make("response.output_item.done", fields))]

    def _release(self) -> list[Event]:
        """Read the queued events."""
        waiting, self._waiting = self._waiting, []
        events = list[Event]()
        came = self.came
        for kind, event, frame, self.came in waiting:
            events += self.read(kind, event, frame)
        self.came = came
        return events

    # Content

    def _other(self, event: Json, frame: bytes | None, text: str = "") -> list[Event]:
        item = self._named(event)
        if item is None and (spelling := spelling_in(event, "message")) is not None:
            return self._say_unannounced(event, spelling, frame)
        if item is None and string(event.get("type")) in STAGES:
            return self.fault()  # of an unknown call; its end repeats the arguments
        if item is None or item.reasoning:
            return super()._other(event, frame, text)
        if (spelling := spelling_in(event, item.kind)) is not None:
            return self._say(item, event, spelling, frame)
        return super()._other(event, frame, text) if item.open else self.fault()

    def _say_unannounced(self, event: Json, spelling: Spelling, frame: bytes | None) -> list[Event]:
        """Read text of an unknown item as a message that was not announced."""
        if not text_in(event, spelling):
            return self.fault()
        said: Json = {"id": event.get("item_id"), "type": "message", "role": "assistant"}
        item = self.output.add(said, event.get("output_index"))
        return [*self._announce(item), *self._say(item, event, spelling, frame)]

    def _say(self, item: Item, event: Json, spelling: Spelling, frame: bytes | None) -> list[Event]:
        opening = list[Event]()
        if item.shut and spelling.wrapped and STAGES[event["type"]] == "delta":
            item = self.output.resume(item)
            opening = self._announce(item)
        pieces = item.contents.read(event, spelling, frame) if item.open else None
        if pieces is None:
            return self.fault()
        events = [*opening, *self._said(pieces)]
        if self._waiting and item.whole:
            events += [*self._shut(), *self._release()]
        return events

    def _said(self, pieces: Iterable[Piece]) -> list[Event]:
        return [
            Said(LANE, piece.frame, piece.text if piece.spelling is TEXT else "")
            if piece.stage == "delta"
            else Other(LANE, piece.frame)
            for piece in pieces
        ]

    # End

    def _ending(self, done: Json, index: Any) -> Item | None:
        """Find the item that this one ends; without id and index, the open one of its type."""
        item = super()._ending(done, index)
        same = self.answer is not None and self.answer.kind == done.get("type")
        return self.answer if item is None and same and unnamed(done, index) else item

    def _missed(self, done: Json, index: Any) -> tuple[Item, list[Event]]:
        item = self.output.add(unsaid(done), index)
        return item, self._announce(item)

    def _finish(self, item: Item, event: Json, frame: bytes | None) -> list[Event]:
        if item.reasoning:
            return super()._finish(item, event, frame)
        rest = self._said(item.contents.complete(event["item"]))
        self.answer = None
        return [*rest, *super()._finish(item, event, frame), *self._release()]
