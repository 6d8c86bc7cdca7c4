"""The Sequencer: puts upstream's events and the summary's events into the one legal order.

It is given upstream's events, the output of summarizers (deltas, ends and failures of parts) and
the time. It returns what to do, in order: events to emit, `RequestPart` to have a summary part
written, `CancelPart` to stop that. It performs no I/O, reads no clock and knows no API.

Theory of operation. Every event is processed twice, on arrival and on emission.

On arrival its reasoning goes to the item's segmenter, and the parts that the segmenter cuts are
requested. Nothing waits here.

On emission the events of a lane leave its queue in the order in which they arrived. Only two kinds
of event can wait at the head of a queue:

* `ReasoningEnded` waits until every summary part due by then is closed. Meanwhile the lane *holds*:
  what follows queues up behind the event. A hold ends when the parts are done. It is ended by the
  lane's deadline, at which its grace is used up, or when too many bytes are held: a part whose text
  is complete is then emitted whole, one that is being emitted is closed as it stands, and the rest
  is cancelled. A part without any text is given up earlier, after the first-token timeout.
* `NativeSummary` waits while a part of ours is being emitted, since a part must be closed before
  the next one opens.

Between the emission of an item's `ReasoningStarted` and of its `ReasoningEnded` the item's summary
parts are emitted as their text comes in, one after the other, the lowest first.

Events that concern all lanes have a queue of their own. `UsageReported`, `ErrorReported` and
`ResponseEnded` wait there until the queues of all lanes are empty.

Times are in seconds, on a clock that stands still while the client is not reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from abridge.turn.budget import Budget
from abridge.turn.conversation import ItemKey
from abridge.turn.events import (
    Billed,
    Closed,
    Ended,
    Event,
    Failed,
    Native,
    Opened,
    Other,
    PartClosed,
    PartOpened,
    PartSaid,
    Raw,
    Said,
    Trouble,
)
from abridge.turn.item import Item
from abridge.turn.lane import Lane
from abridge.turn.part import Part, Passage
from abridge.turn.plan import Plan
from abridge.turn.usage import Ledger, Tokens
from abridge.turn.weight import weight

DEADLINE = Trouble("deadline", "The summary was not ready in time.")
PRESSED = Trouble("deadline", "Too much of the answer was waiting for the summary.")
TIMEOUT = Trouble("timeout", "The summarizer did not begin in time.")
EMPTY = Trouble("empty", "The summarizer said nothing.")
SHED = Trouble("shed", "Too many summaries were being made at once.")
CUT_OFF = Trouble("upstream_error", "The response broke off before its summary was made.")

NEVER_WAITS = (Raw, Said, Other)
"""Events that are emitted at once if nothing is queued before them."""


@dataclass(slots=True, frozen=True)
class Ask:
    """Have this part written."""

    part: int
    item: ItemKey
    passage: Passage


@dataclass(slots=True, frozen=True)
class Cancel:
    """Stop writing this part; nothing more of it will be used."""

    part: int
    late: bool = False  # it had no text by the first-token timeout


Effect: TypeAlias = Event | Ask | Cancel


class Weaver:
    """Sequences one response."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lanes: dict[int, Lane] = {}
        self._shared: list[Event] = []
        self._asked: dict[int, tuple[Item, Part]] = {}
        self._count = 0
        self._ledger = Ledger()
        self._budget = Budget(plan.max_overhead)
        self._effects: list[Effect] = []
        self.held = 0  # bytes that wait, as on the wire
        self.holding = 0  # number of lanes that hold
        self.missed = False  # a hold ended by timeout
        self.pressed = False  # a hold ended because too many bytes were held
        self.done = False  # ResponseEnded was emitted

    # State

    @property
    def held_for(self) -> float:
        """Seconds for which the answer has waited, in the lane that waited longest."""
        return max((lane.held_for for lane in self._lanes.values()), default=0.0)

    @property
    def spent(self) -> Tokens:
        """Usage that summarizers have reported so far, also for a response that never ends."""
        return self._ledger.tokens

    @property
    def deadline(self) -> float | None:
        """Time at which `tick` is due if nothing else comes in before; None if nothing waits."""
        if not self.holding:
            return None
        lanes, first_token = self._lanes.values(), self._plan.first_token
        return min((moment for lane in lanes for moment in lane.moments(first_token)), default=None)

    # Input

    def upstream(self, event: Event, now: float) -> list[Effect]:
        """Take an event from upstream."""
        lane = self._lane(event.lane) if event.lane is not None else None
        if lane is not None and not lane.queue and isinstance(event, NEVER_WAITS):
            self._arrive(lane, event, now)
            self._effects.append(event)
            return self._take_effects()
        self.held += weight(event)
        if lane is not None:
            lane.queue.append(event)
            self._arrive(lane, event, now)
            return self._settle(now, lane)
        self._shared.append(event)
        if isinstance(event, Failed) or (isinstance(event, Ended) and not event.ok):
            self._break_off()
        return self._settle(now)

    def said(self, part: int, text: str, now: float) -> list[Effect]:
        """Take a piece of a part's text from its summarizer."""
        if part in self._asked:
            self._asked[part][1].waiting.append(text)
            self._budget.write(part, text)
        return self._settle(now)

    def finished(
        self, part: int, now: float, spent: Tokens | None = None, model: str | None = None
    ) -> list[Effect]:
        """Take the end of a part's text, with the usage if the summarizer reported it."""
        if part in self._asked:
            item, asked = self._asked.pop(part)
            self._book(part, spent, model)
            if asked.silent:
                self._give_up(item, asked, EMPTY)
            else:
                asked.end(complete=True)
        return self._settle(now)

    def failed(
        self,
        part: int,
        trouble: Trouble,
        now: float,
        spent: Tokens | None = None,
        model: str | None = None,
    ) -> list[Effect]:
        """Take a summarizer's failure."""
        if part in self._asked:
            item, asked = self._asked.pop(part)
            self._book(part, spent, model)
            self._give_up(item, asked, trouble)
        return self._settle(now)

    def refused(self, part: int, now: float, trouble: Trouble = SHED) -> list[Effect]:
        """Take note that no summarizer may be called for this part now.

        While its item's reasoning goes on, and none of its text has come, the part stays planned
        and is merged with the next one that is cut.
        """
        if part in self._asked:
            item, asked = self._asked.pop(part)
            if item.arriving and asked.silent:
                asked.asked_at = None
            else:
                self._give_up(item, asked, trouble)
        return self._settle(now)

    def tick(self, now: float) -> list[Effect]:
        """Take note of the time."""
        return self._settle(now)

    # Arrival

    def _lane(self, number: int) -> Lane:
        if number not in self._lanes:
            self._lanes[number] = Lane(self._plan.grace)
        return self._lanes[number]

    def _arrive(self, lane: Lane, event: Event, now: float) -> None:
        if isinstance(event, Raw):
            self._budget.earn(event.text)
            item = lane.items.get(event.item)
            if item is not None and item.arriving and not item.owned:
                for cut in item.segmenter.feed(event.text):
                    self._ask(item, item.plan(self._number(), cut), now)
        elif isinstance(event, Said):
            self._budget.earn(event.text)
        elif isinstance(event, Opened):
            self._open(lane, event)
        elif isinstance(event, Native):
            self._give_way(lane.items[event.item])
        elif isinstance(event, Closed):
            self._close(lane, lane.items[event.item], now)

    def _open(self, lane: Lane, event: Opened) -> None:
        item = lane.items.get(event.item)
        if item is None:
            key = event.lane or 0, event.item
            item = lane.items[event.item] = Item(key, self._plan.segmenter())
        else:
            item.segmenter.reopen()
        item.arrived += 1
        item.arriving = self._plan.style is not None

    def _close(self, lane: Lane, item: Item, now: float) -> None:
        if not item.arriving:
            return
        item.arriving = False
        cut = None if item.owned else item.segmenter.close()
        last = item.plan(self._number(), cut) if cut is not None else item.unasked()
        if last is None:
            return
        if lane.grace > 0:
            self._ask(item, last, now)
        else:
            self._give_up(item, last, DEADLINE)  # not waited for, so not requested

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _ask(self, item: Item, part: Part, now: float) -> None:
        """Request a part if the budget allows it; if not, it stays planned, as if refused."""
        if not self._budget.allows_more():
            if not item.arriving:
                part.end(complete=False)
            return
        part.asked_at = now
        passage = self._passage(item, part)
        self._asked[part.id] = item, part
        self._budget.ask(part.id, passage)
        self._effects.append(Ask(part.id, item.key, passage))

    def _book(self, part: int, spent: Tokens | None, model: str | None = None) -> None:
        """Record the usage of a call that is over or cancelled."""
        self._ledger.book(spent, model)
        self._budget.settle(part, spent)

    def _passage(self, item: Item, part: Part) -> Passage:
        style = self._plan.style or "auto"
        return Passage(part.text, style, part.whole, part.before, item.titles())

    def _give_way(self, item: Item) -> None:
        """End the parts that are not announced yet: upstream summarizes this item itself."""
        item.owned = True
        for part in item.parts:
            if part.index is None:
                self._cancel(part)
                part.end(complete=False)

    def _break_off(self) -> None:
        """Upstream has failed: cancel all parts; the one being emitted closes as it stands."""
        for item in self._items():
            item.arriving = False
        for item, part in list(self._asked.values()):
            self._cancel(part)
            part.end(complete=False)
            item.trouble = item.trouble or CUT_OFF

    def _cancel(self, part: Part, *, late: bool = False) -> None:
        if self._asked.pop(part.id, None) is not None:
            self._book(part.id, None)
            self._effects.append(Cancel(part.id, late))

    def _give_up(self, item: Item, part: Part, trouble: Trouble) -> None:
        """Use the fallback for a failed part of which nothing was emitted, else end it."""
        item.trouble = item.trouble or trouble
        substitute = self._plan.substitute if part.index is None else None
        text = substitute(self._passage(item, part)) if substitute is not None else ""
        if text:
            part.stand_in(text)
            self._ledger.note_extract()
        else:
            part.end(complete=False)

    # Emission

    def _settle(self, now: float, only: Lane | None = None) -> list[Effect]:
        """Emit what may leave: of one lane, if nothing can have changed in the others."""
        for lane in self._lanes.values() if only is None else (only,):
            self._drain(lane, now)
        if self.held > self._plan.held:
            self._press(now)
        if self._shared:
            self._drain_shared()
        return self._take_effects()

    def _take_effects(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    def _drain(self, lane: Lane, now: float) -> None:
        self._speak(lane)
        while lane.queue:
            waiting = lane.waits_for()
            if not waiting:
                self._pass(lane)
            elif self._lose_patience(lane, waiting, now):
                self._speak(lane)
            else:
                return
        if lane.held_since is not None:
            lane.release(now - lane.held_since)
            self.holding -= 1

    def _pass(self, lane: Lane) -> None:
        event = lane.queue.popleft()
        self.held -= weight(event)
        if isinstance(event, Native):
            event = replace(event, part=lane.items[event.item].native_index(event.part))
        elif isinstance(event, Closed):
            lane.speaker = None
            event = replace(event, summary=lane.items[event.item].summary())
        self._effects.append(event)
        if isinstance(event, Opened):
            lane.speaker = lane.items[event.item]
            lane.speaker.shown += 1
            self._speak(lane)

    def _speak(self, lane: Lane) -> None:
        """Emit what there is of the open item's parts, the lowest unclosed one first."""
        item = lane.speaker
        if item is None or item.silent:
            return
        number, place = item.key
        for part in item.due():
            if part.waiting:
                if part.index is None:
                    part.index = item.next_index()
                    self._effects.append(PartOpened(number, None, place, part.index))
                self._effects.append(PartSaid(number, None, place, part.index, part.say()))
            if not part.ended:
                return
            part.close()
            if part.index is not None:
                text = "".join(part.said)
                closed = PartClosed(number, None, place, part.index, text, part.complete)
                self._effects.append(closed)

    def _drain_shared(self) -> None:
        while self._shared:
            event = self._shared[0]
            if isinstance(event, Billed | Failed | Ended) and any(
                lane.queue for lane in self._lanes.values()
            ):
                return
            self._shared.pop(0)
            self.held -= weight(event)
            if isinstance(event, Billed | Ended):
                trouble = event.trouble or self._fatal()
                event = replace(event, share=self._ledger.share(), trouble=trouble)
            if isinstance(event, Ended):
                summaries = {item.key: item.summary() for item in self._items()}
                event = replace(event, summaries=summaries)
                self.done = True
            self._effects.append(event)

    def _items(self) -> Iterator[Item]:
        return (item for lane in self._lanes.values() for item in lane.items.values())

    def _fatal(self) -> Trouble | None:
        """Return the first error of a summary if the plan is that one fails the response."""
        troubles = (item.trouble for item in self._items() if item.trouble is not None)
        return next(troubles, None) if self._plan.fail else None

    # End of waiting

    def _lose_patience(self, lane: Lane, waiting: list[Part], now: float) -> bool:
        """Give up the parts that were waited for too long; return True if there were any."""
        if lane.held_since is None:
            lane.held_since = now
            self.holding += 1
        since = lane.held_since
        if now >= since + lane.grace:
            self.missed = True
            return self._stop_waiting(lane, waiting, DEADLINE)
        silent = [
            part
            for part in waiting
            if part.silent and now >= max(since, part.asked_at or since) + self._plan.first_token
        ]
        self.missed = self.missed or bool(silent)
        return self._stop_waiting(lane, silent, TIMEOUT)

    def _stop_waiting(self, lane: Lane, parts: list[Part], trouble: Trouble) -> bool:
        for part in parts:
            if not part.ended and lane.speaker is not None:
                self._cancel(part, late=trouble is TIMEOUT)
                self._give_up(lane.speaker, part, trouble)
        return bool(parts)

    def _press(self, now: float) -> None:
        """Release the oldest holds until no more than the limit is held."""
        holding = [lane for lane in self._lanes.values() if lane.held_since is not None]
        for lane in sorted(holding, key=lambda lane: lane.held_since or 0.0):
            self.pressed = True
            self._stop_waiting(lane, lane.waits_for(), PRESSED)
            self._drain(lane, now)
            if self.held <= self._plan.held:
                return
