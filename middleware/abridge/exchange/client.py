"""The client of one engaged request: whether it is still there, and what it is sent.

One task listens on its `receive`, one calls its `send`, and nothing else does either. What is to be
sent gathers while a send is under way and leaves as one body message.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from starlette.types import Message, Receive, Send

HIGH_WATER = 64 << 10
"""Bytes that may wait for a slow client before upstream is no longer read."""


class Clock:
    """Seconds, not counting those for which a send to the client was under way."""

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
    """`on_room` is called when a send is over, `on_leave` when the client has left; `beat` gives a
    sign of life, or nothing, each `BEAT` seconds in which nothing was sent; `status` is what its
    answer begins with, once that is known."""

    BEAT = 5.0

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
        self.departed = asyncio.Event()
        self.over = False
        self.status: int | None = None
        self.on_room: Callable[[], None] = lambda: None
        self.on_leave: Callable[[], None] = lambda: None
        self.beat: Callable[[], bytes] = bytes

    async def listen(self) -> None:
        """Wait for the client to leave."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self.over:
            self.leave()

    def leave(self) -> None:
        """The client is gone: nobody waits for it any more."""
        self.departed.set()
        self.on_leave()
        self._make_room()
        self._wake.set()

    async def receive(self) -> Message:
        """What is left for the application to hear: that the client has gone."""
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
        """Send nothing more until this is done."""
        self._first = task

    def close(self, *, complete: bool = True) -> None:
        """Nothing more is to be sent; with `complete` false the response is left unfinished."""
        self._closing, self._complete = True, complete
        self._wake.set()

    async def room(self) -> None:
        """Wait until the client has taken what it was sent. Raises OSError if it has left."""
        if self._room is not None:
            await self._room.wait()
        if self.departed.is_set():
            raise OSError("the client has left")

    async def run(self) -> None:
        """Send, until all is sent or the client has left."""
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
        """Give a sign of life if nothing was sent for long enough, and look again."""
        now = asyncio.get_running_loop().time()
        due = self._sent_at + self.BEAT
        if now >= due:
            due = now + self.BEAT
            if not self._clock.stopped:
                self.write(self.beat())
        self._beat_at(due)

    async def _flush(self) -> None:
        """Send all that is there. The clock stands still meanwhile: it is the client's time."""
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
            self.over = last  # before the send: a server says disconnect after it
            await self._send({"type": "http.response.body", "body": body, "more_body": not last})
