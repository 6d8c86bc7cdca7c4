"""Metrics of the process itself: event loop lag, CPU time and memory."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from time import perf_counter, process_time

from abridge import __version__
from abridge.metrics import Metrics

PERIOD = 0.5
"""Seconds between two samples."""

STATM = Path("/proc/self/statm")


async def watch(metrics: Metrics, period: float = PERIOD) -> None:
    """Sample the process every `period` seconds, until cancelled."""
    metrics.workers.set(1)
    metrics.build_info.labels(__version__).set(1)
    used = 0.0
    while True:
        before, used = used, process_time()
        metrics.cpu_seconds.inc(used - before)
        metrics.memory_bytes.set(resident())
        due = perf_counter() + period
        await asyncio.sleep(period)
        metrics.loop_lag_seconds.observe(max(0.0, perf_counter() - due))


def resident() -> int:
    """Return the resident memory in bytes, or the peak where the system does not report it."""
    try:
        return int(STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak()


def peak() -> int:
    try:
        from resource import RUSAGE_SELF, getrusage  # noqa: PLC0415 -- POSIX's
    except ImportError:
        return 0
    most = getrusage(RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
