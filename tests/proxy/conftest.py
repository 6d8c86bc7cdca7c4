"""What the proxy's tests share."""

from __future__ import annotations

from tests.support.servers import no_leaks, pytest_asyncio_loop_factories

__all__ = ["no_leaks", "pytest_asyncio_loop_factories"]
