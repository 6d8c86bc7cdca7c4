"""What the transport's tests run on: both event loops, and nothing may be left over."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from abridge.http import Transport
from tests.servers import HANG, LOOPS


def pytest_asyncio_loop_factories(config: Any, item: Any) -> Mapping[str, Any]:
    return LOOPS


@pytest.fixture(autouse=True)
async def nothing_left() -> AsyncIterator[None]:
    yield
    assert asyncio.all_tasks() == {asyncio.current_task()}
    gc.collect()  # what was not closed warns, and a warning is an error


@pytest.fixture
def for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle connections are not closed because they are idle."""
    monkeypatch.setattr("abridge.link.KEEP_ALIVE", 1000.0)


class Clock:
    """Puts the running loop's clock forward, so that nothing need be waited for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._time = loop.time
        self._ahead = 0.0
        loop.time = self.time  # type: ignore[method-assign]  # which is what a test is for

    def time(self) -> float:
        return self._time() + self._ahead

    async def advance(self, seconds: float) -> None:
        self._ahead += seconds
        for _ in range(5):  # what is due by now is done
            await asyncio.sleep(0)


@pytest.fixture
async def clock() -> Clock:
    loop = asyncio.get_running_loop()
    if not isinstance(loop, asyncio.BaseEventLoop):
        pytest.skip("this loop's clock cannot be put forward")
    return Clock(loop)


@pytest.fixture
async def transport() -> AsyncIterator[Transport]:
    async with Transport(connect=HANG, headers=HANG, idle=HANG) as transport:
        yield transport
