"""Work that takes long, kept off the event loop.

To read, change and encode a request or an answer takes time in proportion to its size and to the
values in it. For most that is less than it takes to change threads. A large one would hold up every
other stream of the process, so it is worked on in a thread, where Python code gives way to the
event loop every few milliseconds. C code does not: `limits.body` and `limits.values` bound the
longest single call, which parses a body. There is one thread, in which clients take turns: whoever
sends a hundred large requests makes those of others wait for one piece of work, not for a hundred
requests.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any, ParamSpec, TypeAlias, TypeVar

LIGHT_BYTES = 256 << 10
"""Bytes of JSON that can be worked on in a few milliseconds. To have a piece of work done in the
thread takes 70 µs, and the event loop waits as long for its turn as most pieces take."""

LIGHT_OBJECTS = 1000
"""JSON objects that can: a message or an item takes up to 20 µs, however short it is."""

FEW_THINGS = 250
"""Things that can be looked up, stored or sent on in a few milliseconds."""

CLIENT: ContextVar[str] = ContextVar("abridge.client", default="")
"""The client for which a task works, and those that it starts."""

P = ParamSpec("P")
T = TypeVar("T")


_Piece: TypeAlias = tuple[Future[Any], Callable[[], Any]]


class _Turns:
    """Pieces of work that wait. Clients take turns, each with its first piece."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[_Piece]] = {}  # by client, whoever is next first
        self._lock = Lock()

    def add(self, client: str, function: Callable[[], T]) -> Future[T]:
        """Have the function called, and return what will have its result."""
        future: Future[T] = Future()
        with self._lock:
            self._waiting.setdefault(client, deque()).append((future, function))
        return future

    def work(self) -> None:
        """Do the piece whose turn it is, unless nobody waits for its result any more."""
        future, function = self._take()
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 -- it is raised where the result is awaited
            future.set_exception(error)
        finally:
            del future, function  # else a circle: an error keeps this frame, and all it names

    def _take(self) -> _Piece:
        with self._lock:
            client = next(iter(self._waiting))
            pieces = self._waiting.pop(client)
            piece = pieces.popleft()
            if pieces:
                self._waiting[client] = pieces
        return piece


_turns = _Turns()

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
        result = _turns.add(CLIENT.get(), piece)
        _thread.submit(_turns.work)
        return await asyncio.wrap_future(result)


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
