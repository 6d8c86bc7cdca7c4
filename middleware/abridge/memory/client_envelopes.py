"""The envelopes that clients carry: reasoning sealed into a blob on the way out, opened when the
client returns it.

A blob is `abr1.<key id>.<base64url>`. Nothing of it has to be stored, so any process with the same
keys can continue the conversation; one that opened it a moment ago does not open it again
(`opened_blobs.py`). Its owner and its place in the conversation are in it as keyed tags
that are compared after decryption, so a blob that belongs to someone else, or elsewhere, is
distinguished from a damaged one.

Reasoning is compressed by itself: how long a blob is must not tell what its secret has in common
with a text that the client can choose.
"""

from __future__ import annotations

import hmac
import re
import secrets
import struct
from base64 import urlsafe_b64encode
from binascii import a2b_base64, b2a_base64
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import chain

from abridge.apis.json import dumps, loads_exact
from abridge.apis.params import damaged_error
from abridge.core.envelope import ENVELOPE_PREFIX, Envelope
from abridge.memory.cipher import Cipher, CompressedValue
from abridge.memory.keys import Key, Keyring
from abridge.memory.opened_blobs import OpenedBlob, OpenedBlobs, tag_place
from abridge.memory.tenants import keyed_digest, prefix_lengths

DEFAULT_BLOB_TTL = 30 * 24 * 3600.0
"""Default lifetime of a blob, in seconds."""

MAX_SEALED_BYTES = (1 << 32) - 1
"""Largest size a sealed value's header can state, in bytes. A request's own limit is lower."""

_SALT_BYTES, _TAG_BYTES = 16, 32

_BLOB_VERSION = 2

_BLOB_HEADER = struct.Struct(f">BQ{_SALT_BYTES}s{_TAG_BYTES}s{_TAG_BYTES}s")
"""Version, time of sealing in seconds since the epoch, salt, owner tag, place tag. A sealed value
follows."""

