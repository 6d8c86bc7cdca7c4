"""A reader with stages behind it: what they make of its events is what the rest gets to see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Protocol

from abridge.apis.display import Display
from abridge.apis.protocols import Continuation, EventReader
from abridge.core.answer import Part
from abridge.core.conversation import RecordedTurn
from abridge.core.events import ErrorDetail, Event, PartEnded, PartStarted, said_text
from abridge.providers.learned import NO_OBSERVATION, Observation
from abridge.providers.profile import Profile
from abridge.stages.order import Order
from abridge.stages.thinking import Thinking


class ReaderOfParts(EventReader, Protocol):
    """A reader whose events name their parts, in the order in which upstream sent them."""

    def record(self, parts: Sequence[Part]) -> list[RecordedTurn]:
        """Return the turns of an answer that consists of these parts."""


def expects_thinking(profile: Profile, display: Display) -> bool:
    """Return whether texts are to be looked through: not where it is of no interest what they hold,
    nor where no thinking is to be expected in them."""
    replaces_raw = display.style is not None or not display.show_raw
    return display.hides_raw or (replaces_raw and "tags" in profile.reasoning_in)


class StagedReader:
    """Read one response. See the protocol `Reader`. The APIs that are read so have no final texts
    beside deltas, and leave providers no choice of format."""

    mismatches = 0

    def __init__(
        self,
        new_reader: Callable[[Display, int], ReaderOfParts],
        profile: Profile,
        display: Display,
        limit: int,
        *,
        alternating: bool,
    ) -> None:
        self._reader = new_reader(display, limit)
        self._tells_bounds = not alternating
        items = count(-1, -1)
        self._order = Order(limit, items, ("call",) if alternating else ())
        self._thinking: Thinking | None = None
        if expects_thinking(profile, display):
            self._thinking = Thinking(
                profile,
                limit,
                items,
                hides_raw=display.hides_raw,
                drops_inline=display.drops_inline,
                hidden=display.hidden,
            )
        self._parts: dict[Part, None] = {}  # in the order in which they began
        self.continuation: Continuation | None = None
        self._has_failed = False

    @property
    def dropped(self) -> int:
        return self._reader.dropped + (0 if self._thinking is None else self._thinking.dropped)

    @property
    def faults(self) -> int:
        return self._reader.faults + self._order.faults

    def read(self, frame: bytes) -> list[Event]:
        read = self._reader.read(frame)
        events, found = self._pass_on(read), self._reader.continuation
        self.continuation = None
        if found is not None and events and events[-1] is read[-1]:
            part = events[-1].part
            if part is not None and part is self._order.next_part:
                self.continuation = pass_by(found, part, self._thinking)
        return events

    def end(self, error: ErrorDetail | None = None) -> list[Event]:
        return self._pass_on(self._reader.end(error))

    def read_whole(self, body: bytes) -> list[Event]:
        return self._pass_on(self._reader.read_whole(body))

    def recorded_turns(self) -> list[RecordedTurn]:
        return self._reader.record(list(self._parts))

    def observed(self) -> Observation:
        return NO_OBSERVATION

    def _pass_on(self, events: list[Event]) -> list[Event]:
        events = self._order.take(events)
        if self._thinking is not None:
            events = self._thinking.take(events)
        for event in events:
            if event.part is not None:
                self._parts.setdefault(event.part)
                note_shown(event)
        if not self._tells_bounds:
            events = [event for event in events if not isinstance(event, PartStarted | PartEnded)]
        failure = self._order.failure
        if failure is None or self._has_failed:
            return events
        self._has_failed = True
        self._order.failure = None
        return [*events, *self._pass_on(self._reader.end(failure))]


def pass_by(found: Continuation, part: Part, thinking: Thinking | None) -> Continuation | None:
    """Return how a part is continued past the stage that takes thinking out; None if that has to
    see its next text."""
    if part.shown is not None:
        found = found._replace(keeps=(*found.keeps, part.shown.append))
    return found if thinking is None else found.looked_at(thinking.accepts(part))


def note_shown(event: Event) -> None:
    """Note the text that goes out of a part which a stage may change."""
    part = event.part
    if part is not None and part.shown is not None and (said := said_text(event)):
        part.shown.append(said)
