"""Time limits on others' silence, which a pause of this process does not break.

After a pause (a process that was stopped, or got no CPU) a loop may run the timers that are due
before it reads what has come in the meantime. So a limit that has passed is judged only once the
loop has looked at its sockets again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

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
