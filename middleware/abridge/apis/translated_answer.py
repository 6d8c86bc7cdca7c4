"""Build one answer of translated events, as Responses and Messages have it: with one choice, and
one item or block open at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
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
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    UsageReported,
    text_size,
)
from abridge.core.usage import Tokens

WireEvents: TypeAlias = Iterator[tuple[str, Json]]
"""Events of a stream as a writer encodes them: the type of each, and its other fields."""


AddedText: TypeAlias = tuple[DeltaFrame | None, str]
"""What is written of an event that only adds to a text: the frame of such deltas, and the text."""

NOTHING: AddedText = (None, "")


class Content(Protocol):
    """Writes the items or blocks of one answer."""

    def add_text(self, event: Event, /) -> AddedText | None: ...

    def start_reasoning(self) -> WireEvents: ...

    def write_reasoning(self, event: Event, /) -> WireEvents: ...

    def end_reasoning(self, event: ReasoningEnded, /) -> WireEvents: ...

    def write_answer(self, event: ContentDelta, /) -> WireEvents: ...

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
        self._lane: int | None = None
        self._usage: Tokens | None = None
        self._error: ErrorDetail | None = None
        self._citations: list[CitationDelta] = []  # those that no text was open for

    def compose(self, event: Event) -> WireEvents:
        """Build what an event becomes in a stream."""
        self._room_left -= text_size(event)
        if self._is_over:
            return iter(())
        if self._room_left < 0:
            event = ResponseEnded(None, None, ok=False, error=ANSWER_TOO_LONG)
        return self._translate(event)

    def add_text(self, event: Event) -> AddedText | None:
        """Take an event that only adds to the text that is being written, as nearly all do.

        Return None for any other, which is not taken.
        """
        if not self._has_started or self._is_over or event.lane != self._lane:
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
        if not self._has_started:
            self._has_started = True
            yield from self._start(event)
        if self._is_other_choice(event.lane):
            return
        match event:
            case ContentDelta():
                yield from self._write_answer(event)
            case ReasoningStarted():
                yield from self._content.start_reasoning()
            case ReasoningEnded():
                yield from self._content.end_reasoning(event)
            case Finished():
                yield from self._finish(event)
            case UsageReported():
                self._usage = event.usage
            case ErrorReported():
                self._error = event.error
            case ResponseEnded():
                yield from self._end(event)
            case _:
                yield from self._content.write_reasoning(event)

    def _write_answer(self, event: ContentDelta) -> WireEvents:
        """Write a piece of the answer. Sources are named in the open text; without one, they wait
        for the next."""
        if isinstance(event, CitationDelta):
            self._citations.append(event)
        else:
            yield from self._content.write_answer(event)
        if self._citations and self._content.has_open_text:
            waiting, self._citations = self._citations, []
            for citation in waiting:
                yield from self._content.cite(citation)

    def _is_other_choice(self, lane: int | None) -> bool:
        """Return whether the event is of another choice than the first: the API has one."""
        self._lane = lane if self._lane is None else self._lane
        return lane is not None and lane != self._lane

    def _failure(self, event: ResponseEnded) -> ErrorDetail | None:
        """Return why the answer fails, if it does."""
        return event.error if event.ok else event.error or self._error or CONNECTION_LOST
