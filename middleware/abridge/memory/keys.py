"""Keys for tenant tags, store keys and sealing.

Each configured key is a root from which one key per use is derived, so leaking one of those reveals
nothing about the others. If none is configured the keys are random and live as long as the process.
"""

from __future__ import annotations

import re
import secrets
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

KEY_BYTES = 32
"""Length of a key, in bytes."""

_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")


@dataclass(slots=True, frozen=True, repr=False)
class Key:
    """One key generation: derived keys for sealing, tenant tags and store keys."""

    id: str
    seal: bytes
    tenant: bytes
    store: bytes

    @classmethod
    def derive(cls, key_id: str, root: bytes) -> Key:
        return cls(key_id, *(_derive_key(root, use) for use in (b"seal", b"tenant", b"store")))

    @classmethod
    def random(cls) -> Key:
        return cls("process", *(secrets.token_bytes(KEY_BYTES) for _ in range(3)))


@dataclass(slots=True, frozen=True)
class Keyring:
    """The keys in use: the first one writes, all of them read, which allows rotation. What may be
    written again is written under all, since replicas may have them in another order."""

    keys: tuple[Key, ...]
    configured: bool = True
    """True if the keys are configured, so that they outlive the process and other processes have
    them."""

    @property
    def primary(self) -> Key:
        return self.keys[0]

    def get(self, key_id: str) -> Key | None:
        for key in self.keys:
            if key.id == key_id:
                return key
        return None

    def first_of_each(self, found: Sequence[bytes | None]) -> list[bytes | None]:
        """Return the first value found of each thing that was looked up under every key, of one
        result for each key."""
        count = len(self.keys)
        if count == 1:
            return list(found)
        results = (found[n : n + count] for n in range(0, len(found), count))
        return [next((value for value in values if value is not None), None) for values in results]

    @classmethod
    def random(cls) -> Keyring:
        return cls((Key.random(),), configured=False)

    @classmethod
    def parse(cls, text: str) -> Keyring:
        """Parse keys written `id:base64 of 32 bytes`, separated by commas. Raises ValueError,
        with a message that does not repeat them."""
        keys = tuple(Key.derive(*entry) for entry in _parse_entries(text))
        if not keys:
            raise ValueError("holds no key; write id:base64 of 32 bytes, separated by commas")
        if len({key.id for key in keys}) < len(keys):
            raise ValueError("two keys have the same id; each needs its own")
        return cls(keys)


def _parse_entries(text: str) -> Iterator[tuple[str, bytes]]:
    for number, entry in enumerate(filter(None, map(str.strip, text.split(","))), 1):
        key_id, separator, encoded = entry.partition(":")
        if not separator:
            raise ValueError(f"key {number} is not written id:base64")
        if not _KEY_ID.fullmatch(key_id):
            raise ValueError(f"key {number} must have an id of 1 to 32 letters, digits, _ or -")
        try:
            root = b64decode(encoded.replace("-", "+").replace("_", "/"), validate=True)
        except (Error, ValueError):
            raise ValueError(f"key {number} is not valid base64") from None
        if len(root) != KEY_BYTES:
            raise ValueError(f"key {number} has {len(root)} bytes; must have {KEY_BYTES}")
        yield key_id, root


def _derive_key(root: bytes, use: bytes) -> bytes:
    """Derive the key for one use. Needs `cryptography`, which is installed wherever keys are
    configured."""
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415 -- an extra
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415 -- an extra

    return HKDF(SHA256(), KEY_BYTES, salt=None, info=b"abridge " + use).derive(root)
