"""Put the parts of an answer one after the other, as clients of Responses and Messages know them.

Parts that follow each other are the order of these APIs, but upstream may let them alternate:
fragments of several calls, or reasoning between the fragments of one. A text or a reasoning can be
ended, and what comes of it later becomes another one. A call cannot: clients run what has ended. So
whatever comes while a call is open and not whole waits, part by part, until that is. This is the
only place that asks whether an open call is whole.

What upstream still says of a call that was ended cannot be told any more: the answer fails.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from sys import maxsize

from abridge.core.answer import Part, PartKind
from abridge.core.events import (
    STRAY_ARGUMENTS,
    CitationDelta,
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    Finished,
    PartEnded,
    PartStarted,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ToolCallDelta,
    held_size,
)

ENDS = (PartEnded, ReasoningEnded)


class Unnamed(Part):
    """A part of an answer whose reader names none."""


class Order:
    """Order the events of one lane. At most `limit` bytes wait: past that, the open call is ended
    as it stands. With `beside`, parts may stay open side by side, as on Chat Completions: only
    reasoning ends where another part goes on, and a text where that is of none of these kinds.
    `items` numbers the reasoning items made here."""

    def __init__(self, limit: int, items: Iterator[int], beside: Sequence[PartKind] = ()) -> None:
        self._beside = beside
        self._room_left = limit
        self._items = items
        self._open: Part | None = None
        self._lane: int | None = None  # of the open part
        self._arguments: _Arguments | None = None  # of the open part, if it is a call
        self._queued: OrderedDict[Part, list[Event]] = OrderedDict()
        self._continued: dict[Part, Part] = {}
        """The part that goes on with one that ended before upstream ended it."""
        self._out: list[Event] = []
        self.cut: Part | None = None  # a call that was ended though it was not whole
        self.failure: ErrorDetail | None = None
        self.faults = 0

    @property
    def next_part(self) -> Part | None:
        """Return the part of which a delta goes out as it is: the open one, if nothing waits."""
        return None if self._queued else self._open

    def take(self, events: Iterable[Event]) -> list[Event]:
        """Take events; return those whose turn it is."""
        for event in events:
            part = self._part_of(event)
            if part is None:
                self._take_other(event)
            elif self._waits(part):
                self._queue(part, event)
            else:
                self._place(part, event)
            while self._queued and not self._is_held():
                self._release()
        out, self._out = self._out, []
        return out

    def rest(self) -> list[Event]:
        """Return what waits and the end of what is open: no more of it will come."""
        self._out = self.release_all()
        self._end_open()
        return self.release_all()

    def release_all(self) -> list[Event]:
        """Return what waits: no more of the open call will come."""
        while self._queued:
            self._release()
        out, self._out = self._out, []
        return out

    def _part_of(self, event: Event) -> Part | None:
        return None if event.part is None else event.part.whole

    def _take_other(self, event: Event) -> None:
        """Take what is about no part. After an error, what waits is dropped, and only reasoning is
        ended: a call may lack something, and clients run one that is ended."""
        if isinstance(event, ErrorReported) or (isinstance(event, ResponseEnded) and not event.ok):
            self._queued.clear()
            if self._open is not None and self._open.kind == "reasoning":
                self._end_open()
        elif isinstance(event, Finished | ResponseEnded):
            self._out = self.rest()
        self._out.append(event)

    def _waits(self, part: Part) -> bool:
        """Return whether the events of a part wait. Those of the first part after a call whose
        arguments upstream has ended do not, though the call's own end may be still to come."""
        if part is self._open:
            return False
        is_over = self._open is not None and self._open.is_ended
        return bool(self._queued) or (self._is_held() and not is_over)

    def _is_held(self) -> bool:
        """Return whether a call is open that is not whole."""
        arguments = None if self._beside else self._arguments
        return arguments is not None and not arguments.are_whole()

    def _queue(self, part: Part, event: Event) -> None:
        self._queued.setdefault(part, []).append(event)
        self._room_left -= held_size(event)
        if self._room_left < 0 and self._open is not None:
            self.cut = self._open
            self._end_open()

    def _release(self) -> None:
        """Place what has waited longest: all that is there of one part."""
        part, events = self._queued.popitem(last=False)
        for event in events:
            self._room_left += held_size(event)
            self._place(part, event)

    def _place(self, part: Part, event: Event) -> None:
        if part.is_closed:
            self._place_late(part, event)
            return
        is_end = isinstance(event, ENDS) and event.part is part
        if part is not self._open and not is_end:
            self._end_open(part)
            self._open, self._lane = part, event.lane
            self._arguments = _Arguments(part) if part.kind == "call" else None
        self._out.append(event)
        if is_end:
            part.is_closed = True
        if is_end and part is self._open:
            self._open = self._arguments = None

    def _end_open(self, following: Part | None = None) -> None:
        """End the open part, since another one goes on or there is no room to wait for its end."""
        part, self._open, self._arguments = self._open, None, None
        if part is None or (self._beside and not self._ends_before(part, following)):
            return
        part.is_closed = True
        if isinstance(part, Unnamed):
            part.texts.clear()
            return
        part.shown = [part.shown_text]  # what upstream still says of it is another part's
        self._out.append(
            ReasoningEnded(self._lane, None, part.number, part=part)
            if part.kind == "reasoning"
            else PartEnded(self._lane, None, part=part)
        )

    def _ends_before(self, part: Part, following: Part | None) -> bool:
        """Return whether the open part ends where another goes on, if parts may stay open. A text
        may have to, since a stage may hold back its last words."""
        is_beside = following is None or following.kind in self._beside
        return part.kind == "reasoning" or (part.kind == "text" and not is_beside)

    def _place_late(self, part: Part, event: Event) -> None:
        """Place what comes of a part that was ended: its text begins another one."""
        following = self._continued.get(part)
        if (following is None or following.is_closed) and _says_something(event):
            if isinstance(event, ToolCallDelta):
                self.faults += 1
                self.failure = STRAY_ARGUMENTS
                return
            following = self._continued[part] = self._continue(part, event)
        if following is not None and not following.is_closed:
            event.part = following
            if isinstance(event, ReasoningDelta | ProviderState | ReasoningEnded):
                event.item = following.number
            self._place(following, event)
        elif event.lane is None or isinstance(event, CitationDelta):  # it names its passage itself
            self._out.append(event)
        else:
            self.faults += part.is_ended or not isinstance(event, ENDS)

    def _continue(self, part: Part, event: Event) -> Part:
        """Begin a part that goes on with one that was ended."""
        following = Part(part.kind, next(self._items) if part.kind == "reasoning" else 0)
        following.shown = []
        begun: Event = PartStarted(event.lane, None, part=following)
        if part.kind == "reasoning":
            begun = ReasoningStarted(event.lane, None, following.number, part=following)
        self._place(following, begun)
        return following


