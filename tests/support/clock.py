"""A clock that a test advances instead of waiting."""

from __future__ import annotations

import asyncio

import pytest


class Clock:
    """Advances the running loop's clock."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._time = loop.time
        self._ahead = 0.0
        loop.time = self.time  # type: ignore[method-assign]

    def time(self) -> float:
        return self._time() + self._ahead

    async def advance(self, seconds: float) -> None:
        self._ahead += seconds
        for _ in range(5):  # lets due callbacks run
            await asyncio.sleep(0)


@pytest.fixture
async def clock() -> Clock:
    loop = asyncio.get_running_loop()
    if not isinstance(loop, asyncio.BaseEventLoop):
        pytest.skip("this loop's clock cannot be put forward")
    return Clock(loop)
