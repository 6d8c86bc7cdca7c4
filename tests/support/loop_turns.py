"""What the event loop has to do at once, and what is done beside it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from cProfile import Profile
from functools import partial
from types import ModuleType
from typing import Any

import pytest

MANY_CALLS = 50_000
"""Calls of Python functions that take the event loop some milliseconds."""


@contextmanager
def counting_calls() -> Iterator[list[int]]:
    """Yield what will be the calls of Python functions in each turn of this thread's event loop."""
    turns: list[int] = []
    profile = Profile(subcalls=False, builtins=False)  # in C, as a function here takes far longer
    run = asyncio.Handle._run

    def end_turn() -> None:
        profile.disable()
        turns.append(sum(entry.callcount for entry in profile.getstats()))
        profile.clear()

    def run_next(handle: asyncio.Handle) -> None:
        end_turn()
        profile.enable()
        run(handle)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.Handle, "_run", run_next)
        profile.enable()
        try:
            yield turns
        finally:
            end_turn()


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