class CallOrder(Order):
    """Order the events of readers that name no parts. They are told apart by what they say: a call
    by its number, and whatever comes between two pieces of calls is one part."""

    def __init__(self) -> None:
        super().__init__(maxsize, iter(()))  # the writer limits the whole answer
        self._calls: dict[int, Part] = {}

    def is_next(self, event: ToolCallDelta) -> bool:
        """Return whether a piece is of the open call, for whose end nothing waits."""
        is_open = self._open is not None and self._calls.get(event.call_index) is self._open
        return is_open and not self._queued

    def add_arguments(self, event: ToolCallDelta) -> None:
        """Take a piece that is next, and goes out."""
        self._calls[event.call_index].texts.append(event.arguments)

    def _part_of(self, event: Event) -> Part | None:
        if isinstance(event, ToolCallDelta):
            part = self._calls.get(event.call_index)
            if part is None:
                part = Unnamed("call", event.call_index, free_text=event.custom)
                self._calls[event.call_index] = part
            if not part.is_closed:
                part.texts.append(event.arguments)
            return part
        if event.lane is None or isinstance(event, Finished):
            return None
        last = next(reversed(self._queued), self._open)
        return last if last is not None and last.kind == "other" else Unnamed("other")


def _says_something(event: Event) -> bool:
    """Return whether an event holds words, or arguments that are more than blanks."""
    if isinstance(event, ToolCallDelta):
        return bool(event.arguments.strip())
    return isinstance(event, ContentDelta | ReasoningDelta) and bool(event.text)


_MARK = re.compile(r'\\(?:.|\Z)|[{}"]', re.DOTALL)


class _Arguments:
    """The arguments of the open call, of which each piece is read once."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._read = 0  # pieces
        self._depth = 0  # of the objects that are open
        self._is_string = False
        self._carried = ""  # a backslash that ends a piece
        self._is_whole: bool | None = None  # None until the object may have ended

    def are_whole(self) -> bool:
        """Return whether the arguments are an object of JSON. Free text is never known to be whole,
        nor is what goes on after an object."""
        texts = self._part.texts
        for piece in texts[self._read :]:
            if self._is_whole is None:
                self._scan(piece)
            elif piece.strip():
                self._is_whole = False
        self._read = len(texts)
        return bool(self._is_whole)

    def _scan(self, piece: str) -> None:
        part = self._part
        text, self._carried = self._carried + piece, ""
        for mark in _MARK.finditer(text):
            found = mark[0]
            if found == "\\":
                self._carried = found
            elif found == '"':
                self._is_string = not self._is_string
            elif not self._is_string and found in "{}":
                self._depth += 1 if found == "{" else -1
                if self._depth <= 0:
                    self._is_whole = not part.free_text and is_object(part.said_text)
                    return


def is_object(text: str) -> bool:
    """Return whether a text is an object of JSON, whole."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
