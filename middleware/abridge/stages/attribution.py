"""Say of each call which reasoning led to it.

A call is attributed all reasoning since the call before it. A call without reasoning since then
refers to the turn's latest call that has some. Text in between changes nothing; the reasoning that
is left at the end of the turn led to its text.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from abridge.core.answer import Attribution, AttributionKind, AttributionPart
from abridge.core.by_number import ByNumber
from abridge.core.events import (
    Event,
    NativeSummary,
    PartStarted,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    SummaryTextDelta,
    ToolCallDelta,
)

RAW: AttributionKind = "reasoning_text"

SUMMARY: AttributionKind = "summary_text"

REDACTED: AttributionKind = "redacted"

ENTRY_OVERHEAD = 64
"""Characters that a part or a call counts for, beside its text."""


@dataclass(slots=True)
class _PendingPart:
    kind: AttributionKind
    stretch: Hashable
    pieces: list[str] = field(default_factory=list)


class Attributor:
    """Follow the reasoning and the calls of one turn.

    At most `max_chars` characters are kept. Beyond that nothing more is attributed, since a part of
    the reasoning would be misleading. With `native`, what is called raw is a summary already.
    """

    def __init__(self, max_chars: int, *, native: bool = False) -> None:
        self._chars_left = max_chars
        self._raw_kind = SUMMARY if native else RAW
        self._pending: list[_PendingPart] = []
        self._open_parts: dict[Hashable, _PendingPart] = {}
        self._latest: Attribution | None = None

    @property
    def is_over_limit(self) -> bool:
        """The turn had more reasoning than could be kept."""
        return self._chars_left < 0

    def add_reasoning(
        self, kind: AttributionKind, text: str, *, part: Hashable = 0, stretch: Hashable = 0
    ) -> None:
        """Add a piece of a part. A stretch is reasoning that may come both raw and summarized."""
        if not text:
            return
        kind = self._raw_kind if kind == RAW else kind
        pending = self._open_parts.get((stretch, kind, part))
        if pending is None:
            pending = self._open_parts[stretch, kind, part] = self._open_part(kind, stretch)
        pending.pieces.append(text)
        self._charge(len(text))

    def add_redacted(self, *, stretch: Hashable = 0) -> None:
        """Add reasoning that nobody shows; reasoning after it begins a new part."""
        self._open_parts.clear()
        self._open_part(REDACTED, stretch)
        self._charge(0)

    def attribute_call(self) -> Attribution:
        """Attribute the pending reasoning to the turn's next call."""
        self._charge(ENTRY_OVERHEAD)
        parts = self.unattributed
        self._clear_pending()
        if parts:
            self._latest = Attribution(parts)
            return self._latest
        return Attribution(source=None if self.is_over_limit else self._latest)

    @property
    def unattributed(self) -> tuple[AttributionPart, ...]:
        """The reasoning that no call was given: at the end of the turn, what led to its text."""
        stretches: dict[Hashable, list[AttributionPart]] = {}
        for pending in self._pending:
            part = AttributionPart(pending.kind, "".join(pending.pieces))
            stretches.setdefault(pending.stretch, []).append(part)
        return tuple(part for parts in stretches.values() for part in _preferred_parts(parts))

    def _open_part(self, kind: AttributionKind, stretch: Hashable) -> _PendingPart:
        self._chars_left -= ENTRY_OVERHEAD
        self._pending.append(_PendingPart(kind, stretch))
        return self._pending[-1]

    def _charge(self, size: int) -> None:
        self._chars_left -= size
        if self._chars_left < 0:
            self._clear_pending()

    def _clear_pending(self) -> None:
        self._pending.clear()
        self._open_parts.clear()


def _preferred_parts(parts: list[AttributionPart]) -> list[AttributionPart]:
    """Drop blank parts and, of a stretch, the less precise ones.

    Raw reasoning is preferred to its summary, and a summary to `redacted`.
    """
    nonblank = [part for part in parts if part.kind == REDACTED or part.text.strip()]
    kinds = {part.kind for part in nonblank}
    if RAW in kinds:
        return [part for part in nonblank if part.kind != SUMMARY]
    if SUMMARY in kinds:
        return [part for part in nonblank if part.kind == SUMMARY]
    return nonblank


