"""Metrics of the process itself: event loop lag, CPU time and memory."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from time import perf_counter, process_time

from abridge import __version__
from abridge.observability.metrics import Metrics

SAMPLE_SECONDS = 0.5
"""Seconds between two samples."""

STATM = Path("/proc/self/statm")


async def sample_process(metrics: Metrics, period: float = SAMPLE_SECONDS) -> None:
    """Sample the process every `period` seconds, until cancelled."""
    metrics.workers.set(1)
    metrics.build_info.labels(__version__).set(1)
    metrics.start_time_seconds.set_to_current_time()
    used = 0.0
    while True:
        previous, used = used, process_time()
        metrics.cpu_seconds.inc(used - previous)
        metrics.memory_bytes.set(resident_bytes())
        due = perf_counter() + period
        await asyncio.sleep(period)
        metrics.loop_lag_seconds.observe(max(0.0, perf_counter() - due))


def resident_bytes() -> int:
    """Return the resident memory in bytes, or the peak where the system does not report it."""
    try:
        return int(STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak_bytes()


def peak_bytes() -> int:
    try:
        from resource import RUSAGE_SELF, getrusage  # noqa: PLC0415 -- POSIX's
    except ImportError:
        return 0
    peak = getrusage(RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
