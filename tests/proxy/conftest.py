"""Share fixtures among the proxy's tests."""

from __future__ import annotations

from tests.support.servers import no_leaks, pytest_asyncio_loop_factories

__all__ = ["no_leaks", "pytest_asyncio_loop_factories"]
