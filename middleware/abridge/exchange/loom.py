"""Carry out the Sequencer's effects: call summarizers, keep deadlines, pass on events.

Everything runs on one event loop without awaiting in between, so the Sequencer never gets an input
while it handles another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from abridge.errors import SummarizerError
from abridge.exchange.client import Clock
from abridge.summarize import Spent, Summarizer
from abridge.summarize.closing import closing
from abridge.summarize.guard import Guard
from abridge.turn.events import Event, Trouble
from abridge.turn.weave import Ask, Cancel, Effect, Weaver

UNKNOWN = Spent()
"""Usage of a call that was cancelled."""

CODES = frozenset({"timeout", "upstream_error", "empty"})
"""Error codes a client may see of a failed call; any other is a user's own, and becomes
`upstream_error`."""


@dataclass(slots=True, frozen=True)
class _Call:
    """A summarizer's call under way."""

    task: asyncio.Task[None]
    began: float  # by the clock, in seconds


class Watch(Protocol):
    """Observes the summarizer's calls.

    `call_span` returns a context manager around all of a call, which may last longer than its part;
    `call_ended` gets the duration by the clock, and the usage.
    """

    def asked(self, part: int) -> None: ...

    def writing(self, part: int) -> AbstractContextManager[None]: ...

    def ended(self, part: int, outcome: str, seconds: float, spent: Spent) -> None: ...


class Loom:
    """Run one Sequencer. `emit` gets its events in order; calls run as tasks in `tasks`."""

    def __init__(
        self,
        weaver: Weaver,
        *,
        guard: Guard,
        summarizer: Summarizer,
        tasks: asyncio.TaskGroup,
        clock: Clock,
        emit: Callable[[Event], None],
        watch: Watch,
    ) -> None:
        self.weaver = weaver
        self._guard = guard
        self._summarizer = summarizer
        self._tasks = tasks
        self._clock = clock
        self._emit = emit
        self._watch = watch
        self._performing: list[Effect] | None = None
        self._stopped = False
        self._writing: dict[int, _Call] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due: float | None = None
        self._asked_at: float | None = None
        self.wrote_for = 0.0  # seconds from the first call's start to the last one's end

    def hear(self, events: Iterable[Event]) -> None:
        """Take events read from upstream."""
        for event in events:
            self._perform(self.weaver.upstream(event, self._clock.now()))

    def stop(self) -> None:
        """Cancel everything that runs and start nothing more."""
        self._stopped = True
        for part, call in self._writing.items():
            self._stop_call(part, call, "cancelled")
        self._writing.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def set_timer(self) -> None:
        """Set the timer to the Sequencer's deadline; none while the clock is paused."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        idle = self._clock.stopped or self._stopped
        self._due = None if idle else self.weaver.deadline
        if self._due is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, self._due - self._clock.now()), self._tick)

    def _tick(self) -> None:
        self._timer = self._due = None
        self._tasks.create_task(self._take_time())

    async def _take_time(self) -> None:
        """Run the tick in a task of the request's, so that an error fails the request."""
        self._perform(self.weaver.tick(self._clock.now()))

    def _perform(self, effects: list[Effect]) -> None:
        """Perform effects in order; those caused by another effect come after all queued before
        them."""
        if self._performing is not None:
            self._performing += effects
            return
        self._performing = effects
        try:
            for effect in effects:
                if self._stopped:
                    break
                if isinstance(effect, Ask):
                    self._ask(effect)
                elif isinstance(effect, Cancel):
                    self._cancel(effect)
                else:
                    self._emit(effect)
        finally:
            self._performing = None
        if self.weaver.deadline != self._due:
            self.set_timer()

    def _cancel(self, cancel: Cancel) -> None:
        """Cancel a call. There is none if the part was requested and refused in one batch."""
        call = self._writing.pop(cancel.part, None)
        if call is None:
            return
        self._stop_call(cancel.part, call, "timeout" if cancel.late else "cancelled")
        if cancel.late:
            self._guard.blame(self._summarizer)

    def _stop_call(self, part: int, call: _Call, outcome: str) -> None:
        call.task.cancel()
        self._watch.ended(part, outcome, self._clock.now() - call.began, UNKNOWN)

    def _ask(self, ask: Ask) -> None:
        permit = self._guard.admit()
        if isinstance(permit, Trouble):
            self._perform(self.weaver.refused(ask.part, self._clock.now(), permit))
            return
        now = self._clock.now()
        self._asked_at = self._asked_at or now
        self._watch.asked(ask.part)
        task = self._tasks.create_task(self._write(ask))
        task.add_done_callback(lambda _: permit.release())
        self._writing[ask.part] = _Call(task, now)

    async def _write(self, ask: Ask) -> None:
        with self._watch.writing(ask.part):
            await self._take_down(ask)

    async def _take_down(self, ask: Ask) -> None:
        """Call the summarizer for the part and pass on its text."""
        spent = Spent()
        try:
            async with closing(self._guard.write(self._summarizer, ask.passage)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Spent):
                        spent = piece
                    else:
                        self._perform(self.weaver.said(ask.part, piece, self._clock.now()))
        except SummarizerError as error:
            code = error.code if error.code in CODES else "upstream_error"
            now = self._end(ask.part, code, Spent(error.spent, error.model))
            trouble = Trouble(code, str(error))
            self._perform(self.weaver.failed(ask.part, trouble, now, error.spent, error.model))
        else:
            now = self._end(ask.part, "ok", spent)
            self._perform(self.weaver.finished(ask.part, now, spent.tokens, spent.model))

    def _end(self, part: int, outcome: str, spent: Spent) -> float:
        now = self._clock.now()
        if (call := self._writing.pop(part, None)) is not None:
            self._watch.ended(part, outcome, now - call.began, spent)
        self.wrote_for = now - (self._asked_at or now)
        return now
