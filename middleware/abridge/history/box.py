"""Bytes that only who has the keys can read, and none can change unnoticed.

Each value is sealed by AES-256-GCM under a key of its own, derived from one of the ring's and a
fresh salt: so no two values share a key and a nonce, however many there are. What a value is bound
to (its place, whose it is) is authenticated with it, and so is its size in the clear.
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
"""Bytes of the largest value in the clear."""

VERSION = 1
NONCE = 12
SALT = 32

LEVEL = 1
"""Of compression: the usual one takes five times as long, for a fifth less."""

_HEAD = struct.Struct(f">BB{SALT}sI")
"""Version, bytes of the key's id, salt, size in the clear; the id follows."""


@dataclass(slots=True, frozen=True)
class Packed:
    """A value, compressed. `size` is that in the clear."""

    data: bytes
    size: int

    def clear(self) -> bytes | None:
        """Never more than was announced, whatever is in it."""
        stream = zlib.decompressobj()
        try:
            clear = stream.decompress(self.data, self.size + 1)
        except zlib.error:
            return None
        return clear if len(clear) == self.size and stream.eof else None


class Box:
    """Seals with the first key of a ring, and opens what any of its keys has sealed.

    `use` keeps apart what is sealed for one purpose and for another; no value is larger than
    `limit` bytes in the clear.
    """

    def __init__(self, keys: Keyring, *, use: bytes = b"", limit: int = LIMIT) -> None:
        self._keys = keys
        self._use = use
        self.limit = limit

    def lock(self, clear: bytes, bound: bytes) -> bytes:
        """Seal a value. Raises ValueError for one that is too large."""
        if len(clear) > self.limit:
            raise ValueError(f"a value of {len(clear)} bytes is larger than {self.limit}")
        key = self._keys.first
        head = _Head(key.id, secrets.token_bytes(SALT), len(clear))
        cipher, nonce = self._cipher(key.seal, head.salt)
        written = head.written()
        return written + cipher.encrypt(nonce, zlib.compress(clear, LEVEL), written + bound)

    def unlock(self, data: bytes, bound: bytes) -> bytes | None:
        """What was sealed; None for what was bound to something else, or changed, or sealed with
        another key."""
        packed = self.open(data, bound)
        return packed.clear() if packed is not None else None

    def open(self, data: bytes, bound: bytes) -> Packed | None:
        """The same, for who looks at its size before it is inflated: what it says of that is
        true."""
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
        """For one value, as is the nonce."""
        info = b"abridge box " + self._use
        derived = HKDF(SHA256(), LENGTH + NONCE, salt, info).derive(key)
        return AESGCM(derived[:LENGTH]), derived[LENGTH:]


@dataclass(slots=True, frozen=True)
class _Head:
    """What stands before a sealed value, in the clear: the key's id, its salt, and its size."""

    key: str
    salt: bytes
    size: int

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
