"""Work that takes long, kept off the event loop.

To read, change and encode a request or an answer takes time in proportion to its size and to the
values in it. For most that is less than it takes to change threads. A large one would hold up every
other stream of the process, so it is worked on in a thread, where Python code gives way to the
event loop every few milliseconds. C code does not: `limits.body` and `limits.values` bound the
longest single call, which parses a body.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import ParamSpec, TypeVar

LIGHT_BYTES = 64 << 10
"""Bytes of JSON that can be worked on in a few milliseconds."""

LIGHT_OBJECTS = 1000
"""JSON objects that can: a message or an item takes up to 20 µs, however short it is."""

FEW_THINGS = 250
"""Things that can be looked up, stored or sent on in a few milliseconds."""

P = ParamSpec("P")
T = TypeVar("T")

_thread = ThreadPoolExecutor(1, "abridge-work")
"""One thread only: each more would take its turn before the event loop gets its own."""


class Work:
    """The work on one request or answer: done at once, or piece by piece in a thread if heavy.

    A piece that runs in the thread must not touch what other requests use, unless that is safe.
    """

    def __init__(self, *, heavy: bool = False) -> None:
        self.is_heavy = heavy

    @classmethod
    def on(cls, data: bytes | bytearray) -> Work:
        """Return the work on so much JSON."""
        return cls(heavy=len(data) > LIGHT_BYTES or data.count(b"{") > LIGHT_OBJECTS)

    def add(self, data: bytes | bytearray) -> None:
        """Add the work on more JSON."""
        self.is_heavy = self.is_heavy or Work.on(data).is_heavy

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function and return its result. It is not interrupted if the task is."""
        if not self.is_heavy:
            return function(*args, **kwargs)
        piece = partial(_run_without_collecting, function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(_thread, piece)


LIGHT_WORK = Work()


async def in_turns(items: Iterable[T], size: int = FEW_THINGS) -> AsyncIterator[list[T]]:
    """Yield the items, at most `size` at once; other tasks have their turn in between."""
    remaining = iter(items)
    batch = list(islice(remaining, size))
    while batch:
        yield batch
        if batch := list(islice(remaining, size)):
            await asyncio.sleep(0)


def _run_without_collecting(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call the function with the garbage collector paused: it would pass over the same values again
    and again as they become more, which takes most of the time, and gives way to nobody."""
    if not gc.isenabled():
        return function(*args, **kwargs)
    gc.disable()
    try:
        return function(*args, **kwargs)
    finally:
        gc.enable()
