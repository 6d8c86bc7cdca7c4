"""Test when the sidecar collects garbage of all ages."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from weakref import ref

import pytest

from abridge.sidecar.server import garbage
from abridge.sidecar.server.garbage import collect_garbage
from tests.support.servers import until


class Circle:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


def old_circle() -> ref[Circle]:
    """Return a reference to a circle in the oldest generation, of which nothing else knows."""
    circle = Circle()
    gc.collect()
    return ref(circle)


@asynccontextmanager
async def collecting() -> AsyncIterator[None]:
    task = asyncio.create_task(collect_garbage(0.001))
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_everything_is_collected_once_as_much_again_is_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage, "SPARE", 1000)
    in_use = 5_000_000
    monkeypatch.setattr("sys.getallocatedblocks", lambda: in_use)
    async with collecting():
        circle = old_circle()
        in_use = 10_000_999
        await asyncio.sleep(0.01)
        assert circle() is not None
        in_use = 10_001_000
        await until(lambda: circle() is None)


async def test_everything_is_collected_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(garbage, "monotonic", lambda: now)
    async with collecting():
        circle = old_circle()
        now = garbage.MAX_SECONDS - 1
        await asyncio.sleep(0.01)
        assert circle() is not None
        now += 1
        await until(lambda: circle() is None)


async def test_meanwhile_only_young_objects_are_collected() -> None:
    before = gc.get_threshold()
    async with collecting():
        assert gc.get_threshold()[:2] == (garbage.YOUNG, garbage.NEVER)
    assert gc.get_threshold() == before
