"""Reasoning kept by its client: sealed on the way out, opened on the way back.

A blob is `abr1.<key id>.<base64url>`. Nothing of it is stored, so any process with the same keys
can continue the conversation. Its owner is in it as a keyed tag that is compared after decryption,
so a blob that belongs to someone else is distinguished from a damaged one.
"""

from __future__ import annotations

import secrets
import struct
from base64 import b64decode, urlsafe_b64encode
from binascii import Error
from collections import Counter
from collections.abc import Mapping
from hmac import compare_digest

from abridge.history.box import Box, Packed
from abridge.history.family import family
from abridge.history.keys import Key, Keyring
from abridge.history.tenant import keyed
from abridge.turn.conversation import Turn
from abridge.wire.codec import Json, dumps, loads_exactly
from abridge.wire.envelope import PREFIX, Envelope, damaged

TTL = 30 * 24 * 3600.0
"""Default lifetime of a blob, in seconds."""

MOST = (1 << 32) - 1
"""Largest size a box header can state, in bytes. A request's own limit is lower."""

_SALT, _TAG = 16, 32
_HEAD = struct.Struct(f">Q{_SALT}s{_TAG}s")
"""Time of sealing in seconds since the epoch, salt, owner tag. A box follows."""


class Sealer:
    """Seals and opens envelopes for one request.

    `tenant_tags` are the tenant's tags by key id; a request without a tenant has none, gets no
    blobs and cannot use any. A blob holds reasoning in the format of one client `api`, usable with
    one upstream and one model family. `now` is in seconds since the epoch; a blob is valid for
    `ttl` seconds. The content opened from one request is limited to `limit` bytes. `opened` counts
    the blobs used, `dropped` the others by reason: `foreign`, `expired`, `oversize`, `edited`.
    """

    def __init__(
        self,
        keys: Keyring,
        tenants: Mapping[str, bytes],
        *,
        api: str,
        upstream: str,
        model: str,
        now: float,
        limit: int,
        ttl: float = TTL,
    ) -> None:
        self._keys = keys
        self._tenants = tenants
        self._for = tuple(_bytes(name) for name in (api, upstream, family(model)))
        self._now = now
        self._ttl = ttl
        self._limit = limit
        self._box = Box(keys, use=b"envelope", limit=MOST)
        self._read: dict[str, bytes | str] = {}
        self._room = self._room_for_copies = limit
        self.opened = 0
        self.dropped: Counter[str] = Counter()

    def seal(self, envelope: Envelope) -> str:
        """Return the blob; empty if it could not be opened again."""
        key, clear = self._keys.first, _spelled(envelope)
        tenant = self._tenants.get(key.id)
        if tenant is None or len(clear) > self._limit:
            return ""
        salt = secrets.token_bytes(_SALT)
        head = _HEAD.pack(int(self._now), salt, self._owner(key, salt, tenant))
        start = f"{PREFIX}{key.id}."
        data = head + self._box.lock(clear, start.encode() + head)
        return start + urlsafe_b64encode(data).rstrip(b"=").decode()

    def open(self, blob: str, param: str, turn: Turn, item: str = "") -> Envelope | None:
        """See `OpenEnvelope`."""
        clear = self._open(blob, param)
        if isinstance(clear, str):
            self.dropped[clear] += 1
            return None
        envelope = _read(loads_exactly(clear))
        if not envelope.fits(turn, item):
            self.dropped["edited"] += 1
            return None
        self.opened += 1
        return envelope

    def let_go(self) -> None:
        """Free the opened content. Call it when the request has been rewritten."""
        self._read.clear()

    def _open(self, blob: str, param: str) -> bytes | str:
        """Return a blob's content, or the reason it cannot be used. A repeated blob is decrypted
        only once and counted against a separate limit for copies: each copy makes the request
        larger, too."""
        known = self._read.get(blob)
        if known is None:
            return self._read.setdefault(blob, self._look_into(blob, param))
        if isinstance(known, bytes):
            if len(known) > self._room_for_copies:
                return "oversize"
            self._room_for_copies -= len(known)
        return known

    def _look_into(self, blob: str, param: str) -> bytes | str:
        """Check the cheap things first: owner, age and size before inflating."""
        key, head, packed = self._unlock(blob, param)
        sealed_at, salt, owner = _HEAD.unpack(head)
        tenant = self._tenants.get(key.id)
        if tenant is None or not compare_digest(owner, self._owner(key, salt, tenant)):
            return "foreign"
        if self._now - sealed_at > self._ttl:
            return "expired"
        if packed.size > self._room:
            return "oversize"
        self._room -= packed.size
        clear = packed.clear()
        if clear is None:
            raise damaged(param)
        return clear

    def _unlock(self, blob: str, param: str) -> tuple[Key, bytes, Packed]:
        identity, _, encoded = blob.removeprefix(PREFIX).partition(".")
        key, data = self._keys.get(identity), _decoded(encoded)
        if key is None or data is None:
            raise damaged(param)
        head, box = data[: _HEAD.size], data[_HEAD.size :]
        packed = self._box.open(box, f"{PREFIX}{identity}.".encode() + head)
        if packed is None:
            raise damaged(param)
        return key, head, packed

    def _owner(self, key: Key, salt: bytes, tenant: bytes) -> bytes:
        """Return the owner tag, salted so that nobody else sees which blobs belong together."""
        return keyed(key.tenant, b"blob", salt, tenant, *self._for)


def _spelled(envelope: Envelope) -> bytes:
    return dumps(
        {
            "reasoning": envelope.reasoning,
            "item": envelope.item,
            "calls": envelope.calls,
            "text": envelope.text,
        }
    )


def _read(spelled: Json) -> Envelope:
    calls = spelled["calls"]
    known = None if calls is None else tuple(calls)
    return Envelope(spelled["reasoning"], spelled["item"], known, spelled["text"])


def _decoded(encoded: str) -> bytes | None:
    """Decode unpadded base64url. Return None for anything but the canonical encoding."""
    try:
        data = b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
    except (Error, ValueError):
        return None
    return data if urlsafe_b64encode(data).rstrip(b"=") == encoded.encode() else None


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogatepass")
