"""The Sequencer's state: lanes, the reasoning items in each, and the parts of an item's summary."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from math import inf
from typing import TypeAlias

from abridge.core.by_number import ByNumber
from abridge.core.conversation import ItemKey
from abridge.core.events import (
    ErrorDetail,
    Event,
    ItemSummary,
    NativeSummary,
    ReasoningEnded,
    ReasoningTextEnded,
    SummaryPartAdded,
    SummaryPartDone,
    SummaryTextDelta,
)
from abridge.core.native import NativePiece, TitleSplitter
from abridge.core.plan import Passage, SummaryPlan
from abridge.core.segmenter import GAP, Cut, Segmenter
from abridge.core.styles import body_of

NO_PART_ID = 0
"""The id of a part that no summarizer writes."""

GIVEN_UP_AT_ONCE = 4
"""Parts of a lane given up in one step, since for each a fallback may take some milliseconds. The
others are due at once, and so given up in the next step."""


@dataclass(slots=True)
class PartIds:
    """The ids of the parts of a response, from 1; a counter that can be copied."""

    last: int = NO_PART_ID

    def __next__(self) -> int:
        self.last += 1
        return self.last


@dataclass(slots=True)
class SummaryPart:
    id: int
    stretch: int  # the stretch of its item by whose end the part is due
    reasoning: str  # the reasoning to summarize
    before: str  # the reasoning just before it
    whole: bool  # see Passage
    queued: bool = False  # it will be requested when it is its turn
    requested_at: float | None = None  # None if not requested yet, or refused
    unsent: list[str] = field(default_factory=list)
    """Received from the summarizer, not emitted yet."""
    sent: list[str] = field(default_factory=list)  # emitted
    index: int | None = None  # None until its SummaryPartAdded is emitted
    ended: bool = False  # no more text will come
    complete: bool = False  # the summarizer finished its text
    extracted: bool = False  # the text is a fallback, not the summarizer's
    closed: bool = False  # nothing is left to emit

    @property
    def is_planned(self) -> bool:
        """Not requested yet, or refused."""
        return self.requested_at is None and not self.ended

    @property
    def is_silent(self) -> bool:
        """No text has come for it yet."""
        return self.index is None and not self.unsent and not self.ended

    @property
    def is_streaming(self) -> bool:
        """Between its SummaryPartAdded and its SummaryPartDone."""
        return self.index is not None and not self.closed

    @property
    def text(self) -> str:
        """All the text that has come for it."""
        return "".join([*self.sent, *self.unsent])

    def take_unsent(self) -> str:
        """Return the text that is to be emitted now, and count it as emitted."""
        text = "".join(self.unsent)
        self.unsent.clear()
        self.sent.append(text)
        return text

    def end(self, *, complete: bool) -> None:
        self.ended, self.complete = True, complete
        if not complete and self.index is None:
            self.unsent.clear()  # a part that fails before it was announced leaves no trace

    def close(self) -> None:
        """Mark the part as closed and free its reasoning, which may be large."""
        self.closed = True
        self.reasoning = self.before = ""

    def use_fallback(self, text: str) -> None:
        """Use `text` in place of what the summarizer would have written."""
        self.extracted = True
        self._use(text)

    def use_reasoning(self) -> None:
        """Use the reasoning itself, which is a summary already."""
        self._use(self.reasoning.strip())

    def _use(self, text: str) -> None:
        self.unsent = [text]
        self.end(complete=True)


@dataclass(slots=True)
class ReasoningItem:
    key: ItemKey
    segmenter: Segmenter
    title_splitter: TitleSplitter | None = None
    """Splits reasoning that is a summary already, to copy it into parts, or to translate them."""
    is_native: bool = False  # its reasoning is a summary already
    parts_come_whole: bool = False  # they are emitted when they are written
    stretches_read: int = 0  # stretches that upstream has begun
    is_arriving: bool = False  # its reasoning is still coming in
    stretches_emitted: int = 0  # stretches whose ReasoningStarted was emitted
    parts: list[SummaryPart] = field(default_factory=list)
    closed_parts: int = 0  # parts at the beginning of the list that were closed when last looked at
    indexes_used: int = 0  # number of part indexes given out
    native_indexes: dict[int, int] = field(default_factory=dict)
    """From upstream's index of a native part to the item's index."""
    has_native_summary: bool = False  # upstream makes a summary of this item
    error: ErrorDetail | None = None  # the first thing that went wrong
    is_error_told: bool = False  # at the end of a stretch

    @classmethod
    def for_plan(cls, key: ItemKey, plan: SummaryPlan) -> ReasoningItem:
        is_native = plan.native in ("shown", "copied")
        splitter = plan.new_title_splitter()
        come_whole = plan.in_turn and plan.native is None
        return cls(key, plan.new_segmenter(), splitter, is_native, come_whole)

    def plan_part(self, part_id: int, cut: Cut) -> SummaryPart:
        """Add `cut` to the last part if that is not requested yet, else to a new one; return it."""
        last = self.unrequested_part()
        if last is not None:
            last.reasoning += cut.text
            last.unsent.clear()
            last.stretch = self.stretches_read
            return last
        whole = not self.is_arriving and not self.parts
        self.parts.append(SummaryPart(part_id, self.stretches_read, cut.text, cut.before, whole))
        return self.parts[-1]

    def unrequested_part(self) -> SummaryPart | None:
        """Return the last part if it is not requested yet, nor to be requested in its turn."""
        last = self.parts[-1] if self.parts else None
        return last if last is not None and last.is_planned and not last.queued else None

    def hand_on(self, part: SummaryPart) -> bool:
        """Have the little that a written part tells told with what follows: what comes next of its
        stretch, for which it keeps its text until then, or the next part. Return False if nothing
        follows: then it is to be shown, unless it is a title alone."""
        body = body_of(part.text)
        rest = f"{body}\n\n{GAP}\n\n" if body else ""
        if self.gathers_for(part):
            part.reasoning, part.requested_at = rest, None
            return True
        if (following := self.next_queued()) is not None:
            following.reasoning = rest + following.reasoning
        elif body:
            return False
        part.unsent.clear()
        part.end(complete=True)
        return True

    def gathers_for(self, part: SummaryPart) -> bool:
        """Return whether what comes next of its stretch of reasoning can be added to a part."""
        is_last = part is self.parts[-1] and part.stretch == self.stretches_read
        return self.is_arriving and is_last

    def take_text(self, text: str) -> Sequence[Cut]:
        """Take reasoning; return what is to be summarized of it: nothing if upstream does that, or
        no more reasoning is to come."""
        if not self.is_arriving:
            return ()
        if self.is_native:
            self.has_native_summary = self.has_native_summary or bool(text.strip())
            if self.title_splitter is not None:
                self._copy(self.title_splitter.feed(text))
            return ()
        if self.has_native_summary:
            return ()
        if self.title_splitter is not None:
            return self._cut_at_titles(self.title_splitter.feed(text))
        return self.segmenter.feed(text)

    @property
    def room(self) -> float:
        """The size of reasoning that is only gathered."""
        if self.is_arriving and (self.is_native or self.title_splitter is not None):
            return 0
        return self.segmenter.room if self.is_arriving and not self.has_native_summary else inf

    def _cut_at_titles(self, pieces: list[NativePiece]) -> list[Cut]:
        """Return what is to be translated by now: each title begins a part, and a paragraph where
        it is added to the part before."""
        cuts: list[Cut] = []
        for piece in pieces:
            if piece.begins and (before := self.segmenter.end_stretch()) is not None:
                cuts.append(Cut(f"{before.text}\n\n", before.before))
            cuts += self.segmenter.feed(piece.text)
        return cuts

    def end_text(self) -> Cut | None:
        """End a stretch of reasoning; return what is left to be summarized of it."""
        splitter, rest = self.title_splitter, list[Cut]()
        if splitter is not None and self.is_native:
            self._copy(splitter.end())
            self._end_copied(complete=not splitter.is_full)
        elif splitter is not None:
            rest = self._cut_at_titles(splitter.end())
        is_summarized = self.is_native or self.has_native_summary
        last = None if is_summarized else self.segmenter.end_stretch()
        if not rest:
            return last
        rest += [] if last is None else [last]
        return Cut("".join(cut.text for cut in rest), rest[0].before)

    def yield_to_native(self) -> None:
        """Note that upstream makes a summary beside the reasoning: that is no summary then."""
        if self.title_splitter is not None:
            self.end_text()
        self.has_native_summary, self.title_splitter = True, None

    def _copy(self, pieces: list[NativePiece]) -> None:
        for piece in pieces:
            if piece.begins:
                self._end_copied(complete=True)
                part = SummaryPart(NO_PART_ID, self.stretches_read, "", "", whole=False)
                part.requested_at = 0.0
                self.parts.append(part)
            self.parts[-1].unsent.append(piece.text)

    def _end_copied(self, *, complete: bool) -> None:
        if self.parts and not self.parts[-1].ended:
            self.parts[-1].end(complete=complete)

    @property
    def is_idle(self) -> bool:
        """No part has anything to emit."""
        return not self.parts or self.parts[-1].closed

    def due_parts(self) -> Iterator[SummaryPart]:
        """Yield the unclosed parts that are due by the end of the emitted stretch, lowest first."""
        while self.closed_parts < len(self.parts) and self.parts[self.closed_parts].closed:
            self.closed_parts += 1
        return (
            part
            for part in islice(self.parts, self.closed_parts, None)
            if not part.closed and part.stretch <= self.stretches_emitted
        )

    def take_summary(self) -> Iterator[Event]:
        """Yield the events for what there is of its due parts, the lowest unclosed one first."""
        lane, item = self.key
        for part in self.due_parts():
            if part.unsent and (part.ended or not self.parts_come_whole):
                if part.index is None:
                    part.index = self.take_index()
                    yield SummaryPartAdded(lane, None, item, part.index)
                yield SummaryTextDelta(lane, None, item, part.index, part.take_unsent())
            if not part.ended:
                return
            part.close()
            if part.index is not None:
                text = "".join(part.sent)
                yield SummaryPartDone(lane, None, item, part.index, text, part.complete)

    @property
    def told(self) -> tuple[str, ...]:
        """The texts of the parts that are written."""
        return tuple(text for one in self.parts if one.ended and (text := one.text))

    @property
    def is_written_to(self) -> bool:
        """A part of it is requested and not complete."""
        return any(part.requested_at is not None and not part.ended for part in self.parts)

    def next_queued(self) -> SummaryPart | None:
        """Return the part whose turn it is, if one waits for its turn."""
        return next((part for part in self.parts if part.queued and not part.ended), None)

    def build_passage(self, part: SummaryPart, plan: SummaryPlan) -> Passage:
        """Build the input for a part, which tells what the parts before it say so far."""
        return Passage(
            part.reasoning,
            plan.style or "auto",
            part.whole,
            last=not self.is_arriving and part is self.parts[-1],
            before=part.before,
            told=self.told,
            language=plan.language,
            translates=plan.native == "translated",
            hidden=plan.hidden,
        )

    def take_index(self) -> int:
        self.indexes_used += 1
        return self.indexes_used - 1

    def index_of_native(self, native_part: int) -> int:
        if native_part not in self.native_indexes:
            self.native_indexes[native_part] = self.take_index()
        return self.native_indexes[native_part]

    def tell_summary(self) -> ItemSummary:
        """Return the summary as a stretch ends. What went wrong is told at one end only."""
        summary = self.build_summary()
        if self.is_error_told:
            return replace(summary, error=None)
        self.is_error_told = summary.error is not None
        return summary

    def build_summary(self) -> ItemSummary:
        announced = [part for part in self.parts if part.index is not None]
        return ItemSummary(
            parts=tuple("".join(part.sent) for part in announced),
            error=self.error,
            native=self.has_native_summary,
            unfinished=sum(not part.complete for part in self.parts),
            extracted=sum(part.extracted for part in announced),
        )


NO_EVENTS = deque[Event](maxlen=0)
"""The queue of every lane in which nothing waits: an empty one takes 760 bytes."""


@dataclass(slots=True, eq=False)
class Lane:
    grace_left: float  # seconds that the lane may still wait
    queue: deque[Event] = field(default_factory=lambda: NO_EVENTS)
    """Events that have arrived and are not emitted yet; `push` and `pop` them."""
    items: dict[int, ReasoningItem] = field(default_factory=dict)
    open_item: ReasoningItem | None = None
    """The item between its ReasoningStarted and ReasoningEnded, as emitted."""
    held_since: float | None = None  # start of the present hold
    due: float | None = None  # when waiting ends unless something comes in before; None: no hold
    held_seconds: float = 0.0  # seconds of all holds that are over

    def push(self, event: Event) -> None:
        if self.queue:
            self.queue.append(event)
        else:
            self.queue = deque((event,))

    def pop(self) -> Event:
        event = self.queue.popleft()
        if not self.queue:
            self.queue = NO_EVENTS
        return event

    def blocking_parts(self) -> list[SummaryPart]:
        """Return the parts that keep the head of the queue from being emitted."""
        head = self.queue[0] if self.queue else None
        if isinstance(head, ReasoningEnded):
            return list(self.items[head.item].due_parts())
        if isinstance(head, NativeSummary):
            return [part for part in self.items[head.item].parts if part.is_streaming]
        return []

    def silent_parts(self, timeout: float, now: float) -> list[SummaryPart]:
        """Return the parts that are waited for, of which no text has come in time."""
        return [
            part
            for part in self.blocking_parts()
            if part.is_silent and now >= self._silence_began(part) + timeout
        ]

    def note_due(self, first_token_timeout: float) -> None:
        """Note when waiting ends: for the hold, or for a part without text."""
        if self.held_since is None:
            self.due = None
            return
        silent = (part for part in self.blocking_parts() if part.is_silent)
        first_texts = (self._silence_began(part) + first_token_timeout for part in silent)
        self.due = min(chain((self.held_since + self.grace_left,), first_texts))

    def _silence_began(self, part: SummaryPart) -> float:
        return max(self.held_since or 0.0, part.requested_at or 0.0)

    def end_hold(self, seconds: float) -> None:
        """End the hold, which has lasted for `seconds`."""
        self.held_seconds += seconds
        self.grace_left -= seconds
        self.held_since = self.due = None


class Lanes(ByNumber["int | None", Lane]):
    """The lanes of a response."""

    def __init__(self, grace: float) -> None:
        super().__init__(lambda _: Lane(grace))

    @property
    def all_items(self) -> Iterator[ReasoningItem]:
        return (item for lane in self.values() for item in lane.items.values())

    @property
    def first_error(self) -> ErrorDetail | None:
        """The first error of a summary."""
        return next((item.error for item in self.all_items if item.error is not None), None)

    def of(self, item: ReasoningItem) -> Lane | None:
        """Return an item's lane; None if its key does not tell."""
        number, key = item.key
        lane = self.get(number)
        return lane if lane is not None and lane.items.get(key) is item else None


ItemCut: TypeAlias = tuple[ReasoningItem, Cut]
"""What is to be summarized of an item's reasoning."""


def with_text_ends(events: Iterable[Event]) -> Iterator[Event]:
    """Yield events, and before an end of reasoning without a frame that its text has ended: the end
    itself waits for the summary. Where there are frames, upstream's own tell."""
    for event in events:
        if isinstance(event, ReasoningEnded) and event.frame is None:
            yield ReasoningTextEnded(event.lane, None, event.item)
        yield event
