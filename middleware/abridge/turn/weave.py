"""The one legal order.

The Weaver takes what upstream says (turn events), what summarizers say (deltas, ends and failures
of parts) and moments in time, and returns what is to be done: events to emit, in order; `Ask` for a
part; `Cancel` one. It performs nothing, reads no clock and knows no API.

Theory of operation. Every event makes two passes. On *arrival* its reasoning is segmented and parts
are asked for; nothing ever waits. On *emission* the events of a lane leave in the order in which
they came, out of the lane's queue, and only two of them can wait:

* `Closed`, until every part due by then is closed: the lane *holds*, and what follows queues up
  behind it. A hold ends by itself, or at the lane's deadline, when complete parts are spoken whole,
  a speaking one is closed as it stands and the rest is cancelled.
* `Native`, while a part of ours is speaking: a part is closed before the next opens.

Between the emission of its `Opened` and its `Closed` an item's parts speak, the lowest one first,
whenever they have something to say. What concerns all lanes goes through a queue of its own: the
bill, a failure and the end wait until no lane has anything left.

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
"""What leaves at once where nothing is queued before it."""


@dataclass(slots=True, frozen=True)
class Ask:
    """Have this part written."""

    part: int
    item: ItemKey
    passage: Passage


@dataclass(slots=True, frozen=True)
class Cancel:
    """Stop writing this part; nothing more of it will be used. `late`: it was waited for, and did
    not even begin."""

    part: int
    late: bool = False


Effect: TypeAlias = Event | Ask | Cancel


class Weaver:
    """Weaves one response.

    `held` is what waits, in bytes on the wire, `holding` in how many lanes; `missed` and `pressed`
    say whether a hold ended for want of patience or at the ceiling of what may be held; `done`,
    whether the end was emitted.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lanes: dict[int, Lane] = {}
        self._shared: list[Event] = []
        self._asked: dict[int, tuple[Item, Part]] = {}
        self._count = 0
        self._ledger = Ledger()
        self._budget = Budget(plan.max_overhead)
        self._effects: list[Effect] = []
        self.held = 0
        self.holding = 0
        self.missed = False
        self.pressed = False
        self.done = False

    # What is to be looked at

    @property
    def held_for(self) -> float:
        """Seconds for which the answer has waited, in the lane that waited longest."""
        return max((lane.held_for for lane in self._lanes.values()), default=0.0)

    @property
    def spent(self) -> Tokens:
        """What summarizers have reported so far, also of a response that never ends."""
        return self._ledger.tokens

    @property
    def deadline(self) -> float | None:
        """When `tick` is due, if nothing else comes in before."""
        if not self.holding:
            return None
        lanes, first_token = self._lanes.values(), self._plan.first_token
        return min((moment for lane in lanes for moment in lane.moments(first_token)), default=None)

    # What comes in

    def upstream(self, event: Event, now: float) -> list[Effect]:
        """Upstream said something."""
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
        """A summarizer said some of a part."""
        if part in self._asked:
            self._asked[part][1].waiting.append(text)
            self._budget.write(part, text)
        return self._settle(now)

    def finished(
        self, part: int, now: float, spent: Tokens | None = None, model: str | None = None
    ) -> list[Effect]:
        """A summarizer has said all of a part, and what it spent if that was reported."""
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
        """A summarizer failed."""
        if part in self._asked:
            item, asked = self._asked.pop(part)
            self._book(part, spent, model)
            self._give_up(item, asked, trouble)
        return self._settle(now)

    def refused(self, part: int, now: float, trouble: Trouble = SHED) -> list[Effect]:
        """No summarizer may be asked for this part now.

        While its item's reasoning goes on, and nothing was said yet, the part stays planned, and
        joins the next one cut.
        """
        if part in self._asked:
            item, asked = self._asked.pop(part)
            if item.arriving and asked.silent:
                asked.asked_at = None
            else:
                self._give_up(item, asked, trouble)
        return self._settle(now)

    def tick(self, now: float) -> list[Effect]:
        """Time has passed."""
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
            self._give_up(item, last, DEADLINE)  # what nobody can wait for is not asked for

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _ask(self, item: Item, part: Part, now: float) -> None:
        """Ask for a part, if there is a budget for it; else it stays planned, as if refused."""
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
        """A call is over, or no longer waited for."""
        self._ledger.book(spent, model)
        self._budget.settle(part, spent)

    def _passage(self, item: Item, part: Part) -> Passage:
        style = self._plan.style or "auto"
        return Passage(part.text, style, part.whole, part.before, item.titles())

    def _give_way(self, item: Item) -> None:
        """Upstream summarizes this item itself: what of ours has not spoken never will."""
        item.owned = True
        for part in item.parts:
            if part.index is None:
                self._cancel(part)
                part.end(complete=False)

    def _break_off(self) -> None:
        """Upstream has failed: nothing more is asked for, what is being said ends as it stands."""
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
        """Let out what may leave, of one lane where nothing can have changed in the others."""
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
        """Let the lowest open part of the open item say what it has to say; when it is closed, the
        next."""
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
        """The first trouble with a summary, where the plan is that one ends the response."""
        troubles = (item.trouble for item in self._items() if item.trouble is not None)
        return next(troubles, None) if self._plan.fail else None

    # Patience

    def _lose_patience(self, lane: Lane, waiting: list[Part], now: float) -> bool:
        """Give up the parts waited for too long; return whether there were any."""
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
        """Too much is held: release the oldest holds until it is not."""
        holding = [lane for lane in self._lanes.values() if lane.held_since is not None]
        for lane in sorted(holding, key=lambda lane: lane.held_since or 0.0):
            self.pressed = True
            self._stop_waiting(lane, lane.waits_for(), PRESSED)
            self._drain(lane, now)
            if self.held <= self._plan.held:
                return
