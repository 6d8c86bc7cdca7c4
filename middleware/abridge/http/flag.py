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
        self._waiting: list[asyncio.Future[None]] | None = None

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        """Set the flag and wake all that wait for it."""
        self._is_set = True
        for future in self._waiting or ():
            if not future.done():
                future.set_result(None)

    def clear(self) -> None:
        self._is_set = False

    async def wait(self) -> None:
        """Return once the flag is set, which it may be no more then."""
        if self._is_set:
            return
        future = asyncio.get_running_loop().create_future()
        if self._waiting is None:
            self._waiting = [future]
        else:
            self._waiting.append(future)
        try:
            await future
        finally:
            self._waiting.remove(future)
