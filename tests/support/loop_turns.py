"""Count what the event loop has to do at once."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

MANY_CALLS = 50_000
"""Calls of Python functions that take the event loop some milliseconds."""


@contextmanager
def counting_calls() -> Iterator[list[int]]:
    """Yield the calls of Python functions in each turn of this thread's event loop."""
    turns = [0]

    def note_call(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is asyncio.Handle._run.__code__:
            turns.append(0)
        turns[-1] += event == "call"

    sys.setprofile(note_call)
    try:
        yield turns
    finally:
        sys.setprofile(None)
