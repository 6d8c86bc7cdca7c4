"""The client's end of one engaged request: notices that it left, and sends to it.

One task awaits its `receive`, one its `send`, and nothing else uses either. Output gathers while a
send is under way and leaves as one body message.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from starlette.types import Message, Receive, Send

HIGH_WATER = 64 << 10
"""Bytes that may wait for a slow client before reading from upstream pauses."""


class Clock:
    """Monotonic seconds, minus the time in which a send to the client was under way."""

    def __init__(self, time: Callable[[], float] = time.monotonic) -> None:
        self._time = time
        self._behind = 0.0
        self._stopped: float | None = None

    @property
    def stopped(self) -> bool:
        return self._stopped is not None

    def now(self) -> float:
        now = self._time() if self._stopped is None else self._stopped
        return now - self._behind

    def stop(self) -> None:
        self._stopped = self._time()

    def go_on(self) -> None:
        if self._stopped is not None:
            self._behind += self._time() - self._stopped
            self._stopped = None


class Client:
    """Sends an answer to the client, and keep-alives while there is nothing to send."""

    BEAT = 5.0  # seconds without a send after which a keep-alive is due

    def __init__(self, receive: Receive, send: Send, clock: Clock) -> None:
        self._receive = receive
        self._send = send
        self._clock = clock
        self._start: Message | None = None
        self._pending = bytearray()
        self._closing = False
        self._complete = True
        self._wake = asyncio.Event()
        self._first: asyncio.Task[None] | None = None
        self._room: asyncio.Event | None = None
        self._sent_at = 0.0
        self._beating: asyncio.TimerHandle
        self.departed = asyncio.Event()  # set when the client has left
        self.over = False  # true once everything was sent
        self.status: int | None = None
        self.on_room: Callable[[], None] = lambda: None  # called after each send
        self.on_leave: Callable[[], None] = lambda: None
        self.beat: Callable[[], bytes] = bytes  # returns a keep-alive, or nothing

    async def listen(self) -> None:
        """Wait for the client to disconnect."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self.over:
            self.leave()

    def leave(self) -> None:
        """Mark the client as gone and wake everything that waits for it."""
        self.departed.set()
        self.on_leave()
        self._make_room()
        self._wake.set()

    async def receive(self) -> Message:
        """Serve as the application's `receive` after the request body: wait for the disconnect."""
        await self.departed.wait()
        return {"type": "http.disconnect"}

    def start(self, message: Message) -> None:
        self._start, self.status = message, message["status"]
        self._wake.set()

    def write(self, data: bytes) -> None:
        if data:
            self._pending += data
            self._wake.set()
            if len(self._pending) > HIGH_WATER and self._room is None:
                self._room = asyncio.Event()

    def after(self, task: asyncio.Task[None]) -> None:
        """Delay the next send until the task is done."""
        self._first = task

    def close(self, *, complete: bool = True) -> None:
        """End the response once everything is sent; with `complete` false, leave it without its
        end."""
        self._closing, self._complete = True, complete
        self._wake.set()

    async def room(self) -> None:
        """Wait until the client has taken what was written. Raises OSError if it has left."""
        if self._room is not None:
            await self._room.wait()
        if self.departed.is_set():
            raise OSError("the client has left")

    async def run(self) -> None:
        """Send until the response is closed or the client has left."""
        self._beat_at(asyncio.get_running_loop().time() + self.BEAT)
        try:
            while not (self.over or self.departed.is_set()):
                await self._wake.wait()
                self._wake.clear()
                await self._flush()
        except OSError:
            self.leave()
        finally:
            self._beating.cancel()

    def _beat_at(self, when: float) -> None:
        self._beating = asyncio.get_running_loop().call_at(when, self._beat)

    def _beat(self) -> None:
        """Send a keep-alive if nothing was sent for long enough, and reschedule."""
        now = asyncio.get_running_loop().time()
        due = self._sent_at + self.BEAT
        if now >= due:
            due = now + self.BEAT
            if not self._clock.stopped:
                self.write(self.beat())
        self._beat_at(due)

    async def _flush(self) -> None:
        """Send everything pending, with the clock paused: this time is the client's."""
        if self._first is not None:
            await asyncio.wait([self._first])
            self._first = None
        closing = self._closing
        self._clock.stop()
        try:
            await self._send_pending(last=closing and self._complete)
        finally:
            self._clock.go_on()
        self._sent_at = asyncio.get_running_loop().time()
        self.over = closing
        self._make_room()
        self.on_room()

    def _make_room(self) -> None:
        if self._room is not None:
            self._room.set()
            self._room = None

    async def _send_pending(self, *, last: bool) -> None:
        if self._start is not None:
            start, self._start = self._start, None
            await self._send(start)
        if self._pending or last:
            body, self._pending = bytes(self._pending), bytearray()
            self.over = last  # set before the send: servers report a disconnect right after it
            await self._send({"type": "http.response.body", "body": body, "more_body": not last})
