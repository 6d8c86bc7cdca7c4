"""The summaries that clients were shown, known by a keyed digest of their text (a mark).

A summary that a client returns, whichever client and in whatever field, is never sent upstream as
reasoning. So summaries written by a model are recognised without a tenant, and longer than
originals are kept. Extracts copied from reasoning are recognised for their owner only.
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
"""Marks sent to the shared store at once: more would take longer than the store's time limit."""

DIGEST = 32
"""Length of a mark, in bytes."""

Owner = Mapping[str, bytes]
"""A tenant's tags, by key id."""


class Shown:
    """Recognises up to `max_marks` texts shown by this process, each for `ttl` seconds, and those
    that other processes wrote to a shared store, if there is one."""

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
        """Recognise these texts from now on; if `owner` is given, for that owner only."""
        key = self._keyring.first
        for text in texts:
            if said := _said(text):
                mark = _mark(_root(key.store, owner[key.id] if owner else b""), said)
                self._marks[mark] = None
                if self._store is not None:
                    self._new.append(mark)

    async def share(self) -> None:
        """Write new marks to the shared store, latest first. Retry later those not written."""
        if not self._new or self._store is None:
            return
        new, told = [self._new.pop() for _ in range(min(AT_ONCE, len(self._new)))], False
        try:
            told = await self._store.mark(new)
        finally:
            if not told:
                self._new.extend(reversed(new))

    def knows(self, text: str, owner: Owner) -> bool:
        """Return whether this process showed a text to anyone, or as a copy to `owner`."""
        return any(mark in self._marks for mark in self._of(text, owner))

    async def known_to_others(self, texts: Iterable[str], owner: Owner) -> set[str]:
        """Return the texts that other processes showed to anyone, or as a copy to `owner`."""
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
    """Derive the key of an owner's marks; `owner` is empty for marks that belong to nobody."""
    return keyed(key, b"summary", owner)
