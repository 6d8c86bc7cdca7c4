"""What tests of the past share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.servers import HANG, LOOPS

SOCKETS = ("test_redis", "test_redis_client")


def pytest_asyncio_loop_factories(config: Any, item: Any) -> Mapping[str, Any]:
    """What deals with sockets is tested on both event loops."""
    return LOOPS if item.path.stem in SOCKETS else {"asyncio": asyncio.new_event_loop}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store is waited for as long as it takes: this machine may have other things to do."""
    monkeypatch.setattr("abridge.memory.stores.redis_client.MAX_WAIT", HANG)
    monkeypatch.setattr("abridge.memory.stores.redis_client.OPERATION_TIMEOUT", HANG)
