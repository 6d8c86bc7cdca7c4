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
    """As `asyncio.Event` is one, which takes 760 bytes, most of them for a queue of tasks that is
    nearly always empty; every open stream has several."""

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


LAST_LOOK = 0.05
"""Seconds between the end of a limit and its judgement, in which what waits is read."""


class SilenceTimer:
    """Calls `expire` once `seconds` have passed, and the loop has looked at its sockets since."""

    def __init__(self, seconds: float, expire: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._expire = expire
        self._handle = self._loop.call_later(seconds, self._look_again)

    def cancel(self) -> None:
        self._handle.cancel()

    def _look_again(self) -> None:
        self._handle = self._loop.call_later(LAST_LOOK, self._expire)


@asynccontextmanager
async def silence_timeout(seconds: float) -> AsyncIterator[None]:
    """Cancel what runs in it after `seconds`, as `asyncio.timeout` does. Raises TimeoutError."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        timer = SilenceTimer(seconds, lambda: limit.reschedule(loop.time()))
        try:
            yield
        finally:
            timer.cancel()
