"""Share fixtures among the transport's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from abridge.http.transport import Transport
from tests.support.clock import clock
from tests.support.servers import HANG, no_leaks, pytest_asyncio_loop_factories

__all__ = ["clock", "no_leaks", "pytest_asyncio_loop_factories"]


@pytest.fixture
def for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep idle connections open for the whole test."""
    monkeypatch.setattr("abridge.http.pool.KEEP_ALIVE", 1000.0)


@pytest.fixture
async def transport() -> AsyncIterator[Transport]:
    async with Transport(connect=HANG, headers=HANG, idle=HANG) as transport:
        yield transport
