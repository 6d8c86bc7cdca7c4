"""A flag that tasks can wait for, as `asyncio.Event` is one.

Python's takes 760 bytes, most of them for a queue of tasks that is nearly always empty; every open
stream has several.
"""

from __future__ import annotations

import asyncio


class Flag:
    __slots__ = ("_is_set", "_waiting")

    def __init__(self, *, is_set: bool = False) -> None:
        self._is_set = is_set
        self._waiting: tuple[asyncio.Future[None], ...] = ()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        """Set the flag and wake all that wait for it."""
        self._is_set = True
        waiting, self._waiting = self._waiting, ()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def clear(self) -> None:
        self._is_set = False

    def wait(self) -> asyncio.Future[None]:
        """Return what is done once the flag is set, which it may be no more then. A coroutine would
        take 220 bytes for as long as it waits."""
        future = asyncio.get_running_loop().create_future()
        if self._is_set:
            future.set_result(None)
        else:
            others = (other for other in self._waiting if not other.done())
            self._waiting = (*others, future)
        return future
