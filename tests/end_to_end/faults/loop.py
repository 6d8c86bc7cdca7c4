"""An event loop that waits for nothing: where nobody has anything to do before the next timer, that
timer is due. A stall costs no time then, and what was sent has always been dealt with before it.

Everybody on the loop must be in this process: what another one does takes real time.
"""

from __future__ import annotations

import asyncio
import selectors

MOMENT = 0.005
"""Real seconds, in which the kernel takes to one end of a connection what the other has sent."""

PAUSE = 1.0
"""Seconds on the loop's clock: by then all that was sent has been dealt with, on a busy machine as
well. They take no time, as nobody has anything to do. No time limit in these tests is as short."""


async def pause() -> None:
    """Wait until the loop is idle."""
    await asyncio.sleep(PAUSE)


class _Selector(selectors.DefaultSelector):
    skipped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= MOMENT:
            return super().select(timeout)
        ready = super().select(MOMENT)
        if not ready:
            self.skipped += timeout
        return ready


class Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skipping = _Selector()
        super().__init__(self._skipping)

    def time(self) -> float:
        return super().time() + self._skipping.skipped
