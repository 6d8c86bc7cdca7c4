"""What the fault matrix runs on."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.faults.loop import Loop


def pytest_asyncio_loop_factories(config: Any, item: Any) -> Mapping[str, Callable[[], Loop]]:
    return {"loop": Loop}


@pytest.fixture(autouse=True, scope="module")
def collectable() -> Iterator[None]:
    """What was there before is not looked through each time a test looks for what is left."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
