"""Share fixtures among the proxy's tests."""

from __future__ import annotations

from tests.support.clock import clock
from tests.support.servers import no_leaks, pytest_asyncio_loop_factories

__all__ = ["clock", "no_leaks", "pytest_asyncio_loop_factories"]