class LaneAttributor(Attributor):
    """What is to be known of one lane."""

    def __init__(self, max_chars: int, *, native: bool) -> None:
        super().__init__(max_chars, native=native)
        self.stretches = 0
        self.states: list[Hashable] = []  # of the stretch, each by that which it is of
        self.calls: set[int] = set()  # that have begun


class CallAttribution:
    """Give each event that begins a call, as `extra`, what led to it: reasoning as it is shown.

    With `joins_stretches` the reasoning of an item is one text, however many stretches it comes in;
    else each stretch is told apart. Opaque state that `shows_state` is reasoning nobody can read.
    """

    def __init__(
        self,
        limit: int,
        *,
        shows_raw: bool,
        shows_summary: bool,
        native: bool,
        shows_state: bool = True,
        joins_stretches: bool = False,
    ) -> None:
        self._shows_raw = shows_raw
        self._shows_summary = shows_summary
        self._shows_state = shows_state
        self._joins_stretches = joins_stretches
        self.turns: ByNumber[int, LaneAttributor] = ByNumber(
            lambda _: LaneAttributor(limit, native=native)
        )

    def take(self, events: Iterable[Event]) -> None:
        """Take events in the order in which they are written."""
        for event in events:
            self.note(event)

    def note(self, event: Event) -> None:
        note = self._NOTES.get(type(event))
        if note is not None and event.lane is not None:
            note(self, self.turns[event.lane], event)

    def _start_stretch(self, turn: LaneAttributor, _: ReasoningStarted) -> None:
        turn.stretches += 1

    def _add_raw(self, turn: LaneAttributor, event: ReasoningDelta) -> None:
        if self._shows_raw:
            turn.add_reasoning(RAW, event.text, stretch=self._stretch(turn, event.item))

    def _add_summary(self, turn: LaneAttributor, event: SummaryTextDelta | NativeSummary) -> None:
        if self._shows_summary or isinstance(event, SummaryTextDelta):
            stretch = self._stretch(turn, event.item)
            turn.add_reasoning(SUMMARY, event.text, part=event.index, stretch=stretch)

    def _stretch(self, turn: LaneAttributor, item: int) -> Hashable:
        return item if self._joins_stretches else turn.stretches

    def _add_state(self, turn: LaneAttributor, event: ProviderState) -> None:
        if self._shows_state and not (event.signs or event.withheld):
            turn.states.append(event.item if self._joins_stretches else object())

    def _end_stretch(self, turn: LaneAttributor, _: ReasoningEnded) -> None:
        """State is written after the texts of its stretch."""
        states, turn.states = turn.states, []
        for stretch in states:
            turn.add_redacted(stretch=stretch)

    def _start_call(self, turn: LaneAttributor, event: ToolCallDelta) -> None:
        self._begin_call(turn, event, event.call_index)

    def _start_part(self, turn: LaneAttributor, event: PartStarted) -> None:
        part = event.part
        if part is not None and part.kind == "call":
            self._begin_call(turn, event, part.number)
        elif part is not None and part.kind == "redacted":
            turn.add_redacted(stretch=part)

    def _begin_call(self, turn: LaneAttributor, event: Event, number: int) -> None:
        if number not in turn.calls:
            turn.calls.add(number)
            event.extra = turn.attribute_call()

    _NOTES: ClassVar[dict[type[Event], Callable[[CallAttribution, LaneAttributor, Any], None]]] = {
        ReasoningStarted: _start_stretch,
        ReasoningDelta: _add_raw,
        SummaryTextDelta: _add_summary,
        NativeSummary: _add_summary,
        ProviderState: _add_state,
        ReasoningEnded: _end_stretch,
        ToolCallDelta: _start_call,
        PartStarted: _start_part,
    }
