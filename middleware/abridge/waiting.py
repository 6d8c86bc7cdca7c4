"""What tasks wait for: a flag, and an end of others' silence.

After a pause (a process that was stopped, or got no CPU) a loop may run the timers that are due
before it reads what has come in the meantime. So a limit on silence that has passed is judged only
once the loop has looked at its sockets again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import filterfalse


class Flag:
    """What tasks wait for, as for an `asyncio.Event`. That takes 760 bytes, most of it for a queue
    of tasks that is nearly always empty; every open stream has several."""

    __slots__ = ("_is_set", "_waiting")

    def __init__(self, *, is_set: bool = False) -> None:
        self._is_set = is_set
        self._waiting: tuple[asyncio.Future[None], ...] = ()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        """Set the flag and wake all that wait for it."""
        self._is_set = True
        waiting, self._waiting = self._waiting, ()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def clear(self) -> None:
        self._is_set = False

    def wait(self) -> asyncio.Future[None]:
        """Return what is done once the flag is set, which it may be no more then. A coroutine would
        take 220 bytes for as long as it waits."""
        future = asyncio.get_running_loop().create_future()
        if self._is_set:
            future.set_result(None)
        else:
            self._waiting = (*filterfalse(asyncio.Future.done, self._waiting), future)
        return future


do_nothing: Callable[..., object] = bool  # in place of a callback: it refers to nothing

LAST_LOOK = 0.05
"""Seconds between the end of a limit and its judgement, in which what waits is read."""


class SilenceTimer:
    """Calls `expire` once there was silence for so many seconds, and the loop has looked at its
    sockets since.

    The loop's timer is set anew only if it would end too late; one that ends too early is set again
    then. So a stream, each chunk of which restarts this, sets few.
    """

    __slots__ = (
        *("_deadline", "_ends_at", "_expire", "_handle", "_is_overdue", "_loop", "_seconds"),
    )

    def __init__(self, expire: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._expire = expire
        self._handle: asyncio.TimerHandle | None = None
        self._ends_at = 0.0  # the time at which it ends
        self._seconds = 0.0
        self._deadline: float | None = None  # None: silence is not limited
        self._is_overdue = False  # True once it took too long, until the loop has looked again

    def start(self, seconds: float) -> None:
        """Limit the silence that begins now."""
        self._is_overdue = False
        self._seconds = seconds
        self._deadline = self._loop.time() + seconds
        if self._handle is None or self._ends_at > self._deadline:
            self._set(self._deadline)

    def restart(self) -> None:
        """Note that something was heard. Nothing happens unless this was started."""
        if self._deadline is not None:
            self._is_overdue = False
            self._deadline = self._loop.time() + self._seconds

    def stop(self) -> None:
        """Limit the silence no more, until this is started again."""
        self._deadline = None

    def cancel(self) -> None:
        """Stop for good, and let go of `expire`."""
        self._deadline = None
        self._expire = do_nothing
        if self._handle is not None:
            self._handle.cancel()

    def _set(self, at: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._ends_at = at
        self._handle = self._loop.call_at(at, self._on_end)

    def _on_end(self) -> None:
        self._handle = None
        if self._deadline is None:
            return
        now = self._loop.time()
        if self._is_overdue:
            self._expire()
        elif now < self._deadline:
            self._set(self._deadline)
        else:
            self._is_overdue = True
            self._set(now + LAST_LOOK)


@asynccontextmanager
async def silence_timeout(seconds: float) -> AsyncIterator[None]:
    """Cancel what runs in it after `seconds`, as `asyncio.timeout` does. Raises TimeoutError."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        timer = SilenceTimer(lambda: limit.reschedule(loop.time()))
        timer.start(seconds)
        try:
            yield
        finally:
            timer.cancel()
