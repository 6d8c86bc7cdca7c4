"""Event loops and time limits for the tests of memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.servers import HANG, LOOPS

SOCKETS = ("test_redis", "test_redis_client")


def pytest_asyncio_loop_factories(config: Any, item: Any) -> Mapping[str, Any]:
    """Test what uses sockets on both event loops."""
    return LOOPS if item.path.stem in SOCKETS else {"asyncio": asyncio.new_event_loop}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a store as long as it takes: this machine may have other things to do."""
    monkeypatch.setattr("abridge.memory.stores.redis_client.MAX_WAIT", HANG)
    monkeypatch.setattr("abridge.memory.stores.redis_client.OPERATION_TIMEOUT", HANG)
