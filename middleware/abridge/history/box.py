"""Authenticated encryption of values: readable only with the keys, and tamper-evident.

Each value is sealed with AES-256-GCM under its own key, derived from a key of the ring and a fresh
salt, so no two values share a key and a nonce, however many there are. The associated data (where
the value belongs, and to whom) and the size in the clear are authenticated with it.
"""

from __future__ import annotations

import secrets
import struct
import zlib
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from abridge.history.keys import LENGTH, Keyring

LIMIT = 64 << 20
"""Largest value in the clear, in bytes."""

VERSION = 1
NONCE = 12
SALT = 32

LEVEL = 1
"""zlib compression level: the default takes five times as long for a result a fifth smaller."""

_HEAD = struct.Struct(f">BB{SALT}sI")
"""Version, length of the key id, salt, size in the clear. The key id follows."""


@dataclass(slots=True, frozen=True)
class Packed:
    """A compressed value."""

    data: bytes
    size: int  # in the clear, in bytes

    def clear(self) -> bytes | None:
        """Inflate the value, to no more than the announced size. Return None if the data is invalid
        or of another size."""
        stream = zlib.decompressobj()
        try:
            clear = stream.decompress(self.data, self.size + 1)
        except zlib.error:
            return None
        return clear if len(clear) == self.size and stream.eof else None


class Box:
    """Seals with the first key of a ring, opens what any of its keys sealed.

    `use` separates what is sealed for different purposes. A value may have at most `limit` bytes in
    the clear.
    """

    def __init__(self, keys: Keyring, *, use: bytes = b"", limit: int = LIMIT) -> None:
        self._keys = keys
        self._use = use
        self.limit = limit

    def lock(self, clear: bytes, bound: bytes) -> bytes:
        """Seal a value. Raise ValueError if it is larger than `limit`."""
        if len(clear) > self.limit:
            raise ValueError(f"a value of {len(clear)} bytes is larger than {self.limit}")
        key = self._keys.first
        head = _Head(key.id, secrets.token_bytes(SALT), len(clear))
        cipher, nonce = self._cipher(key.seal, head.salt)
        written = head.written()
        return written + cipher.encrypt(nonce, zlib.compress(clear, LEVEL), written + bound)

    def unlock(self, data: bytes, bound: bytes) -> bytes | None:
        """Open a value. Return None if it was changed, bound to other data, or sealed with another
        key."""
        packed = self.open(data, bound)
        return packed.clear() if packed is not None else None

    def open(self, data: bytes, bound: bytes) -> Packed | None:
        """Decrypt a value without inflating it, so that its size can be checked first. The size is
        authenticated."""
        head = _Head.read(data)
        key = self._keys.get(head.key) if head is not None else None
        if head is None or key is None or head.size > self.limit:
            return None
        written = head.written()
        cipher, nonce = self._cipher(key.seal, head.salt)
        try:
            return Packed(cipher.decrypt(nonce, data[len(written) :], written + bound), head.size)
        except InvalidTag:
            return None

    def _cipher(self, key: bytes, salt: bytes) -> tuple[AESGCM, bytes]:
        """Derive the key and the nonce for one value."""
        info = b"abridge box " + self._use
        derived = HKDF(SHA256(), LENGTH + NONCE, salt, info).derive(key)
        return AESGCM(derived[:LENGTH]), derived[LENGTH:]


@dataclass(slots=True, frozen=True)
class _Head:
    """The header before a sealed value, in the clear."""

    key: str  # the key's id
    salt: bytes
    size: int  # of the value in the clear, in bytes

    def written(self) -> bytes:
        key = self.key.encode()
        return _HEAD.pack(VERSION, len(key), self.salt, self.size) + key

    @classmethod
    def read(cls, data: bytes) -> _Head | None:
        if len(data) < _HEAD.size:
            return None
        version, length, salt, size = _HEAD.unpack_from(data)
        key = data[_HEAD.size : _HEAD.size + length]
        if version != VERSION or len(key) != length or not key.isascii():
            return None
        return cls(key.decode(), salt, size)
