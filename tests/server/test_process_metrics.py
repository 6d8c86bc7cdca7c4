"""How the process fares."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import pytest
from prometheus_client import CollectorRegistry

from abridge import __version__
from abridge.observability.metrics import metrics_for
from abridge.server.process_metrics import resident_bytes, sample_process
from tests.support.servers import until

MiB = 1 << 20


class Watched:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()

    def value(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"abridge_{name}", labels) or 0.0

    async def look(self) -> None:
        """Wait until it has looked once more."""
        before = self.value("loop_lag_seconds_count")
        await until(lambda: self.value("loop_lag_seconds_count") > before)


@asynccontextmanager
async def watched() -> AsyncIterator[Watched]:
    one = Watched()
    watching = asyncio.create_task(sample_process(metrics_for(one.registry), 0.01))
    await one.look()
    yield one
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching


async def test_there_is_one_of_this_version() -> None:
    async with watched() as one:
        assert one.value("workers") == 1
        assert one.value("build_info", version=__version__) == 1


async def test_a_loop_that_is_kept_is_late() -> None:
    async with watched() as one:
        before = one.value("loop_lag_seconds_sum")
        time.sleep(0.2)  # noqa: ASYNC251 -- that is what it looks for
        await one.look()
        assert one.value("loop_lag_seconds_sum") - before > 0.15
        assert one.value("loop_lag_seconds_bucket", le="0.1024") < one.value(
            "loop_lag_seconds_bucket", le="+Inf"
        )


async def test_the_time_that_work_takes() -> None:
    async with watched() as one:
        before, begun = one.value("cpu_seconds_total"), time.process_time()
        while time.process_time() < begun + 0.1:
            pass
        await one.look()
        await one.look()
        assert before + 0.1 <= one.value("cpu_seconds_total") <= time.process_time()


async def test_the_memory_that_is_taken() -> None:
    async with watched() as one:
        before = one.value("memory_bytes")
        assert before > MiB
        block = b"x" * (64 * MiB)
        await one.look()
        await one.look()
        assert one.value("memory_bytes") - before > 32 * MiB
        del block


def test_where_there_is_no_proc_the_most_that_ever_was(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    with patch("abridge.server.process_metrics.STATM", tmp_path / "nothing"):
        assert resident_bytes() > MiB
