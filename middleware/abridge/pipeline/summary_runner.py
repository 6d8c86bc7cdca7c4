"""Carry out the Sequencer's effects: call summarizers, keep deadlines, pass on events.

Everything runs on one event loop without awaiting in between, so the Sequencer never gets an input
while it handles another.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from abridge.core.effects import DEADLINE_PASSED, CancelPart, Effect, RequestPart
from abridge.core.events import ErrorDetail, Event
from abridge.core.sequencer import Sequencer
from abridge.core.usage import SummarizerUsage
from abridge.errors import SummarizerError, SummaryWithheld
from abridge.observability.recorder import ExchangeRecorder
from abridge.pipeline.client import Clock
from abridge.summarizers.checks import FAILURES
from abridge.summarizers.guard import Guard
from abridge.summarizers.summarizer import Summarizer
from abridge.waiting import Flag, do_nothing

UNKNOWN_USAGE = SummarizerUsage()
"""Usage of a call that was cancelled."""

KNOWN_CODES = frozenset({"timeout", "upstream_error", "empty", "withheld", *FAILURES})
"""Error codes of a failed call. Any other is a user's own, and counted as `other`."""

OWN_CODE = re.compile("[a-z_]{1,32}")
"""A user's code that a client may see; what is none becomes `upstream_error`."""


@dataclass(slots=True, frozen=True)
class _Call:
    """A summarizer's call under way."""

    task: asyncio.Task[None]
    started_at: float  # by the clock, in seconds


