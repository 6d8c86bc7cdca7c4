"""The summaries that clients were shown, known by a keyed digest of their text.

Whoever returns one, and wherever, it is never sent on as reasoning: so what a model wrote is known
without a tenant, and longer than originals are kept. What was copied out of reasoning is known with
its owner only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic

from cachetools import TTLCache

from abridge.history.keys import Key, Keyring
from abridge.history.stores.store import Store
from abridge.history.tenant import keyed

MOST = 100_000

AT_ONCE = 256
"""Others are told of so many at a time: more take longer than a store is waited for."""

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
            if text.strip():
                mark = _mark(key, text, owner[key.id] if owner else b"")
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

    async def known(self, texts: Iterable[str], owner: Owner) -> set[str]:
        """Those of the texts that were shown to anyone, or as a copy to `owner`."""
        marks = [(text, mark) for text in texts if text.strip() for mark in self._of(text, owner)]
        known = {text for text, mark in marks if mark in self._marks}
        left = [(text, mark) for text, mark in marks if text not in known]
        if left and self._store is not None:
            found = await self._store.known([mark for _, mark in left])
            known.update(text for (text, _), yes in zip(left, found, strict=True) if yes)
        return known

    def _of(self, text: str, owner: Owner) -> Iterator[bytes]:
        for key in self._keyring.keys:
            yield _mark(key, text, b"")
            yield _mark(key, text, owner[key.id])


def _mark(key: Key, text: str, owner: bytes) -> bytes:
    return keyed(key.store, b"summary", owner, text.strip().encode(errors="surrogatepass"))
