"""Read the items of a stream, or of a whole response, for clients of another API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from abridge.turn.events import Called, Closed, Event, Native, Other, Raw, Refused, Said, Sealed
from abridge.wire.codec import Json, objects, string
from abridge.wire.responses.contents import Piece
from abridge.wire.responses.frames import no_frame
from abridge.wire.responses.item import Item
from abridge.wire.responses.itemreader import ItemReader
from abridge.wire.responses.items import LANE, is_sealed, unknown_keys
from abridge.wire.responses.spelling import TEXT, spelling_in, text_in

CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Types of calls that the client answers, and the field of their arguments."""

HOSTED = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "code_interpreter_call_output",
        "image_generation_call",
        "computer_call",
        "mcp_call",
        "mcp_list_tools",
        "compaction",
    }
)
"""Types of items that upstream handles itself, without an answer from the client."""


SPELLED = ("delta", "text", "refusal")
"""Fields that may hold the text of a message."""


@dataclass(slots=True)
class _Told:
    """Progress in translating an item of the answer."""

    number: int | None = None  # among the messages, or among the calls announced so far
    said: bool = False  # arguments of the call were emitted


_Tell = Callable[["ToldItems", Item, _Told, Json], list[Event]]


class ToldItems(ItemReader):
    """Reads the items of one response into translated events."""

    def __init__(self, limit: int, *, hidden: bool) -> None:
        super().__init__(limit, hidden=hidden, make=no_frame)
        self._told: dict[int, _Told | None] = {}
        self._messages = 0
        self._calls = 0
        self._message: Item | None = None

    @property
    def called(self) -> bool:
        """Return whether there are calls for the client to answer."""
        return self._calls > 0

    def whole(self, number: int | None, item: Json) -> list[Event]:
        """Read an item of a final response, as far as it was not streamed."""
        known = self.output.at(number)
        if known is None:
            known = self.output.add(item, number)
            begun = self._begin(known, None)
            return [*begun, *self._end_of(known, item)]
        return self._end_of(known, item) if known.open else []

    def complete(self, item: Item, done: Json, _frame: bytes | None) -> list[Event]:
        events = [*self._rest(item, done), *item.native.complete(done)]
        state = string(done.get("encrypted_content"))
        if state and is_sealed(done):  # else it repeats the reasoning
            events.append(Sealed(LANE, None, item.number, state))
        if self._hidden:
            self.dropped += unknown_keys(done)
        return [*events, Closed(LANE, None, item.number)]

    def _end_of(self, item: Item, done: Json) -> list[Event]:
        if item.reasoning:
            return self.complete(item, done, None)
        item.open = False
        return self._tell(item, done, ToldItems._item)

    def _begin(self, item: Item, frame: bytes | None) -> list[Event]:
        if item.kind == "message":
            self._message = item
        begun = [event for event in super()._begin(item, frame) if not isinstance(event, Other)]
        return [*begun, *self._tell(item, item.added, ToldItems._head)]

    def _finish(self, item: Item, event: Json, frame: bytes | None) -> list[Event]:
        told = [event for event in super()._finish(item, event, frame) if tells(event)]
        return [*told, *self._tell(item, event["item"], ToldItems._item)]

    def _think(self, event: Json, frame: bytes | None, text: str = "") -> list[Event]:
        """Read reasoning; add an item for it where none was announced."""
        opening: list[Event] = []
        if text and self._thinker(event) is None:
            opening = self._announce(self.output.add({"type": "reasoning"}, None))
        return [*opening, *super()._think(event, frame, text)]

    def _other(
        self,
        event: Json,
        frame: bytes | None,
        text: str = "",  # noqa: ARG002 -- read from the event
    ) -> list[Event]:
        tell, item = self._TELL.get(string(event.get("type"))), self._named(event)
        if tell is None:
            return []
        if item is None and (spelling := spelling_in(event, "message")) is not None:
            item = self._spokesman(event, text_in(event, spelling))
        if item is None:
            return []
        if item.reasoning:
            return [event for event in super()._other(event, frame) if tells(event)]
        return self._tell(item, event, tell)

    def _spokesman(self, event: Json, text: str) -> Item | None:
        """Find the message of text that names no known item: the open one, else a new one."""
        item, index = self._message, event.get("output_index")
        if text and (item is None or not item.open):
            item = self.output.add({"type": "message", "id": event.get("item_id")}, index)
            self._message = item
        if item is not None:
            self.output.name(item, event.get("item_id"))
        return item

    def _tell(self, item: Item, said: Json, tell: _Tell) -> list[Event]:
        """Translate part of an item of the answer; close the reasoning before it."""
        if item.reasoning:
            return []
        if item.number not in self._told:
            self._told[item.number] = self._count(item)
        told = self._told[item.number]
        events = [] if told is None else tell(self, item, told, said)
        return [*self.close(), *events] if events else []

    def _count(self, item: Item) -> _Told | None:
        if item.kind == "message":
            self._messages += 1
            return _Told(self._messages - 1)
        if item.kind in CALLS:
            return _Told()
        self.faults += item.kind not in HOSTED
        return None

    # Messages

    def _spoken(self, item: Item, told: _Told, event: Json) -> list[Event]:
        spelling = spelling_in(event, item.kind)
        pieces = None if spelling is None else item.contents.read(event, spelling, None)
        return self._said(told, pieces or (), objects([event.get("part"), event]))

    def _said(self, told: _Told, pieces: Iterable[Piece], whole: list[Json]) -> list[Event]:
        """Emit new text of a message; log probabilities only where they are for just that text."""
        events, number = list[Event](), told.number or 0
        for piece in (piece for piece in pieces if piece.text):
            said = (part for part in whole if piece.text in (part.get(key) for key in SPELLED))
            logprobs = objects(next(said, {}).get("logprobs"))
            if piece.spelling is TEXT:
                events.append(Said(LANE, None, piece.text, logprobs, number))
            else:
                events.append(Refused(LANE, None, "", logprobs, number, refusal=piece.text))
        return events

    # Calls

    def _head(self, item: Item, told: _Told, added: Json) -> list[Event]:
        """Announce a call once its name is known.

        Its arguments come from its deltas, or else from its end.
        """
        name = string(added.get("name"))
        if item.kind not in CALLS or told.number is not None or not name:
            return []
        told.number = self._calls
        self._calls += 1
        head = self._called(item, told, "")
        head.id, head.name = string(added.get("call_id")), name
        return [head]

    def _arguments(self, item: Item, told: _Told, event: Json) -> list[Event]:
        text = string(event.get("delta"))
        if item.kind not in CALLS or told.number is None or not text:
            return []
        told.said = True
        return [self._called(item, told, text)]

    def _arguments_done(self, item: Item, told: _Told, event: Json) -> list[Event]:
        if item.kind not in CALLS or told.number is None or told.said:
            return []
        return self._arguments(item, told, {"delta": event.get(CALLS[item.kind])})

    def _nothing(self, item: Item, told: _Told, done: Json) -> list[Event]:
        """Emit `{}` for a call without arguments, which some servers leave out."""
        if item.kind != "function_call" or told.said or done.get("status") == "incomplete":
            return []
        return self._arguments(item, told, {"delta": "{}"})

    def _called(self, item: Item, told: _Told, text: str) -> Called:
        custom = item.kind == "custom_tool_call"
        return Called(LANE, None, call=told.number or 0, arguments=text, custom=custom)

    def _item(self, item: Item, told: _Told, done: Json) -> list[Event]:
        """Emit what is left of a finished item."""
        if item.kind in CALLS:
            head = self._head(item, told, done)
            rest = self._arguments_done(item, told, done)
            return [*head, *rest, *self._nothing(item, told, done)]
        return self._said(told, item.contents.complete(done), objects(done.get("content")))

    _TELL: ClassVar[dict[str, _Tell]] = {
        "response.output_text.delta": _spoken,
        "response.output_text.done": _spoken,
        "response.refusal.delta": _spoken,
        "response.refusal.done": _spoken,
        "response.content_part.added": _spoken,
        "response.content_part.done": _spoken,
        "response.function_call_arguments.delta": _arguments,
        "response.function_call_arguments.done": _arguments_done,
        "response.custom_tool_call_input.delta": _arguments,
        "response.custom_tool_call_input.done": _arguments_done,
    }


def tells(event: Event) -> bool:
    """Return whether an event without a frame says anything."""
    silent = isinstance(event, Raw) and not event.text
    unsaid = isinstance(event, Native) and event.kind == "say" and not event.text
    return not (silent or unsaid or isinstance(event, Other))