class SummaryRunner:
    """Run one Sequencer. `emit` gets its events in order; calls run as tasks in `tasks`."""

    def __init__(
        self,
        sequencer: Sequencer,
        *,
        guard: Guard,
        summarizer: Summarizer,
        tasks: asyncio.TaskGroup,
        clock: Clock,
        emit: Callable[[list[Event]], object],
        recorder: ExchangeRecorder,
    ) -> None:
        self.sequencer = sequencer
        self._guard = guard
        self._summarizer = summarizer
        self._tasks = tasks
        self._clock = clock
        self._emit = emit
        self._recorder = recorder
        self._effects: list[Effect] | None = None
        self._stopped = False
        self._held_bytes = 0  # as last noted
        self.is_full = False  # no more of upstream should be read
        self._room = Flag(is_set=True)  # cleared while it is full
        self.reading: asyncio.Task[None] | None = None  # what reads events that take long
        self._calls: dict[int, _Call] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due: float | None = None
        self._first_call_at: float | None = None
        self.summary_seconds = 0.0  # seconds from the first call's start to the last one's end

    def feed(self, events: list[Event]) -> None:
        """Take events read from upstream together."""
        if not events:
            return
        cuts = self.sequencer.pass_on(events)
        if cuts is None:
            steps = self.sequencer.upstream(events, self._clock.now())
        else:
            self._emit(events)
            if not cuts:
                return
            steps = self.sequencer.request(cuts, self._clock.now())
        for effects in steps:
            self._perform(effects)

    def read_in_turns(self, reading: Coroutine[Any, Any, None]) -> None:
        """Run what reads from upstream, and feeds, so much that others need their turn in between.
        Until it is done no more of upstream should be read."""
        self.reading = self._tasks.create_task(reading)
        self.reading.add_done_callback(self._end_reading)
        self._note_room()

    async def wait_for_reading(self) -> None:
        """Wait until what was read in turns is fed."""
        if self.reading is not None:
            await asyncio.wait([self.reading])

    def stop_reading(self) -> bool:
        """Cancel what is read in turns; return whether anything was."""
        return self.reading is not None and self.reading.cancel()

    def _end_reading(self, _: asyncio.Task[None]) -> None:
        self.reading = None
        self._note_room()

    def stop_waiting(self) -> None:
        """Give up the parts that are being written, as at their deadline."""
        while self._calls:
            part, call = self._calls.popitem()
            self._stop_call(part, call, "cancelled")
            self._perform(self.sequencer.summary_failed(part, DEADLINE_PASSED, self._clock.now()))

    async def wait_for_room(self) -> None:
        """Wait while `is_full`: until a hold ends, or everything stops."""
        await self._room.wait()

    def stop(self) -> None:
        """Cancel everything that runs, start nothing more and emit nothing."""
        self._stopped = True
        self._emit = do_nothing  # which refers to nothing in a circle
        self.stop_reading()
        self.is_full = False
        self._room.set()
        for part, call in self._calls.items():
            self._stop_call(part, call, "cancelled")
        self._calls.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def set_timer(self) -> None:
        """Set the timer to the Sequencer's deadline; none while the clock is paused."""
        idle = self._clock.paused or self._stopped
        due = None if idle else self.sequencer.deadline
        if due == self._timer_due:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_due = due
        if due is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, due - self._clock.now()), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = self._timer_due = None
        self._tasks.create_task(self._perform_tick())

    async def _perform_tick(self) -> None:
        """Run the tick in a task of the request's, so that an error fails the request."""
        self._perform(self.sequencer.tick(self._clock.now()))

    def _perform(self, effects: list[Effect]) -> None:
        """Perform effects, those on summarizers after the events. What is caused by an effect comes
        after all that were there before it."""
        if self._effects is not None:
            self._effects += effects
            return
        try:
            while effects and not self._stopped:
                self._effects = []
                self._perform_batch(effects)
                effects = self._effects
        finally:
            self._effects = None
        self.set_timer()
        self._note_room()
        if self.sequencer.held_bytes != self._held_bytes:
            self._held_bytes = self.sequencer.held_bytes
            self._recorder.note_held(self._held_bytes)

    def _perform_batch(self, effects: list[Effect]) -> None:
        events: list[Event] = []
        calls: list[RequestPart | CancelPart] = []
        for effect in effects:
            if isinstance(effect, Event):
                events.append(effect)
            else:
                calls.append(effect)
        if events:
            self._emit(events)
        for call in calls:
            if self._stopped:
                break
            if isinstance(call, RequestPart):
                self._start_call(call)
            else:
                self._cancel(call)

    def _note_room(self) -> None:
        is_busy = self.reading is not None or self.sequencer.is_full
        if self.is_full == (is_busy and not self._stopped):
            return
        self.is_full = not self.is_full
        if self.is_full:
            self._room.clear()
        else:
            self._room.set()

    def _cancel(self, cancel: CancelPart) -> None:
        """Cancel a call. There is none if the part was requested and refused in one batch."""
        call = self._calls.pop(cancel.part_id, None)
        if call is None:
            return
        self._stop_call(cancel.part_id, call, "timeout" if cancel.timed_out else "cancelled")
        if cancel.timed_out:
            self._guard.note_late_start(self._summarizer)

    def _stop_call(self, part: int, call: _Call, outcome: str) -> None:
        call.task.cancel()
        self._recorder.call_ended(part, outcome, self._clock.now() - call.started_at, UNKNOWN_USAGE)

    def _start_call(self, request: RequestPart) -> None:
        permit = self._guard.admit(self._summarizer)
        now = self._clock.now()
        if isinstance(permit, ErrorDetail):
            self._perform(self.sequencer.summary_refused(request.part_id, now, permit))
            return
        self._first_call_at = self._first_call_at or now
        self._recorder.call_started(request.part_id)
        task = self._tasks.create_task(self._run_call(request))
        task.add_done_callback(lambda _: permit.release())
        self._calls[request.part_id] = _Call(task, now)

    async def _run_call(self, request: RequestPart) -> None:
        with self._recorder.call_span(request.part_id):
            await self._relay_text(request)

    async def _relay_text(self, request: RequestPart) -> None:
        """Call the summarizer for the part and pass on its text."""
        part, sequencer, spent = request.part_id, self.sequencer, SummarizerUsage()
        try:
            async with aclosing(self._guard.summarize(self._summarizer, request.passage)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, SummarizerUsage):
                        spent = piece
                    else:
                        self._perform(sequencer.summary_delta(part, piece, self._clock.now()))
        except SummarizerError as error:
            code = error.code if OWN_CODE.fullmatch(error.code) else "upstream_error"
            counted = code if code in KNOWN_CODES else "other"
            usage = SummarizerUsage(error.spent, error.model)
            now = self._end_call(part, counted, usage)
            detail = ErrorDetail(code, str(error))
            stop = isinstance(error, SummaryWithheld) and error.stops
            failed = sequencer.summary_failed(
                part, detail, now, error.spent, error.model, stop=stop
            )
            self._perform(failed)
        else:
            now = self._end_call(part, "ok", spent)
            self._perform(sequencer.summary_done(part, now, spent.tokens, spent.model))

    def _end_call(self, part: int, outcome: str, spent: SummarizerUsage) -> float:
        now = self._clock.now()
        if (call := self._calls.pop(part, None)) is not None:
            self._recorder.call_ended(part, outcome, now - call.started_at, spent)
        self.summary_seconds = now - (self._first_call_at or now)
        return now
