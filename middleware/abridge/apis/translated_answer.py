"""Build one answer of translated events, as Responses and Messages have it: with one choice, and
one item or block open at a time, which is why its events are ordered first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from abridge.apis.errors import ANSWER_TOO_LONG, failure_of
from abridge.apis.frames import DeltaFrame
from abridge.apis.hosted_calls import HOSTED_CALLS
from abridge.core.conversation import Json
from abridge.core.events import (
    CitationDelta,
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    Finished,
    FinishReason,
    ReasoningStarted,
    ResponseEnded,
    ResponseStarted,
    TierReported,
    ToolCallDelta,
    UsageReported,
    text_size,
)
from abridge.core.usage import Tokens
from abridge.stages.order import CallOrder

CHOICE = 0
"""The choice that is the answer, of several, in whichever order they stream."""

CUT_REASONS: tuple[FinishReason, ...] = ("length", "content_filter")
"""Why an answer finishes that is not whole."""

NO_TIER = "auto"
"""The service tier of an answer for which upstream names none. Not null, which Open Responses does
not allow (openresponses, `ResponseResource`)."""

WireEvents: TypeAlias = Iterable[tuple[str, Json]]
"""Events of a stream as a writer encodes them: the type of each, and its other fields."""

AddedText: TypeAlias = tuple[DeltaFrame | None, str]
"""What is written of an event that only adds to a text: the frame of such deltas, and the text."""

NOTHING: AddedText = (None, "")


class Content(Protocol):
    """Writes the items or blocks of one answer."""

    def add_text(self, event: Event, /) -> AddedText | None:
        """Take an event that only adds to the open text; return None for any other."""

    def write(self, event: Event, /) -> WireEvents:
        """Write an event of the answer or its reasoning, whose turn it is."""

    def finish(self) -> WireEvents:
        """Finish the item or block that is open."""

    @property
    def has_open_text(self) -> bool: ...

    def cite(self, citation: CitationDelta, /) -> WireEvents:
        """Name a source of the open text."""


class TranslatedAnswer(ABC):
    """One answer. A stream fails once more than `limit` characters came of it."""

    _drops_reasoning = False  # the client did not ask for it

    def __init__(self, content: Content, limit: int) -> None:
        self._content = content
        self._order = CallOrder()
        self._room_left = limit
        self._has_started = False
        self._is_over = False
        self._is_answered = False  # the first choice has said something
        self._others: list[Event] = []  # of other choices, until it has
        self._finished = Finished(None, None, "stop")
        self._usage: Tokens | None = None
        self._tier = NO_TIER
        self._error: ErrorDetail | None = None
        self._citations: list[CitationDelta] = []  # those that no text was open for

    def compose(self, event: Event) -> WireEvents:
        """Build what an event becomes in a stream."""
        self._room_left -= text_size(event)
        if self._is_over:
            return []
        if self._room_left < 0:
            event = ResponseEnded(None, None, ok=False, error=ANSWER_TOO_LONG)
        return self._translate(event)

    def add_text(self, event: Event) -> AddedText | None:
        """Take an event that only adds to the text that is being written, as nearly all do.

        Return None for any other, which is not taken.
        """
        if not self._has_started or self._is_over or event.lane != CHOICE:
            return None
        call = event if isinstance(event, ToolCallDelta) else None
        if call is not None and not self._order.is_next(call):
            return None
        size = text_size(event)
        added = self._content.add_text(event) if size <= self._room_left else None
        if added is not None:
            self._room_left -= size
            if call is not None:
                self._order.add_arguments(call)
        return added

    @abstractmethod
    def _start(self, event: ResponseStarted) -> WireEvents:
        """Start the answer."""

    @abstractmethod
    def _end(self, event: ResponseEnded) -> WireEvents:
        """End the answer."""

    def _translate(self, event: Event) -> WireEvents:
        said: list[tuple[str, Json]] = []
        if not (self._has_started or isinstance(event, TierReported)):
            self._has_started = True
            unknown = ResponseStarted(None, None, "", "", 0)
            said += self._start(event if isinstance(event, ResponseStarted) else unknown)
        if event.lane not in (None, CHOICE):
            self._others += [] if self._is_answered else [event]
            return said
        if isinstance(event, ContentDelta | ReasoningStarted):
            self._is_answered, self._others = True, []
        if isinstance(event, ResponseEnded):
            for other in self._stand_in():
                said += self._write(other)
        said += self._write(event)
        return said

    def _stand_in(self) -> list[Event]:
        """Return the events of the choice that answers where there is no first one."""
        lane = min((event.lane for event in self._others if event.lane), default=None)
        return [event for event in self._others if event.lane == lane]

    def _write(self, event: Event) -> WireEvents:
        match event:
            case CitationDelta():
                self._citations.append(event)
                return self._cite()
            case ContentDelta():
                said = self._place(event)
                return [*said, *self._cite()] if self._citations else said
            case Finished():
                self._finished = event
                return self._finish(is_cut=event.reason in CUT_REASONS)
            case TierReported():
                self._tier = event.tier
            case UsageReported():
                self._usage = event.usage
            case ErrorReported():
                self._error = event.error
            case ResponseEnded():
                return self._end(event)
            case _ if not self._drops_reasoning:
                return self._place(event)
        return []

    def _place(self, event: Event) -> WireEvents:
        """Write an event, and those that waited for it, unless it has to wait itself."""
        return [said for one in self._order.take([event]) for said in self._content.write(one)]

    def _finish(self, *, is_cut: bool) -> WireEvents:  # noqa: ARG002 -- for subclasses that tell a cut
        """Write what waits, for which nothing more comes, and finish what is open."""
        rest = [said for one in self._order.rest() for said in self._content.write(one)]
        return [*rest, *self._content.finish()]

    def _cite(self) -> WireEvents:
        """Name sources in the open text; without one, they wait for the next."""
        if not self._content.has_open_text:
            return []
        waiting, self._citations = self._citations, []
        return [said for citation in waiting for said in self._content.cite(citation)]

    def _other_fields(self, name: str, write: Callable[[CitationDelta], Json]) -> Json:
        """Return what no item or block can say: under this name the sources that came after their
        text, and what upstream ran itself."""
        cited, hosted = list(map(write, self._citations)), list(self._finished.hosted_calls)
        return {key: each for key, each in ((name, cited), (HOSTED_CALLS, hosted)) if each}

    def _failure(self, event: ResponseEnded) -> ErrorDetail | None:
        """Return why the answer fails, if it does."""
        return event.error or self._order.failure or failure_of(event, self._error)
