"""What the event loop has to do at once, and what is done beside it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType, ModuleType
from typing import Any

import pytest

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


def note_calls_beside(
    monkeypatch: pytest.MonkeyPatch, *functions: tuple[ModuleType, str]
) -> set[tuple[str, bool]]:
    """Return what will hold the name of each function that a module calls, and whether that was in
    another thread than this one."""
    noted: set[tuple[str, bool]] = set()
    here = threading.current_thread()

    def note(name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        noted.add((name, threading.current_thread() is not here))
        return function(*args, **options)

    for module, name in functions:
        monkeypatch.setattr(module, name, partial(note, name, getattr(module, name)))
    return noted
