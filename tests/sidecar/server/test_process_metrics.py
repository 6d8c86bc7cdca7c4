"""Test the metrics of the process."""

from __future__ import annotations

import asyncio
import mmap
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import pytest
from prometheus_client import CollectorRegistry

from abridge import __version__
from abridge.observability.metrics import metrics_for
from abridge.sidecar.server.process_metrics import resident_bytes, sample_process
from tests.support.servers import until

MiB = 1 << 20


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()

    def value(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"abridge_{name}", labels) or 0.0

    async def measure(self) -> None:
        """Wait for one more measurement."""
        before = self.value("loop_lag_seconds_count")
        await until(lambda: self.value("loop_lag_seconds_count") > before)


@asynccontextmanager
async def metrics() -> AsyncIterator[Metrics]:
    one = Metrics()
    watching = asyncio.create_task(sample_process(metrics_for(one.registry), 0.01))
    await one.measure()
    yield one
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching


async def test_build_info_has_this_version() -> None:
    async with metrics() as one:
        assert one.value("workers") == 1
        assert one.value("build_info", version=__version__) == 1


async def test_a_blocked_event_loop_shows_as_lag() -> None:
    async with metrics() as one:
        before = one.value("loop_lag_seconds_sum")
        time.sleep(0.2)  # noqa: ASYNC251 -- blocks on purpose
        await one.measure()
        assert one.value("loop_lag_seconds_sum") - before > 0.15
        assert one.value("loop_lag_seconds_bucket", le="0.1024") < one.value(
            "loop_lag_seconds_bucket", le="+Inf"
        )


async def test_cpu_seconds_grow_with_work() -> None:
    async with metrics() as one:
        before, begun = one.value("cpu_seconds_total"), time.process_time()
        while time.process_time() < begun + 0.1:
            pass
        await one.measure()
        await one.measure()
        assert before + 0.1 <= one.value("cpu_seconds_total") <= time.process_time()


async def test_resident_memory_grows_with_allocation() -> None:
    async with metrics() as one:
        before = one.value("memory_bytes")
        assert before > MiB
        with mmap.mmap(-1, 64 * MiB) as block:  # what was freed before may be given for bytes
            block.write(b"x" * (64 * MiB))
            await one.measure()
            await one.measure()
            assert one.value("memory_bytes") - before > 32 * MiB


def test_without_proc_the_peak_memory_is_reported(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    with patch("abridge.sidecar.server.process_metrics.STATM", tmp_path / "nothing"):
        assert resident_bytes() > MiB
