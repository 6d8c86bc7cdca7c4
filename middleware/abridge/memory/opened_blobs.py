"""The blobs that this process opened a moment ago.

A client resends all blobs of a conversation with each request of it. What was found out about one
stays here for a few minutes, so that it is decoded, decrypted and inflated once, not each time.

Only the tenant whose blob it is finds it, at the same upstream, in the same API and with the same
model: it is found by the blob itself, and a digest of all of that. Whether it has expired, has its
place and has room is asked again each time.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from time import monotonic

from abridge.caches import OPENED_BLOB_BYTES, OPENED_BLOB_SECONDS
from abridge.memory.keys import Key
from abridge.memory.tenants import keyed_digest

LARGEST_BLOB = OPENED_BLOB_BYTES // 64
"""The most bytes that are kept of one blob, so that one does not take the place of many."""

_ENTRY_BYTES = 1024
"""What an entry takes beside its content."""


@dataclass(slots=True)
class OpenedBlob:
    """A blob that belongs to the tenant."""

    content: bytes
    sealed_at: int  # in seconds since the epoch
    key: Key
    salt: bytes
    place_tag: bytes
    _place: bytes | None = None  # the place that is known to have the tag

    @property
    def size(self) -> int:
        """Bytes in memory, with what an entry takes beside its content."""
        return _ENTRY_BYTES + len(self.content)

    def is_at(self, place: bytes | None) -> bool:
        """Return whether this is the place that the blob is bound to."""
        if place is None:
            return False
        if place != self._place:
            if not hmac.compare_digest(self.place_tag, tag_place(self.key, self.salt, place)):
                return False
            self._place = place
        return True


def tag_place(key: Key, salt: bytes, place: bytes | None) -> bytes:
    """Return the tag of a place, salted so that nobody can compare or guess it."""
    return keyed_digest(key.tenant, b"place", salt, place or b"")


class OpenedBlobs:
    """The opened blobs, by owner and blob; the oldest give way to others."""

    def __init__(self, *, time: Callable[[], float] = monotonic) -> None:
        self._time = time
        self._kept: OrderedDict[tuple[bytes, str], tuple[float, OpenedBlob]] = OrderedDict()
        self._lock = Lock()  # long histories are worked on in a thread
        self.size = 0  # in bytes

    def get(self, owner: bytes, blob: str) -> OpenedBlob | None:
        added_at, opened = self._kept.get((owner, blob), (0.0, None))
        return opened if added_at > self._time() - OPENED_BLOB_SECONDS else None

    def add(self, owner: bytes, blob: str, opened: OpenedBlob) -> None:
        size = opened.size + len(blob)
        if size > LARGEST_BLOB:
            return
        now = self._time()
        with self._lock:
            _, replaced = self._kept.pop((owner, blob), (0.0, None))
            self.size += size - (replaced.size + len(blob) if replaced is not None else 0)
            self._kept[owner, blob] = now, opened
            while self.size > OPENED_BLOB_BYTES or self._oldest() <= now - OPENED_BLOB_SECONDS:
                (_, oldest), (_, dropped) = self._kept.popitem(last=False)
                self.size -= dropped.size + len(oldest)

    def _oldest(self) -> float:
        return next(iter(self._kept.values()))[0]
