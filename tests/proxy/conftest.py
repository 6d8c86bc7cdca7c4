"""Share fixtures among the proxy's tests."""

from __future__ import annotations

from tests.support.servers import nothing_left, pytest_asyncio_loop_factories

__all__ = ["nothing_left", "pytest_asyncio_loop_factories"]
