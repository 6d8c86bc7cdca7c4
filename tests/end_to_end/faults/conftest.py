"""The event loop of the fault matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.end_to_end.faults.loop import Loop


def pytest_asyncio_loop_factories(config: Any, item: Any) -> Mapping[str, Callable[[], Loop]]:
    return {"loop": Loop}
