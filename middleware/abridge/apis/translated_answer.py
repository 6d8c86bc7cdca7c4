"""Build one answer of translated events, as Responses and Messages have it: with one choice, and
one item or block open at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Protocol, TypeAlias

from abridge.apis.errors import ANSWER_TOO_LONG, CONNECTION_LOST
from abridge.apis.frames import DeltaFrame
from abridge.core.conversation import Json
from abridge.core.events import (
    CitationDelta,
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    Finished,
    ReasoningStarted,
    ResponseEnded,
    UsageReported,
    text_size,
)
from abridge.core.usage import Tokens

CHOICE = 0
"""The choice that is the answer, of several, in whichever order they stream."""

WireEvents: TypeAlias = Iterable[tuple[str, Json]]
"""Events of a stream as a writer encodes them: the type of each, and its other fields."""


AddedText: TypeAlias = tuple[DeltaFrame | None, str]
"""What is written of an event that only adds to a text: the frame of such deltas, and the text."""

NOTHING: AddedText = (None, "")


class Content(Protocol):
    """Writes the items or blocks of one answer."""

    @property
    def failure(self) -> ErrorDetail | None:
        """Why what was written cannot be the whole answer."""

    def add_text(self, event: Event, /) -> AddedText | None: ...

    def write(self, event: Event, /) -> WireEvents:
        """Write an event of the answer or its reasoning, and those that waited for it."""

    @property
    def has_open_text(self) -> bool: ...

    def cite(self, citation: CitationDelta, /) -> WireEvents:
        """Name a source of the open text."""


class TranslatedAnswer(ABC):
    """One answer. A stream fails once more than `limit` characters came of it."""

    def __init__(self, content: Content, limit: int) -> None:
        self._content = content
        self._room_left = limit
        self._has_started = False
        self._is_over = False
        self._is_answered = False  # the first choice has said something
        self._others: list[Event] = []  # of other choices, until it has
        self._usage: Tokens | None = None
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
        size = text_size(event)
        added = self._content.add_text(event) if size <= self._room_left else None
        if added is not None:
            self._room_left -= size
        return added

    @abstractmethod
    def _start(self, event: Event) -> WireEvents:
        """Start the answer. `event` is the first, of whatever kind."""

    @abstractmethod
    def _finish(self, event: Finished) -> WireEvents:
        """Finish what is open."""

    @abstractmethod
    def _end(self, event: ResponseEnded) -> WireEvents:
        """End the answer."""

    def _translate(self, event: Event) -> WireEvents:
        said: list[tuple[str, Json]] = []
        if not self._has_started:
            self._has_started = True
            said += self._start(event)
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
            case ContentDelta():
                return self._write_answer(event)
            case Finished():
                return self._finish(event)
            case UsageReported():
                self._usage = event.usage
            case ErrorReported():
                self._error = event.error
            case ResponseEnded():
                return self._end(event)
            case _:
                return self._content.write(event)
        return []

    def _write_answer(self, event: ContentDelta) -> WireEvents:
        """Write a piece of the answer. Sources are named in the open text; without one, they wait
        for the next."""
        if isinstance(event, CitationDelta):
            self._citations.append(event)
            said = list[tuple[str, Json]]()
        else:
            said = [*self._content.write(event)]
        if self._citations and self._content.has_open_text:
            waiting, self._citations = self._citations, []
            said += (one for citation in waiting for one in self._content.cite(citation))
        return said

    def _failure(self, event: ResponseEnded) -> ErrorDetail | None:
        """Return why the answer fails, if it does."""
        error = event.error or self._content.failure
        return error if event.ok else error or self._error or CONNECTION_LOST
