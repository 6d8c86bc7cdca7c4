"""Put upstream's events and the summary's events into the one legal order.

The Sequencer is given upstream's events, the output of summarizers (deltas, ends and failures of
parts) and the time. It returns what to do, in order: events to emit, `RequestPart` to have a
summary part written, `CancelPart` to stop that. It knows no API.

Theory of operation. Every event is processed twice, on arrival and on emission.

On arrival its reasoning goes to the item's segmenter, and the parts that the segmenter cuts are
requested. Nothing waits here.

On emission the events of a lane leave its queue in the order in which they arrived. Only two kinds
of event can wait at the head of a queue:

* `ReasoningEnded` waits until every summary part due by then is closed. Meanwhile the lane *holds*:
  what follows queues up behind the event. A hold ends when the parts are done, and no later than
  at the lane's deadline, at which its grace is used up: a part whose text is complete is then
  emitted whole, one that is being emitted is closed as it stands, and the rest is cancelled. A part
  without any text is given up earlier, after the first-token timeout.
* `NativeSummary` waits while a part of ours is emitted: one must close before the next one opens.

Between the emission of an item's `ReasoningStarted` and of its `ReasoningEnded` the item's summary
parts are emitted as their text comes in, one after the other, the lowest first. Where frames do not
say it, `ReasoningTextEnded` tells that the reasoning itself has ended while its summary goes on.
Parts that are written in turn are emitted whole, and what one tells that is too little for a part
is told with the next one.

Events that concern all lanes have a queue of their own. `UsageReported`, `ErrorReported` and
`ResponseEnded` wait there until the queues of all lanes are empty.

Patience and memory are two limits. Only time ends a hold. While so many bytes wait that the
Sequencer `is_full`, whoever feeds it should read no more of upstream; what is fed all the same
waits like the rest. Something waits only while a lane holds, so a full Sequencer has a deadline.
After a hold, what has waited leaves in steps, one a tick, so that other streams get their turn.

Times are in seconds, on a clock that stands still while the client is not reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from math import inf

from abridge.core.effects import (
    DEADLINE_PASSED,
    EMPTY_SUMMARY,
    FIRST_TOKEN_TIMEOUT,
    OVERLOADED,
    RESPONSE_CUT_OFF,
    CancelPart,
    Effect,
    RequestPart,
)
from abridge.core.events import (
    CONTINUING_EVENTS,
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    NativeSummary,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    UsageReported,
    held_size,
)
from abridge.core.language import detect_language, is_another_language
from abridge.core.parts import (
    GIVEN_UP_AT_ONCE,
    ItemCut,
    Lane,
    Lanes,
    PartIds,
    ReasoningItem,
    SummaryPart,
    with_text_ends,
)
from abridge.core.plan import LEAST_SIZE, OverheadBudget, SummaryPlan
from abridge.core.segmenter import text_size
from abridge.core.styles import STYLES, body_of
from abridge.core.usage import EXTRACTIVE, SummaryShare, Tokens

EMITTED_AT_ONCE = 100
"""Events that leave a queue in one step: after a hold there may be thousands, and to write them
takes a while. The others are due at once, and so leave in the next step."""

MAX_TRANSLATED_CHARS = 12_000
"""Characters of a part that are translated: a summarizer is not held to writing more."""


class Sequencer:
    """Sequence one response."""

    def __init__(self, plan: SummaryPlan) -> None:
        self._plan = plan
        self._continuing = frozenset() if plan.native == "copied" else CONTINUING_EVENTS
        self._lanes = Lanes(plan.grace)
        self._shared_queue: list[Event] = []
        self._requested: dict[int, tuple[ReasoningItem, SummaryPart]] = {}
        self._part_ids = PartIds()
        self._share = SummaryShare()
        self._budget = OverheadBudget(plan.max_overhead)
        self._effects: list[Effect] = []
        self._stopped_by: ErrorDetail | None = None  # why no more summaries are to be shown
        self.held_bytes = 0  # bytes that wait, as on the wire
        self.holding: set[Lane] = set()  # lanes that wait
        self._gives_way = False  # more leaves in the next step alone
        self.missed_deadline = False  # a hold ended by timeout
        self.done = False  # ResponseEnded was emitted

    # State

    @property
    def held_seconds(self) -> float:
        """Seconds for which the answer has waited, in the lane that waited longest."""
        return max((lane.held_seconds for lane in self._lanes.values()), default=0.0)

    @property
    def is_full(self) -> bool:
        """Return whether so much waits, or is still to leave, that no more of upstream should be
        read."""
        return self._gives_way or self.held_bytes > self._plan.held_limit

    @property
    def spent(self) -> Tokens:
        """Usage that summarizers have reported so far, also for a response that never ends."""
        return self._share.tokens

    @property
    def deadline(self) -> float | None:
        """Time at which `tick` is due if nothing else comes in before; None if nothing waits."""
        if self._gives_way:
            return -inf
        return min((lane.due for lane in self.holding if lane.due is not None), default=None)

    def room_for(self, event: Event) -> float:
        """Return the size of the reasoning that may go on from an event before something comes of
        it: so much may be fed at once."""
        lane = self._lanes[event.lane]
        item = lane.items.get(event.item) if isinstance(event, ReasoningDelta) else None
        return 0 if item is None or lane.queue or self._budget.is_limited else item.room

    # Input

    def pass_on(self, events: Iterable[Event]) -> list[ItemCut] | None:
        """Take events if all only continue something and nothing waits before them: they are to be
        emitted as they are, and then what is returned requested. Else take nothing; return None."""
        continuing, lanes = self._continuing, self._lanes
        for event in events:
            if type(event) not in continuing or event.lane is None or lanes[event.lane].queue:
                return None
        return self._take_texts(events)

    def upstream(self, events: Iterable[Event], now: float) -> Iterator[list[Effect]]:
        """Take any events that upstream sent together.

        Yields lists of effects. Each is to be performed before the next is asked for: if a
        summarizer refuses a part, the next one is merged with it. What requests none is together.
        """
        for is_continuing, group in groupby(events, self._is_continuing):
            if is_continuing:
                if cuts := self._take_continuing([*group]):
                    yield from self.request(cuts, now)
            else:
                for event in with_text_ends(group):
                    self._effects = self._take(event, now)  # they leave with the next ones
                    if isinstance(event, ReasoningEnded):
                        yield self._take_effects()
        yield self._take_effects()

    def request(self, cuts: Iterable[ItemCut], now: float) -> Iterator[list[Effect]]:
        """Have what was cut of the reasoning summarized; yields as `upstream` does."""
        yield self._take_effects()
        for item, cut in cuts:
            self._request_part(item, item.plan_part(next(self._part_ids), cut), now)
            yield self._take_effects()

    def _is_continuing(self, event: Event) -> bool:
        return event.lane is not None and type(event) in self._continuing

    def _take_continuing(self, events: list[Event]) -> list[ItemCut]:
        """Emit events at once or, in a lane that holds, queue them; return what to request."""
        for event in events:
            lane = self._lanes[event.lane]
            if lane.queue:
                lane.push(event)
                self.held_bytes += held_size(event)
            else:
                self._effects.append(event)
        return self._take_texts(events)

    def _take_texts(self, events: Iterable[Event]) -> list[ItemCut]:
        """Give each item its reasoning in these events; return what is to be summarized now."""
        for event in events if self._budget.is_limited else ():
            if isinstance(event, ReasoningDelta | ContentDelta):
                self._budget.add_model_text(event.text)
        cuts: list[ItemCut] = []
        for event in events:
            if type(event) is ReasoningDelta:
                item = self._lanes[event.lane].items.get(event.item)
                if item is not None and (found := item.take_text(event.text)):
                    cuts += [(item, cut) for cut in found]
        return cuts

    def _take(self, event: Event, now: float) -> list[Effect]:
        """Queue an event, and emit what may leave."""
        self.held_bytes += held_size(event)
        if event.lane is not None:
            lane = self._lanes[event.lane]
            lane.push(event)
            self._process_arrival(lane, event, now)
            return self._emit_ready(now, lane)
        self._shared_queue.append(event)
        if isinstance(event, ErrorReported) or (isinstance(event, ResponseEnded) and not event.ok):
            self._stop_summaries(RESPONSE_CUT_OFF, has_failed=True)
        return self._emit_ready(now)

    def summary_delta(self, part_id: int, text: str, now: float) -> list[Effect]:
        """Take a piece of a part's text from its summarizer."""
        lane = None
        if part_id in self._requested:
            item, requested = self._requested[part_id]
            lane = self._lanes.of(item)
            requested.unsent.append(text)
            self._budget.add_call_text(part_id, text)
        return self._emit_ready(now, lane)

    def summary_done(
        self, part_id: int, now: float, spent: Tokens | None = None, model: str | None = None
    ) -> list[Effect]:
        """Take the end of a part's text, with the usage if the summarizer reported it."""
        lane = None
        if part_id in self._requested:
            item, requested = self._requested.pop(part_id)
            lane = self._lanes.of(item)
            self._record_usage(part_id, spent, model)
            if requested.is_silent:
                self._give_up_part(item, requested, EMPTY_SUMMARY)
            else:
                self._end_written(item, requested)
            self._request_queued(item, now)
        return self._emit_ready(now, lane)

    def _end_written(self, item: ReasoningItem, part: SummaryPart) -> None:
        """End a part that is written, unless what it tells goes with what follows it."""
        if not (self._tells_little(item, part) and item.hand_on(part)):
            part.end(complete=True)

    def _tells_little(self, item: ReasoningItem, part: SummaryPart) -> bool:
        """Return whether what is written is too little for a part of its own. The first part, which
        a reader waits for, may be of any size."""
        style = self._plan.style
        if not (item.parts_come_whole and item.told) or style is None or STYLES[style].title_only:
            return False
        return text_size(body_of(part.text)) < LEAST_SIZE

    def summary_failed(
        self,
        part_id: int,
        error: ErrorDetail,
        now: float,
        spent: Tokens | None = None,
        model: str | None = None,
        *,
        stop: bool = False,
    ) -> list[Effect]:
        """Take a summarizer's failure. With `stop`, show no further part in this response."""
        lane = None
        if part_id in self._requested:
            item, requested = self._requested.pop(part_id)
            lane = None if stop else self._lanes.of(item)
            self._record_usage(part_id, spent, model)
            if stop:
                self._stop_summaries(error)
            self._give_up_part(item, requested, error)
            self._request_queued(item, now)
        return self._emit_ready(now, lane)

    def summary_refused(
        self, part_id: int, now: float, error: ErrorDetail = OVERLOADED
    ) -> list[Effect]:
        """Take note that no summarizer may be called for this part now.

        While its stretch of reasoning goes on, and none of its text has come, the last part stays
        planned and is merged with the next one. An earlier one would never be: it is given up.
        """
        lane = None
        if part_id in self._requested:
            item, requested = self._requested.pop(part_id)
            lane = self._lanes.of(item)
            if requested.is_silent and item.gathers_for(requested):
                requested.requested_at = None
            else:
                self._give_up_part(item, requested, error)
                self._request_queued(item, now)
        return self._emit_ready(now, lane)

    def tick(self, now: float) -> list[Effect]:
        """Take note of the time."""
        self._gives_way = False
        return self._emit_ready(now)

    # Arrival

    def _process_arrival(self, lane: Lane, event: Event, now: float) -> None:
        if isinstance(event, ReasoningDelta):
            if (item := lane.items.get(event.item)) is not None:
                item.take_text(event.text)
        elif isinstance(event, ReasoningStarted):
            self._start_stretch(lane, event)
        elif isinstance(event, NativeSummary):
            self._yield_to_native(lane.items[event.item])
        elif isinstance(event, ReasoningEnded):
            self._end_stretch(lane, lane.items[event.item], now)

    def _start_stretch(self, lane: Lane, event: ReasoningStarted) -> None:
        item = lane.items.get(event.item)
        if item is None:
            key = event.lane or 0, event.item
            item = lane.items[event.item] = ReasoningItem.for_plan(key, self._plan)
        else:
            item.segmenter.begin_stretch()
        item.stretches_read += 1
        item.is_arriving = self._plan.style is not None

    def _end_stretch(self, lane: Lane, item: ReasoningItem, now: float) -> None:
        if not item.is_arriving:
            return
        item.is_arriving = False
        cut = item.end_text()
        last = item.unrequested_part() if cut is None else item.plan_part(next(self._part_ids), cut)
        if last is None:
            return
        if last.unsent:  # it tells little, and nothing came after it
            self._end_written(item, last)
        elif lane.grace_left > 0:
            self._request_part(item, last, now)
        else:
            self._give_up_part(item, last, DEADLINE_PASSED)  # not waited for, so not requested

    def _request_part(self, item: ReasoningItem, part: SummaryPart, now: float) -> None:
        """Request a part if the budget allows it; if not, it stays planned, as if refused."""
        if self._stopped_by is not None:
            self._give_up_part(item, part, self._stopped_by)
            return
        if self._plan.native == "translated" and not self._is_to_translate(part):
            part.use_reasoning()
            return
        part.queued = self._plan.in_turn and item.is_written_to
        if part.queued:
            return
        if not self._budget.has_room():
            if not item.gathers_for(part):
                part.end(complete=False)
            return
        part.requested_at = now
        passage = item.build_passage(part, self._plan)
        self._requested[part.id] = item, part
        self._budget.start_call(part.id, passage)
        self._effects.append(RequestPart(part.id, passage))

    def _is_to_translate(self, part: SummaryPart) -> bool:
        """Return whether a part is surely in another language than its reader's, and may be
        translated."""
        if len(part.reasoning) > MAX_TRANSLATED_CHARS:
            return False
        found, wanted = detect_language(part.reasoning), self._plan.language
        is_foreign = bool(found and wanted and is_another_language(found, wanted))
        return is_foreign and self._budget.has_room()

    def _request_queued(self, item: ReasoningItem, now: float) -> None:
        """Request the part whose turn it is; if the budget denies that, the next one."""
        while not item.is_written_to and (queued := item.next_queued()) is not None:
            self._request_part(item, queued, now)

    def _record_usage(self, part_id: int, spent: Tokens | None, model: str | None = None) -> None:
        """Record the usage of a call that is over or cancelled."""
        self._share = self._share.with_call(spent, model)
        self._budget.settle_call(part_id, spent)

    def _yield_to_native(self, item: ReasoningItem) -> None:
        """End the parts that are not announced yet: upstream summarizes this item itself."""
        item.yield_to_native()
        for part in item.parts:
            if part.index is None:
                self._cancel_part(part)
                part.end(complete=False)

    def _stop_summaries(self, error: ErrorDetail, *, has_failed: bool = False) -> None:
        """End the parts that are not announced yet, written or not, and have no more written. Where
        upstream `has_failed`, end those that are not written, the one being emitted as it stands.
        """
        self._stopped_by = error
        for item in self._lanes.all_items:
            item.is_arriving = item.is_arriving and not has_failed
            for part in item.parts:
                is_left = part.ended if has_failed else part.closed or part.index is not None
                if not is_left:
                    self._cancel_part(part)
                    part.end(complete=False)
                    item.error = item.error or error

    def _cancel_part(self, part: SummaryPart, *, timed_out: bool = False) -> None:
        if self._requested.pop(part.id, None) is not None:
            self._record_usage(part.id, None)
            self._effects.append(CancelPart(part.id, timed_out))

    def _give_up_part(self, item: ReasoningItem, part: SummaryPart, error: ErrorDetail) -> None:
        """Use the fallback for a failed part of which nothing was emitted, else end it; what was to
        be translated is shown as it is."""
        if self._plan.native == "translated" and part.index is None and not self._stopped_by:
            part.use_reasoning()
            return
        fallback = self._plan.fallback if part.index is None and not self._stopped_by else None
        text = fallback(item.build_passage(part, self._plan)) if fallback is not None else ""
        if not (text and self._plan.in_turn):
            item.error = item.error or error
        if text:
            part.use_fallback(text)
            self._share = self._share.with_model(EXTRACTIVE)
        else:
            part.end(complete=False)

    # Emission

    def _emit_ready(self, now: float, only_lane: Lane | None = None) -> list[Effect]:
        """Emit what may leave: of one lane, if nothing can have changed in the others."""
        for lane in self._lanes.values() if only_lane is None else (only_lane,):
            self._emit_lane(lane, now)
        if self._shared_queue:
            self._emit_shared()
        return self._take_effects()

    def _take_effects(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    def _emit_lane(self, lane: Lane, now: float) -> None:
        self._emit_summary(lane)
        room = 0 if self._gives_way else EMITTED_AT_ONCE
        while lane.queue:
            if not room:
                self._gives_way = True
                return
            blocking_parts = lane.blocking_parts()
            if not blocking_parts:
                self._emit_head(lane)
                room -= 1
            elif self._waits(lane, blocking_parts, now):
                lane.note_due(self._plan.first_token_timeout)
                return
        if lane.held_since is not None:
            lane.end_hold(now - lane.held_since)
            self.holding.remove(lane)

    def _waits(self, lane: Lane, blocking_parts: list[SummaryPart], now: float) -> bool:
        """Return whether a lane waits for parts; give up those that were waited for too long."""
        if not self._give_up_overdue(lane, blocking_parts, now):
            return True
        self._emit_summary(lane)
        return any(not part.ended for part in blocking_parts)

    def _emit_head(self, lane: Lane) -> None:
        event = lane.pop()
        self.held_bytes -= held_size(event)
        if isinstance(event, NativeSummary):
            event = replace(event, index=lane.items[event.item].index_of_native(event.index))
        elif isinstance(event, ReasoningEnded):
            lane.open_item = None
            event.summary = lane.items[event.item].tell_summary()
        self._effects.append(event)
        if isinstance(event, ReasoningStarted):
            lane.open_item = lane.items[event.item]
            lane.open_item.stretches_emitted += 1
            self._emit_summary(lane)

    def _emit_summary(self, lane: Lane) -> None:
        """Emit what there is of the open item's summary."""
        if lane.open_item is not None and not lane.open_item.is_idle:
            self._effects += lane.open_item.take_summary()

    def _emit_shared(self) -> None:
        is_waiting = any(lane.queue for lane in self._lanes.values())
        while self._shared_queue:
            event = self._shared_queue[0]
            if is_waiting and isinstance(event, UsageReported | ErrorReported | ResponseEnded):
                return
            self._shared_queue.pop(0)
            self.held_bytes -= held_size(event)
            if isinstance(event, UsageReported | ResponseEnded):
                event.share = self._share if self._share.parts else None
                if self._plan.fail_response:
                    event.error = event.error or self._lanes.first_error
            if isinstance(event, ResponseEnded):
                event.summaries = {item.key: item.build_summary() for item in self._lanes.all_items}
                self.done = True
            self._effects.append(event)

    def _give_up_overdue(self, lane: Lane, blocking_parts: list[SummaryPart], now: float) -> bool:
        """Give up the parts that were waited for too long; return True if there were any."""
        if lane.held_since is None:
            lane.held_since = now
            self.holding.add(lane)
        if now >= lane.held_since + lane.grace_left:
            self.missed_deadline = True
            return self._give_up_parts(lane, blocking_parts, DEADLINE_PASSED)
        silent = lane.silent_parts(self._plan.first_token_timeout, now)
        self.missed_deadline = self.missed_deadline or bool(silent)
        return self._give_up_parts(lane, silent, FIRST_TOKEN_TIMEOUT)

    def _give_up_parts(self, lane: Lane, parts: list[SummaryPart], error: ErrorDetail) -> bool:
        for part in [part for part in parts if not part.ended][:GIVEN_UP_AT_ONCE]:
            if lane.open_item is not None:
                self._cancel_part(part, timed_out=error is FIRST_TOKEN_TIMEOUT)
                self._give_up_part(lane.open_item, part, error)
        return bool(parts)