_HEADER_CHARS = -(-_BLOB_HEADER.size // 3) * 4
"""Characters that begin a blob's base64url, and have its header."""

_TO_STANDARD = bytes.maketrans(b"-_+/=", b"+/!!!")
"""From base64url to base64, with something invalid for what is no base64url."""

VARIANT_TAGS = frozenset(
    {"latest", "free", "nitro", "floor", "exacto", "online", "extended", "cloud"}
)
"""Tags after a colon that say where or how a model runs, as OpenRouter and Ollama write them. Any
other tag may be a size: `gpt-oss:20b`."""

_TRAILING = re.compile(r"(?<![\s/])[\s/]++\Z")
"""Slashes and white space at the end of a name. Each run of them is looked at once."""

_DATE_SUFFIX = re.compile(
    r"[-@](?!1024)(?:20\d\d-[01]\d-[0-3]\d|20\d\d[01]\d[0-3]\d|[01]\d-20\d\d"
    r"|(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])|2[3-9](?:0[1-9]|1[0-2])|latest)(?![a-z0-9.])"
)
"""A date as a component of its own: `2025-08-07`, `20250807`, `08-2025`; `0807` for month and day,
`2508` for year and month (1024 is a size); or `latest`."""


class Sealer:
    """Seals and opens envelopes for one request.

    `tenant_tags` are the tenant's tags by key id; a request without a tenant has none, gets no
    blobs and cannot use any. A blob holds reasoning in the format of one client `api`, usable with
    one upstream and one model family. `now` is in seconds since the epoch; a blob is valid for
    `ttl` seconds. The content opened from one request is limited to `limit` bytes. `opened` counts
    the blobs used, `dropped` the others by reason: `foreign`, `expired`, `oversize`, `edited`.
    `recent` are the blobs that were opened for earlier requests.
    `next_place` is what the envelopes of the answer are bound to, unless they say it themselves.
    """

    def __init__(
        self,
        keys: Keyring,
        tenant_tags: Mapping[str, bytes],
        *,
        api: str,
        upstream: str,
        model: str,
        now: float,
        limit: int,
        ttl: float = DEFAULT_BLOB_TTL,
        recent: OpenedBlobs | None = None,
    ) -> None:
        self._keys = keys
        self._tenant_tags = tenant_tags
        audience = (api, upstream, model_family(model))
        self._audience = prefix_lengths(*(name.encode(errors="surrogatepass") for name in audience))
        self._now = now
        self._ttl = ttl
        self._limit = limit
        self._cipher = Cipher(keys, use=b"envelope", limit=MAX_SEALED_BYTES)
        self._opened_blobs: dict[str, OpenedBlob | str] = {}
        self._recent = OpenedBlobs() if recent is None else recent
        self._room_left = self._copy_room_left = limit
        self.next_place: bytes | None = None
        self.opened = 0
        self.dropped: Counter[str] = Counter()

    def seal(self, envelope: Envelope) -> str:
        """Return the blob; empty if it could not be opened again."""
        key = self._keys.primary
        encoded = dumps({"reasoning": envelope.reasoning, "item": envelope.item_id})
        tenant = self._tenant_tags.get(key.id)
        if tenant is None or len(encoded) > self._limit:
            return ""
        salt = secrets.token_bytes(_SALT_BYTES)
        place = envelope.place if envelope.place is not None else self.next_place
        owner_tag, place_tag = self._owner_tag(key, salt, tenant), tag_place(key, salt, place)
        header = _BLOB_HEADER.pack(_BLOB_VERSION, int(self._now), salt, owner_tag, place_tag)
        blob_start = f"{ENVELOPE_PREFIX}{key.id}."
        data = header + self._cipher.seal(
            encoded, blob_start.encode() + header, compressed=not envelope.holds_answer
        )
        return blob_start + urlsafe_b64encode(data).rstrip(b"=").decode()

    def open(
        self,
        blob: str,
        param: str,
        place: bytes | None,
        item_id: str = "",
        others: Iterable[bytes] = (),
    ) -> Envelope | None:
        """See `OpenEnvelope`."""
        opened = self._open_cached(blob, param)
        if isinstance(opened, str):
            self.dropped[opened] += 1
            return None
        fields = loads_exact(opened.content)
        place = next(filter(opened.is_at, chain([place], others)), None)
        if place is None or (item_id and item_id != fields["item"]):
            self.dropped["edited"] += 1
            return None
        self.opened += 1
        return Envelope(fields["reasoning"], fields["item"], place)

    def has_sealed(self, blob: str) -> bool:
        """Return whether a blob says that it was sealed for this tenant, upstream and model. It may
        be damaged."""
        key_id, _, encoded = blob.removeprefix(ENVELOPE_PREFIX).partition(".")
        key, header = self._keys.get(key_id), _decode_base64url(encoded[:_HEADER_CHARS])
        if key is None or header is None or len(header) < _BLOB_HEADER.size:
            return False
        _, _, salt, owner, _ = _BLOB_HEADER.unpack(header[: _BLOB_HEADER.size])
        tenant = self._tenant_tags.get(key.id)
        return tenant is not None and hmac.compare_digest(owner, self._owner_tag(key, salt, tenant))

    def release(self) -> None:
        """Free the opened content. Call it when the request has been rewritten."""
        self._opened_blobs.clear()

    def _open_cached(self, blob: str, param: str) -> OpenedBlob | str:
        """Return a blob's content and place, or the reason it cannot be used. A repeated blob is
        decrypted only once and counted against a separate limit for copies: each copy makes the
        request larger, too."""
        cached = self._opened_blobs.get(blob)
        if cached is None:
            return self._opened_blobs.setdefault(blob, self._open_once(blob, param))
        if isinstance(cached, OpenedBlob):
            if len(cached.content) > self._copy_room_left:
                return "oversize"
            self._copy_room_left -= len(cached.content)
        return cached

    def _open_once(self, blob: str, param: str) -> OpenedBlob | str:
        """Open a blob, or take it from those that were opened for an earlier request."""
        recent = self._recent.get(self._owner, blob)
        if recent is None:
            opened = self._check_and_inflate(blob, param)
            if isinstance(opened, OpenedBlob):
                self._recent.add(self._owner, blob, opened)
            return opened
        return self._find_obstacle(recent.sealed_at, len(recent.content)) or recent

    @cached_property
    def _owner(self) -> bytes:
        """The name under which this tenant's opened blobs are found."""
        tags = [part for name, tag in self._tenant_tags.items() for part in (name.encode(), tag)]
        return keyed_digest(self._keys.primary.tenant, b"opened", self._audience, *tags)

    def _check_and_inflate(self, blob: str, param: str) -> OpenedBlob | str:
        """Check the cheap things first: owner, age and size before inflating."""
        key, header, compressed = self._decrypt(blob, param)
        _, sealed_at, salt, owner, place_tag = _BLOB_HEADER.unpack(header)
        tenant = self._tenant_tags.get(key.id)
        if tenant is None or not hmac.compare_digest(owner, self._owner_tag(key, salt, tenant)):
            return "foreign"
        if obstacle := self._find_obstacle(sealed_at, compressed.size):
            return obstacle
        content = compressed.inflate()
        if content is None:
            raise damaged_error(param)
        return OpenedBlob(content, sealed_at, key, salt, place_tag)

    def _find_obstacle(self, sealed_at: int, size: int) -> str:
        """Return the reason why a blob of the tenant's cannot be used. If there is none, take the
        room for its content."""
        if self._now - sealed_at > self._ttl:
            return "expired"
        if size > self._room_left:
            return "oversize"
        self._room_left -= size
        return ""

    def _decrypt(self, blob: str, param: str) -> tuple[Key, bytes, CompressedValue]:
        key_id, _, encoded = blob.removeprefix(ENVELOPE_PREFIX).partition(".")
        key, data = self._keys.get(key_id), _decode_base64url(encoded)
        if key is None or data is None or data[:1] != bytes([_BLOB_VERSION]):
            raise damaged_error(param)
        header, sealed = data[: _BLOB_HEADER.size], data[_BLOB_HEADER.size :]
        compressed = self._cipher.decrypt(sealed, f"{ENVELOPE_PREFIX}{key_id}.".encode() + header)
        if compressed is None:
            raise damaged_error(param)
        return key, header, compressed

    def _owner_tag(self, key: Key, salt: bytes, tenant: bytes) -> bytes:
        """Return the owner tag, salted so that nobody else sees which blobs belong together."""
        message = prefix_lengths(b"blob", salt, tenant) + self._audience
        return hmac.digest(key.tenant, message, "sha256")


def _decode_base64url(encoded: str) -> bytes | None:
    """Decode unpadded base64url. Return None for anything but the canonical encoding: what is
    decoded of the last characters must have them for its encoding."""
    try:
        standard = encoded.encode("ascii").translate(_TO_STANDARD) + b"=" * (-len(encoded) % 4)
        data = a2b_base64(standard, strict_mode=True)
    except ValueError:
        return None
    last = data[len(data) - len(data) % 3 :]
    return data if standard.endswith(b2a_base64(last, newline=False)) else None


def model_family(model: str) -> str:
    """Return a model's name in lower case, without provider path, tag and date: what names the
    same model to whoever gets reasoning back. A snapshot replaces another under the same alias, and
    a gateway has a longer name for a model than its maker.

    The path is everything before the last slash, unless what follows does not begin with a letter
    (`/models/gpt-oss/20b`) or the path is absolute or relative to a directory: then all of it
    stays. A tag is removed if it is one of `VARIANT_TAGS`, a date wherever it stands. Everything
    else may distinguish two models and stays: a name that is too long loses a model's reasoning
    when the model is renamed, one cut too short would give it to another model.
    """
    name = model.lower()
    while (shorter := _shorten(name)) != name:
        name = shorter
    return name


def _shorten(name: str) -> str:
    """Remove the path, the tags at the end and the dates, as far as they show by now."""
    name = _TRAILING.sub("", name).lstrip()
    last = name.rpartition("/")[2]
    if last[:1].isalpha() and not name.startswith(("/", ".", "~")):
        name = last
    parts = name.split(":")
    while len(parts) > 1 + (not parts[0]) and parts[-1] in VARIANT_TAGS:
        parts.pop()
    name = ":".join(parts)
    return _DATE_SUFFIX.sub("", name) or name
