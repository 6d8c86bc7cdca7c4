"""No test leaves a task behind, and each runs on both event loops."""

from tests.memory.conftest import patient
from tests.support.servers import no_leaks, pytest_asyncio_loop_factories

__all__ = ["no_leaks", "patient", "pytest_asyncio_loop_factories"]
