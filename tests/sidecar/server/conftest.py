"""The event loops of the server's tests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.support.clock import clock
from tests.support.servers import pytest_asyncio_loop_factories as on_both_loops

__all__ = ["clock"]

SOCKETS = ("test_http_protocol", "test_departures", "test_refusals", "test_websocket_protocol")


def pytest_asyncio_loop_factories(config: Any, item: Any) -> Mapping[str, Any]:
    """Test what uses a connection's transport on both event loops."""
    if item.path.stem in SOCKETS:
        return on_both_loops(config, item)
    return {"asyncio": asyncio.new_event_loop}
