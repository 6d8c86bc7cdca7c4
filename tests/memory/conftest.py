"""Event loops and time limits for the tests of memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.servers import HANG
from tests.support.servers import pytest_asyncio_loop_factories as on_both_loops

SOCKETS = ("test_redis", "test_redis_client")


def pytest_asyncio_loop_factories(config: Any, item: Any) -> Mapping[str, Any]:
    """Test what uses sockets on both event loops."""
    if item.path.stem in SOCKETS:
        return on_both_loops(config, item)
    return {"asyncio": asyncio.new_event_loop}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a store as long as it takes: this machine may have other things to do."""
    monkeypatch.setattr("abridge.memory.stores.redis_client.MAX_WAIT", HANG)
    monkeypatch.setattr("abridge.memory.stores.redis_client.OPERATION_TIMEOUT", HANG)
