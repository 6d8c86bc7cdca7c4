"""Read the stream events that concern an output item.

A reasoning item that is still open when the next item begins is closed then. Its later events, like
all events out of order, are counted as faults and dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from abridge.turn.events import Closed, Event, Native, Opened, Other, Raw, Said
from abridge.wire.codec import Json, string
from abridge.wire.responses.contents import Piece
from abridge.wire.responses.frames import Make, changed, frame_of, no_frame
from abridge.wire.responses.item import Item
from abridge.wire.responses.items import LANE, is_reasoning, raw_text, summary_text, unknown_keys
from abridge.wire.responses.native import ADDED
from abridge.wire.responses.native import KINDS as NATIVE
from abridge.wire.responses.output import Output, identity, unnamed
from abridge.wire.responses.spelling import says_reasoning, spelling_in, text_in, unsaid
from abridge.wire.responses.unmask import is_masked, unmask_event

_Method = Callable[["ItemReader", Json, bytes | None], list[Event]]


class ItemReader:
    """Reads the items of one response."""

    def __init__(self, limit: int, *, hidden: bool, make: Make = frame_of) -> None:
        self.output = Output(limit, make)
        self.make = make  # makes frames for events that upstream left out
        self.came = 0  # bytes of the frame that is being read
        self._hidden = hidden
        self.open: Item | None = None  # the reasoning item that is added and not done
        self.dropped = 0
        self.faults = 0

    def more(self, event: Json, frame: bytes | None) -> Event | None:
        """Read an event that is nothing but the next delta; return None for any other.

        Give the result of `read` in a fraction of the time.
        """
        item = self.open
        if item is None or not (text := item.goes_on(event)):
            return None
        return Raw(LANE, frame, item.number, text)

    def read(self, kind: str, event: Json, frame: bytes | None) -> list[Event]:
        read = self._READ.get(kind)
        return read(self, event, frame) if read else self._other(event, frame)

    def finish(self, status: str) -> list[Event]:
        """Close the open items at the end of the response."""
        return self.close(status)

    def fault(self) -> list[Event]:
        self.faults += 1
        return []

    def whole(self, number: int, item: Json) -> list[Event]:
        """Read an item of a response that is not streamed."""
        if not is_reasoning(item):
            return [Said(LANE, None, raw_text(item))]
        opening = Opened(LANE, None, number)
        return [opening, *self.complete(Item(number, item, make=no_frame), item, None)]

    def _added(self, event: Json, frame: bytes | None) -> list[Event]:
        added, index = event.get("item"), event.get("output_index")
        if not isinstance(added, dict):
            return [Other(LANE, frame)]
        if self.output.has(added, index):
            return self.fault()
        item = self.output.add(added, index)
        return self._begin(item, item.addressed(event, frame))

    def _begin(self, item: Item, frame: bytes | None) -> list[Event]:
        """Begin an item, and close the open one."""
        closing = self.close()
        if not item.reasoning:
            return [*closing, Other(LANE, frame)]
        self.open = item
        return [*closing, Opened(LANE, frame, item.number)]

    def close(self, status: str = "completed") -> list[Event]:
        """Close the open reasoning item, if there is one."""
        item = self.open
        if item is None:
            return []
        told = self._let_go(item)
        item.done = item.as_it_stands(status)
        fields = {"output_index": item.number, "item": item.done}
        frame = self.make("response.output_item.done", fields)
        return [*told, *self.complete(item, item.done, frame)]

    def break_off(self) -> list[Event]:
        """Mark the open item as incomplete because the stream broke, and close its summary."""
        if self.open is None:
            return []
        closing = self.open.native.close()
        self.open.done = self.open.as_it_stands("incomplete")
        return [*closing]

    def _done(self, event: Json, frame: bytes | None) -> list[Event]:
        done, index = event.get("item"), event.get("output_index")
        if not isinstance(done, dict):
            return [Other(LANE, frame)]
        item, opening = self._ending(done, index), list[Event]()
        if item is None:
            item, opening = self._missed(done, index)
        if item.reasoning != is_reasoning(done):
            return self.fault()
        if item.open:
            return [*opening, *self._finish(item, event, frame)]
        self._keep(item, item.settle(done))
        return self.fault()

    def _finish(self, item: Item, event: Json, frame: bytes | None) -> list[Event]:
        done: Json = event["item"]
        item.masked = not item.native.texts and is_masked(done)
        told, settled = self._let_go(item), item.settle(done)
        self._keep(item, settled)
        if settled != done:
            frame = changed(frame, lambda event: {**event, "item": item.settle(event["item"])})
        frame = item.addressed(event, frame)
        if item.reasoning:
            return [*told, *self.complete(item, settled, frame)]
        item.open = False
        return [Other(LANE, frame)]

    def _keep(self, item: Item, done: Json) -> None:
        if self.output.take(self.came):
            item.done = done

    def _ending(self, done: Json, index: Any) -> Item | None:
        """Find the item that this one ends, if it was added."""
        item = self.output.find(identity(done), index)
        return self.open if item is None and is_reasoning(done) and unnamed(done, index) else item

    def _missed(self, done: Json, index: Any) -> tuple[Item, list[Event]]:
        """Add an item whose beginning upstream left out."""
        item = self.output.add(unsaid(done), index)
        return item, self._announce(item) if item.reasoning else []

    def _announce(self, item: Item) -> list[Event]:
        """Emit the beginning of an item that upstream left out."""
        fields = {"output_index": item.number, "item": item.as_it_stands("in_progress")}
        return self._begin(item, self.make("response.output_item.added", fields))

    def complete(self, item: Item, done: Json, frame: bytes | None) -> list[Event]:
        """Emit what the finished item says beyond what was streamed, and close it."""
        events = self._rest(item, done)
        if frame is not None:
            events += item.native.complete(done)
        elif native := summary_text(done):
            events.append(Native(LANE, None, item.number, 0, "whole", native))
        if self._hidden:
            self.dropped += unknown_keys(done)
        return [*events, Closed(LANE, frame, item.number)]

    def _rest(self, item: Item, done: Json) -> list[Event]:
        """Emit the reasoning of a finished item that was not streamed."""
        item.open, self.open = False, None
        return self._thought(item, item.contents.complete(done))

    def _thought(self, item: Item, pieces: Iterable[Piece]) -> list[Event]:
        return [Raw(LANE, piece.frame, item.number, piece.text) for piece in pieces]

    def _other(self, event: Json, frame: bytes | None, text: str = "") -> list[Event]:
        """Read an event of another type. Any of a reasoning item may contain reasoning."""
        kind, item = string(event.get("type")), self._named(event)
        if kind.startswith("response.reasoning") or (item is not None and item.reasoning):
            return self._think(event, frame)
        frame = frame if item is None else item.addressed(event, frame)
        return [Said(LANE, frame, text) if kind.endswith(".delta") else Other(LANE, frame)]

    def _text(self, event: Json, frame: bytes | None) -> list[Event]:
        return self._other(event, frame, string(event.get("delta")))

    def _named(self, event: Json) -> Item | None:
        """Find the item that an event names by id or index."""
        return self.output.find(event.get("item_id"), event.get("output_index"))

    def _thinker(self, event: Json) -> Item | None:
        """Find the reasoning item that an event names, else the open one."""
        item = self._named(event)
        return item if item is not None and item.reasoning else self.open

    def _think(self, event: Json, frame: bytes | None, text: str = "") -> list[Event]:
        item = self._thinker(event)
        if item is None:
            return [Raw(LANE, frame, 0, text)]
        if not item.open:
            return self.fault()
        return [Raw(LANE, item.addressed(event, frame), item.number, text)]

    def _content(self, event: Json, frame: bytes | None) -> list[Event]:
        """Read a content event. It is reasoning if its item is, or if its own type says so."""
        item, spelling = self._named(event), spelling_in(event, "reasoning")
        reasons = item is not None and item.reasoning
        if spelling is None or not (reasons or says_reasoning(event)):
            return self._other(event, frame)
        text = text_in(event, spelling)
        if frame is not None and item is not None and not reasons and self.open is None:
            return self._think(event, frame, text)  # within an item of another type
        opening = list[Event]()
        if (item := self._thinker(event)) is None:
            if not text:
                return self.fault()
            said = {"id": event.get("item_id"), "type": "reasoning"}
            item = self.output.add(said, event.get("output_index"))
            opening = self._announce(item)
        pieces = item.contents.read(event, spelling, frame) if item.open else None
        return self.fault() if pieces is None else [*opening, *self._thought(item, pieces)]

    def _native(self, event: Json, frame: bytes | None) -> list[Event]:
        item = self._thinker(event)
        if item is None or not item.open:
            return self.fault()
        frame = item.addressed(event, frame)
        if event["type"] == ADDED or item.native.texts:
            return [*self._let_go(item), *self._summary(item, event, frame)]
        if not self.output.take(self.came):
            return self.fault()
        item.held.append((event, frame))  # may be raw: real summaries announce parts
        return []

    def _summary(self, item: Item, event: Json, frame: bytes | None) -> list[Event]:
        keep = self.output.take(len(string(event.get("delta"))))
        said = item.native.read(event, frame, keep=keep)
        return self.fault() if said is None else [*said]

    def _let_go(self, item: Item) -> list[Event]:
        """Read the held events, as the summary or the raw reasoning that they are."""
        told: list[Event] = []
        held, item.held = item.held, []
        for event, frame in held:
            if item.masked:
                true = unmask_event(event)
                told += self.read(true["type"], true, changed(frame, unmask_event))
            else:
                told += self._summary(item, event, frame)
        return told

    _READ: ClassVar[dict[str, _Method]] = {
        "response.output_item.added": _added,
        "response.output_item.done": _done,
        "response.content_part.added": _content,
        "response.content_part.done": _content,
        "response.reasoning_text.delta": _content,
        "response.reasoning_text.done": _content,
        "response.output_text.delta": _text,
        **dict.fromkeys(NATIVE, _native),
    }
