"""Performs what a Weaver asks for: has parts written, keeps its deadlines, passes on its events.

Everything happens on one event loop and nothing here awaits in between, so a Weaver is never in the
midst of something when the next thing comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from abridge.errors import SummarizerError
from abridge.exchange.client import Clock
from abridge.summarize import Spent, Summarizer
from abridge.summarize.closing import closing
from abridge.summarize.guard import Guard
from abridge.turn.events import Event, Trouble
from abridge.turn.weave import Ask, Cancel, Effect, Weaver

CODES = frozenset({"timeout", "upstream_error", "empty"})
"""What may be told of a failed call; any other code is a user's own."""


@dataclass(slots=True, frozen=True)
class _Call:
    """A part being written since `began`, in the clock's seconds."""

    task: asyncio.Task[None]
    began: float


class Watch(Protocol):
    """Is told of each call for a part that it begins, and how it ended after how many seconds."""

    def asked(self, part: int) -> None: ...

    def ended(self, part: int, outcome: str, seconds: float) -> None: ...


class Loom:
    """Runs one Weaver. `emit` gets its events, in order; tasks are made in `tasks`; `watch` is told
    of the calls. `wrote_for` is the seconds from the first part asked for to the last one that
    ended."""

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
        self.wrote_for = 0.0

    def hear(self, events: Iterable[Event]) -> None:
        """Upstream said these."""
        for event in events:
            self._perform(self.weaver.upstream(event, self._clock.now()))

    def stop(self) -> None:
        """Nobody wants the rest: stop everything that runs, and start nothing more."""
        self._stopped = True
        for part, call in self._writing.items():
            self._stop_call(part, call, "cancelled")
        self._writing.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def set_timer(self) -> None:
        """Be back at the Weaver's deadline; while the clock stands still there is none."""
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
        """In a task of the request's, which is where a fault belongs."""
        self._perform(self.weaver.tick(self._clock.now()))

    def _perform(self, effects: list[Effect]) -> None:
        """Perform in order: what an effect brings about comes after those before it."""
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
        """Stop a call; there is none where it was asked for and refused in the same breath."""
        call = self._writing.pop(cancel.part, None)
        if call is None:
            return
        self._stop_call(cancel.part, call, "timeout" if cancel.late else "cancelled")
        if cancel.late:
            self._guard.blame(self._summarizer)

    def _stop_call(self, part: int, call: _Call, outcome: str) -> None:
        call.task.cancel()
        self._watch.ended(part, outcome, self._clock.now() - call.began)

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
            now = self._end(ask.part, code)
            trouble = Trouble(code, str(error))
            self._perform(self.weaver.failed(ask.part, trouble, now, error.spent, error.model))
        else:
            now = self._end(ask.part, "ok")
            self._perform(self.weaver.finished(ask.part, now, spent.tokens, spent.model))

    def _end(self, part: int, outcome: str) -> float:
        now = self._clock.now()
        if (call := self._writing.pop(part, None)) is not None:
            self._watch.ended(part, outcome, now - call.began)
        self.wrote_for = now - (self._asked_at or now)
        return now
