"""The summaries that clients were shown, known by a keyed digest of their text.

Whoever returns one, and wherever, it is never sent on as reasoning: so they are known without a
tenant, and longer than originals are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic

from cachetools import TTLCache

from abridge.history.tenant import keyed

MOST = 100_000


class Shown:
    """Knows at most `MOST` texts, each for `ttl` seconds."""

    def __init__(
        self, key: bytes, ttl: float, time: Callable[[], float] = monotonic, most: int = MOST
    ) -> None:
        self._key = key
        self._marks: TTLCache[bytes, None] = TTLCache(most, ttl, timer=time)

    def __bool__(self) -> bool:
        return bool(self._marks)

    def add(self, texts: Iterable[str]) -> None:
        for text in texts:
            self._marks[self._mark(text)] = None

    def __contains__(self, text: str) -> bool:
        return bool(text.strip()) and self._mark(text) in self._marks

    def _mark(self, text: str) -> bytes:
        return keyed(self._key, b"summary", text.strip().encode(errors="surrogatepass"))
