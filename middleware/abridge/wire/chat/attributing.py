"""Attribute reasoning to tool calls, as a Chat Completions answer is written.

A choice is a turn. Its reasoning is read from the events, and its parts from the lists of reasoning
in their frames; a call is attributed in its first fragment.
"""

from __future__ import annotations

from abridge.turn.attribution import RAW, REDACTED, SUMMARY, Attribution, Attributor, Kind
from abridge.turn.events import (
    NO_SUMMARY,
    Called,
    Ended,
    Event,
    Native,
    PartSaid,
    Raw,
    Said,
    Sealed,
)
from abridge.wire import sse
from abridge.wire.api import Writer
from abridge.wire.attribution import attributed, within
from abridge.wire.chat.attributed import attribute_message, each_choice, spread
from abridge.wire.chat.choice import ITEM
from abridge.wire.chat.dialects import LISTS, said_in
from abridge.wire.chat.entries import Entry, entries
from abridge.wire.codec import Json, dumps, loads_exactly, objects, read_object, string
from abridge.wire.display import Display

CALLS = b'"tool_calls"'
_DETAILS, _BLOCKS = (f'"{name}"'.encode() for name in LISTS)


class _Choice:
    def __init__(self, limit: int) -> None:
        self.told: list[Attribution[int]] = []  # of the calls that events reported, in order
        self._turn: Attributor[int] = Attributor(limit)
        self._ids: list[str] = []
        self._places: dict[int, int] = {}
        self._signed = 0

    def think(self, kind: Kind, text: str, part: int, item: int) -> None:
        """Add reasoning of an event."""
        self._turn.think(kind, text, part=part, stretch=item)

    def read(self, listed: list[Entry], kind: Kind | None) -> None:
        """Add reasoning of a kind from the entries of an event's frame, and redacted reasoning."""
        for entry in listed:
            if entry.kind == kind:
                self._turn.think(kind, entry.text, part=(entry.part, self._signed), stretch=ITEM)
            elif entry.kind == REDACTED and entry.text:
                self._turn.redact(stretch=ITEM)
            self._signed += entry.signed

    def redact(self, item: int) -> None:
        self._turn.redact(stretch=item)

    def call(self, event: Called) -> None:
        """Attribute the call of an event, if this is its first piece."""
        if event.call == len(self.told):
            self.told.append(self._turn.call(event.call))

    def fragment(self, call: Json, place: int) -> Json:
        """Return a call's fragment, with the attribution if it is the first of its call."""
        index = call.get("index")
        if self._turn.over or not self._begins(call, index if isinstance(index, int) else place):
            return attributed(call, (), "")
        led = self._turn.call(len(self._ids) - 1)
        return attributed(call, led.parts, self._ids[led.ref] if led.ref is not None else "")

    def _begins(self, call: Json, index: int) -> bool:
        """Return whether the fragment begins a call.

        An index that comes again with another id and a name begins another.
        """
        identity, said = string(call.get("id")), call.get("function") or call.get("custom")
        named = isinstance(said, dict) and bool(said.get("name"))
        place = self._places.get(index)
        if place is not None and (self._ids[place] in ("", identity) or not (identity and named)):
            self._ids[place] = self._ids[place] or identity
            return False
        self._places[index] = len(self._ids)
        self._ids.append(identity)
        return True


class AttributingChat:
    """Wrap a Writer, and attribute its calls; keep at most `limit` characters of each choice."""

    def __init__(self, writer: Writer, display: Display, limit: int) -> None:
        self._writer = writer
        self._display = display
        self._limit = limit
        self._choices: dict[int, _Choice] = {}

    @property
    def shown(self) -> Json | None:
        return self._writer.shown

    def write(self, event: Event) -> bytes:
        data = self._writer.write(event)
        if self._limit:
            self._think(event)
        if CALLS not in data:
            return data
        return b"".join(map(self._read, sse.frames(data)))

    def beat(self) -> bytes:
        return self._writer.beat()

    def note(self, event: Event) -> None:
        self._writer.note(event)
        self._think(event)
        if isinstance(event, Called) and event.lane is not None:
            self._choice(event.lane).call(event)

    def whole(self, end: Ended) -> bytes:
        body = self._writer.whole(end)
        if CALLS not in body:
            return body

        def attribute(completion: Json) -> Json:
            return each_choice(completion, lambda choice: self._whole(choice, end))

        return within(body, attribute)

    # Reasoning

    def _think(self, event: Event) -> None:
        lane, frame = event.lane, event.frame
        if lane is None:
            return
        if frame is not None and (_DETAILS in frame or _BLOCKS in frame):
            self._read_lists(event, _listed(frame, lane), lane)
        elif not isinstance(event, Said):
            self._read_event(event, lane)

    def _read_event(self, event: Event, lane: int) -> None:
        """Add the reasoning of an event, if it is shown, or that there is some which is not."""
        match event:
            case Raw() if self._display.raw:
                self._choice(lane).think(RAW, event.text, 0, event.item)
            case PartSaid():
                self._choice(lane).think(SUMMARY, event.text, event.index, event.item)
            case Native() if self._display.summary:
                self._choice(lane).think(SUMMARY, event.text, event.part, event.item)
            case Sealed(signs=False):
                self._choice(lane).redact(event.item)

    def _read_lists(self, event: Event, listed: list[Entry], lane: int) -> None:
        """Add the entries of the lists in an event's frame; they may hold no text to show."""
        kind = {Raw: RAW, Native: SUMMARY}.get(type(event))
        shown = self._display.raw if kind == RAW else self._display.summary
        if not any(entry.text for entry in listed if entry.kind == kind):
            self._read_event(event, lane)
        self._choice(lane).read(listed, kind if shown else None)

    def _choice(self, lane: int) -> _Choice:
        if lane not in self._choices:
            self._choices[lane] = _Choice(self._limit)
        return self._choices[lane]

    # Calls

    def _read(self, frame: bytes) -> bytes:
        chunk = read_object(sse.data(frame) or b"", loads_exactly) if CALLS in frame else None
        told = each_choice(chunk or {}, self._told)
        return frame if not chunk or told == chunk else sse.encode(dumps(told))

    def _told(self, choice: Json) -> Json:
        said = said_in(choice)
        calls = objects(said.get("tool_calls"))
        if not calls or len(calls) < len(said["tool_calls"]):
            return choice
        state = self._choice(_index(choice))
        told = [state.fragment(call, place) for place, call in enumerate(calls)]
        key = "delta" if choice.get("delta") is said else "message"
        return {**choice, key: {**said, "tool_calls": told}}

    def _whole(self, choice: Json, end: Ended) -> Json:
        message, state = choice.get("message"), self._choices.get(_index(choice))
        if not isinstance(message, dict):
            return choice
        if state is not None and state.told:
            return {**choice, "message": spread(message, state.told)}
        summary = end.summaries.get((_index(choice), ITEM), NO_SUMMARY).parts
        told = attribute_message(message, self._display, summary, self._limit)
        return {**choice, "message": told}


def _listed(frame: bytes, lane: int) -> list[Entry]:
    """Read the entries of the lists in a frame, of one lane."""
    chunk = read_object(sse.data(frame) or b"") or {}
    choices = [choice for choice in objects(chunk.get("choices")) if _index(choice) == lane]
    return [entry for choice in choices for entry in entries(said_in(choice))]


def _index(choice: Json) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0
