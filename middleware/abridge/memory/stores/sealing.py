"""Sealing of the values that leave the process for a backend.

A value is bound to its name: moved to another key it does not open, so no answer can pass for
another's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from abridge.memory.cipher import Cipher
from abridge.memory.stores.key_names import KeyNames

THREAD_BYTES = 64 << 10
"""Bytes from which values are sealed and opened in a thread, so that no stream waits for it."""

T = TypeVar("T")

U = TypeVar("U")


class ValueSealer:
    """Seals values of at most `limit` bytes, each under its name."""

    def __init__(self, cipher: Cipher, names: KeyNames) -> None:
        self._cipher = cipher
        self.names = names

    @property
    def limit(self) -> int:
        return self._cipher.limit

    async def seal(self, names: Sequence[bytes], values: Sequence[bytes]) -> list[bytes]:
        return await _run_off_loop(self._seal_values, names, values, sum(map(len, values)))

    async def open(
        self, names: Sequence[bytes], values: Sequence[bytes | None]
    ) -> list[bytes | None]:
        """Open values; None for one that is missing or does not open."""
        size = sum(len(value or b"") for value in values)
        return await _run_off_loop(self._open_values, names, values, size)

    def _seal_values(self, names: Sequence[bytes], values: Sequence[bytes]) -> list[bytes]:
        seal = self._cipher.seal
        return [seal(value, name) for name, value in zip(names, values, strict=True)]

    def _open_values(
        self, names: Sequence[bytes], values: Sequence[bytes | None]
    ) -> list[bytes | None]:
        unseal = self._cipher.unseal
        named = zip(names, values, strict=True)
        return [unseal(value, name) if value is not None else None for name, value in named]


async def _run_off_loop(
    function: Callable[[Sequence[bytes], T], U], names: Sequence[bytes], values: T, size: int
) -> U:
    """Call a function, in a thread if `size` bytes of work would block the loop."""
    if size < THREAD_BYTES:
        return function(names, values)
    return await asyncio.to_thread(function, names, values)
