"""When the garbage collector passes over everything.

Theory of operation. What a request leaves is freed at once, by counting references; the collector
is there for the circles that may be among it. Python has it pass over all objects whenever their
number has grown by a quarter. With thousands of open streams that takes most of a second, in which
nothing else runs, and finds nothing. So by itself it only passes over each object once, when
`YOUNG` new ones are in use: after fewer, it would pass over those of short requests, which are gone
a moment later. Everything is collected here, when as much again is in use as was left by the last
time, or after `MAX_SECONDS`. Circles never take more memory than what is in use, and `SPARE`.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from time import monotonic

SPARE = 1_500_000
"""Blocks of memory that may be added in any case: those of some 3,000 streams, 150 MB."""

MAX_SECONDS = 600.0
"""Seconds after which everything is collected in any case."""

CHECK_SECONDS = 1.0

YOUNG = 10_000
"""New objects in use that are passed over at once, which takes half a millisecond."""

NEVER = 1 << 30
"""A threshold that is never reached."""


def freeze_objects() -> None:
    """Have the collector leave alone what exists by now, which lasts as long as the process: to
    pass over it takes 20 ms, in which nothing else runs. That would be as long now, so only what is
    young is collected first."""
    gc.collect(1)
    gc.freeze()


async def collect_garbage(period: float = CHECK_SECONDS) -> None:
    """Collect everything when that is due, until cancelled; check every `period` seconds."""
    thresholds = gc.get_threshold()
    gc.set_threshold(YOUNG, NEVER)
    collected_at, left = monotonic(), sys.getallocatedblocks()
    try:
        while True:
            await asyncio.sleep(period)
            is_late = monotonic() >= collected_at + MAX_SECONDS
            if is_late or sys.getallocatedblocks() >= 2 * left + SPARE:
                gc.collect()
                collected_at, left = monotonic(), sys.getallocatedblocks()
    finally:
        gc.set_threshold(*thresholds)
