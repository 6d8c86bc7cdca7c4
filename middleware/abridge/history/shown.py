"""The summaries that clients were shown, known by a keyed digest of their text.

Whoever returns one, and wherever, it is never sent on as reasoning: so what a model wrote is known
without a tenant, and longer than originals are kept. What was copied out of reasoning is known with
its owner only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from time import monotonic

from cachetools import TTLCache

from abridge.history.keys import Keyring
from abridge.history.stores.store import Store
from abridge.history.tenant import keyed

MOST = 100_000

AT_ONCE = 256
"""Others are told of so many at a time: more take longer than a store is waited for."""

DIGEST = 32
"""Bytes of a mark."""

Owner = Mapping[str, bytes]
"""Who owns a copy: a tag by each key's id."""


class Shown:
    """Knows at most `MOST` texts of this process's, each for `ttl` seconds, and those that others
    left in a store, if there is one that several share."""

    def __init__(
        self,
        keyring: Keyring,
        ttl: float,
        store: Store | None = None,
        time: Callable[[], float] = monotonic,
        most: int = MOST,
    ) -> None:
        self._keyring = keyring
        self._store = store
        self._marks: TTLCache[bytes, None] = TTLCache(most, ttl, timer=time)
        self._new: deque[bytes] = deque(maxlen=most)

    def __bool__(self) -> bool:
        return bool(self._marks) or self._store is not None

    def add(self, texts: Iterable[str], owner: Owner | None = None) -> None:
        """Know these from now on; with an owner, from nobody else."""
        key = self._keyring.first
        for text in texts:
            if said := _said(text):
                mark = _mark(_root(key.store, owner[key.id] if owner else b""), said)
                self._marks[mark] = None
                if self._store is not None:
                    self._new.append(mark)

    async def share(self) -> None:
        """Let others know what is new, the latest first; what they cannot be told now they are told
        later."""
        if not self._new or self._store is None:
            return
        new, told = [self._new.pop() for _ in range(min(AT_ONCE, len(self._new)))], False
        try:
            told = await self._store.mark(new)
        finally:
            if not told:
                self._new.extend(reversed(new))

    def knows(self, text: str, owner: Owner) -> bool:
        """Whether a text was shown here, to anyone, or as a copy to `owner`."""
        return any(mark in self._marks for mark in self._of(text, owner))

    async def known_to_others(self, texts: Iterable[str], owner: Owner) -> set[str]:
        """Those of the texts that others showed, likewise."""
        marks = [(text, mark) for text in texts for mark in self._of(text, owner)]
        if not marks or self._store is None:
            return set()
        found = await self._store.known([mark for _, mark in marks])
        return {text for (text, _), yes in zip(marks, found, strict=True) if yes}

    def _of(self, text: str, owner: Owner) -> Iterator[bytes]:
        said = _said(text)
        for key in self._keyring.keys if said else ():
            yield _mark(_root(key.store, b""), said)
            yield _mark(_root(key.store, owner[key.id]), said)


def _said(text: str) -> bytes:
    return text.strip().encode(errors="surrogatepass")


def _mark(root: bytes, said: bytes) -> bytes:
    return blake2b(said, key=root, digest_size=DIGEST).digest()


@lru_cache(1024)
def _root(key: bytes, owner: bytes) -> bytes:
    """A key for all marks that are one's."""
    return keyed(key, b"summary", owner)
