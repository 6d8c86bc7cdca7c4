"""The summaries that clients were shown, known by a keyed digest of their text.

Whoever returns one, and wherever, it is never sent on as reasoning: so what a model wrote is known
without a tenant, and longer than originals are kept. What was copied out of reasoning is known with
its owner only.
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

    def add(self, texts: Iterable[str], owner: bytes = b"") -> None:
        for text in texts:
            if text.strip():
                self._marks[self._mark(text, owner)] = None

    def knows(self, text: str, owner: bytes = b"") -> bool:
        """Whether `text` was shown to anyone, or as a copy to `owner`."""
        known = {b"", owner} if text.strip() else ()
        return any(self._mark(text, one) in self._marks for one in known)

    def _mark(self, text: str, owner: bytes) -> bytes:
        return keyed(self._key, b"summary", owner, text.strip().encode(errors="surrogatepass"))
