"""The client's end of one engaged request: notices that it left, and sends to it.

One task awaits its `receive`, unless the server calls when the client leaves, one its `send`, and
nothing else uses either. Output gathers while a send is under way and leaves as one body message.
Where the server can write without awaiting, it does, as long as nothing waits to be sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from starlette.types import Message, Receive, Send

from abridge.http.asgi import AppReceive, call_on_leave, find_write_at_once
from abridge.waiting import Flag, do_nothing

HIGH_WATER = 64 << 10
"""Bytes that may wait for a slow client before reading from upstream pauses."""


class Clock:
    """Monotonic seconds, minus the time in which a send to the client was under way."""

    def __init__(self, time: Callable[[], float] = time.monotonic) -> None:
        self._time = time
        self._paused_seconds = 0.0
        self._paused_at: float | None = None

    @property
    def paused(self) -> bool:
        return self._paused_at is not None

    def now(self) -> float:
        now = self._time() if self._paused_at is None else self._paused_at
        return now - self._paused_seconds

    def pause(self) -> None:
        self._paused_at = self._time()

    def resume(self) -> None:
        if self._paused_at is not None:
            self._paused_seconds += self._time() - self._paused_at
            self._paused_at = None


class Client:
    """Sends an answer to the client, and keep-alives while there is nothing to send."""

    KEEP_ALIVE_SECONDS = 5.0  # seconds without a send after which a keep-alive is due

    def __init__(self, receive: Receive, send: Send, clock: Clock) -> None:
        self._receive = receive
        self._send = send
        self._write_at_once = find_write_at_once(send)
        self._may_write_at_once = False  # true while a body has begun and all of it was sent
        self._clock = clock
        self._start: Message | None = None
        self._pending = bytearray()
        self._closing = False
        self._complete = True
        self._wake = Flag()
        self._awaited_task: asyncio.Task[None] | None = None
        self._drained: Flag | None = None  # while it is behind
        self.is_behind = False
        """So much waits to be sent that no more of upstream should be read."""
        self._loop = asyncio.get_running_loop()
        self._sent_at = 0.0
        self._keep_alive_timer: asyncio.TimerHandle
        self._listening: asyncio.Task[None] | None = None
        self.receive = AppReceive()
        self.departed = False  # true once the client has left
        self.finished = False  # true once everything was sent
        self.status: int | None = None
        self.on_sent: Callable[[], object] = do_nothing  # called after each send
        self.on_leave: Callable[[], object] = do_nothing
        self.keep_alive: Callable[[], bytes] = bytes  # returns a keep-alive, or nothing

    def listen(self, tasks: asyncio.TaskGroup) -> None:
        """Notice when the client disconnects: the server calls then, or a task waits for it."""
        if not call_on_leave(self._receive, self._leave):
            self._listening = tasks.create_task(self._wait_until_it_leaves())

    def detach(self) -> None:
        """Listen and call no more. So nothing that was called refers to the client in a circle, and
        all of it is freed at once."""
        if self._listening is None:
            call_on_leave(self._receive, do_nothing)
        else:
            self._listening.cancel()
            self._listening = None
        self.on_sent = self.on_leave = do_nothing
        self.keep_alive = bytes

    async def _wait_until_it_leaves(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        if not self.finished:
            self.mark_departed()

    def mark_departed(self) -> None:
        """Mark the client as gone and wake everything that waits for it."""
        self.departed = True
        self.receive.leave()
        self.on_leave()
        self._signal_drained()
        self._wake_sender()

    @property
    def started(self) -> bool:
        """True once the start of the response was sent."""
        return self.status is not None and self._start is None

    def start(self, message: Message) -> None:
        self._start, self.status = message, message["status"]
        self._wake_sender()

    def write(self, data: bytes) -> None:
        if not data:
            return
        write_at_once = self._write_at_once
        if self._may_write_at_once and write_at_once is not None and write_at_once(data):
            self._sent_at = self._loop.time()
            return
        self._pending += data
        self._wake_sender()
        if len(self._pending) > HIGH_WATER and self._drained is None:
            self._drained, self.is_behind = Flag(), True

    def _wake_sender(self) -> None:
        self._may_write_at_once = False
        self._wake.set()

    def send_after(self, task: asyncio.Task[None]) -> None:
        """Delay the next send until the task is done."""
        self._awaited_task, self._may_write_at_once = task, False

    def close(self, *, complete: bool = True) -> None:
        """End the response once everything is sent; with `complete` false, leave it without its
        end."""
        self._closing, self._complete = True, complete
        self._wake_sender()

    def discard(self) -> None:
        """Send nothing of a response that has not started."""
        self._start = self.status = None
        self._pending.clear()
        self.close(complete=False)

    async def drain(self) -> None:
        """Wait until the client has taken what was written. Raises OSError if it has left."""
        if self._drained is not None:
            await self._drained.wait()
        if self.departed:
            raise OSError("the client has left")

    async def run(self) -> None:
        """Send until the response is closed or the client has left."""
        self._schedule_keep_alive(self._loop.time() + self.KEEP_ALIVE_SECONDS)
        try:
            while not (self.finished or self.departed):
                await self._wake.wait()
                self._wake.clear()
                await self._flush()
        except OSError:
            self.mark_departed()
        finally:
            self._keep_alive_timer.cancel()

    def _schedule_keep_alive(self, when: float) -> None:
        self._keep_alive_timer = self._loop.call_at(when, self._send_keep_alive)

    def _send_keep_alive(self) -> None:
        """Send a keep-alive if nothing was sent for long enough, and reschedule."""
        now = self._loop.time()
        due = self._sent_at + self.KEEP_ALIVE_SECONDS
        if now >= due:
            due = now + self.KEEP_ALIVE_SECONDS
            if not self._clock.paused:
                self.write(self.keep_alive())
        self._schedule_keep_alive(due)

    async def _flush(self) -> None:
        """Send everything pending, with the clock paused: this time is the client's."""
        if self._awaited_task is not None:
            await asyncio.wait([self._awaited_task])
            self._awaited_task = None
        closing = self._closing
        self._clock.pause()
        try:
            await self._send_pending(last=closing and self._complete)
        finally:
            self._clock.resume()
        self._sent_at = self._loop.time()
        self.finished = closing
        self._may_write_at_once = not (closing or self._wake.is_set() or self._awaited_task)
        if closing:
            self.receive.end()
        self._signal_drained()
        self.on_sent()

    def _signal_drained(self) -> None:
        if self._drained is not None:
            self._drained.set()
            self._drained, self.is_behind = None, False

    async def _send_pending(self, *, last: bool) -> None:
        if self._start is not None:
            start, self._start = self._start, None
            await self._send(start)
        if self._pending or last:
            body, self._pending = bytes(self._pending), bytearray()
            self.finished = last  # set before the send: servers report a disconnect right after it
            await self._send({"type": "http.response.body", "body": body, "more_body": not last})
