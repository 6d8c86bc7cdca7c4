"""The cipher under everything that is sealed: readable only with the keys, and tamper-evident.

Each value is sealed with AES-256-GCM under its own key, derived from a key of the ring and a fresh
salt, so no two values share a key and a nonce, however many there are. The associated data (where
the value belongs, and to whom) and the size in the clear are authenticated with it.
"""

from __future__ import annotations

import secrets
import struct
import zlib
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from abridge.memory.keys import KEY_BYTES, Keyring

MAX_VALUE_BYTES = 64 << 20
"""Largest value in the clear, in bytes."""

FORMAT_VERSION = 1

NONCE_BYTES = 12

SALT_BYTES = 32

COMPRESSION_LEVEL = 1
"""zlib compression level: the default takes five times as long for a result a fifth smaller."""

_HEADER_STRUCT = struct.Struct(f">BB{SALT_BYTES}sI")
"""Version, length of the key id, salt, size in the clear. The key id follows."""

_SHA256 = SHA256()


class CompressedValue(NamedTuple):
    """A compressed value."""

    data: bytes
    size: int  # in the clear, in bytes

    def inflate(self) -> bytes | None:
        """Inflate the value, to no more than the announced size. Return None if the data is invalid
        or of another size."""
        stream = zlib.decompressobj()
        try:
            inflated = stream.decompress(self.data, self.size + 1)
        except zlib.error:
            return None
        return inflated if len(inflated) == self.size and stream.eof else None


class Cipher:
    """Seals with the first key of a ring, opens what any of its keys sealed.

    `use` separates what is sealed for different purposes. A value may have at most `limit` bytes in
    the clear.
    """

    def __init__(self, keys: Keyring, *, use: bytes = b"", limit: int = MAX_VALUE_BYTES) -> None:
        self._keys = keys
        self._info = b"abridge box " + use
        self.limit = limit

    def seal(self, clear: bytes, associated_data: bytes, *, compressed: bool = True) -> bytes:
        """Seal a value. Raises ValueError if it is larger than `limit`. Without `compressed`, its
        length tells nothing of what is in it: for a secret beside text that others choose."""
        if len(clear) > self.limit:
            raise ValueError(f"a value of {len(clear)} bytes is larger than {self.limit}")
        key = self._keys.primary
        header = _Header(key.id, secrets.token_bytes(SALT_BYTES), len(clear))
        aead, nonce = self._derive(key.seal, header.salt)
        header_bytes = header.pack()
        return header_bytes + aead.encrypt(
            nonce,
            zlib.compress(clear, COMPRESSION_LEVEL if compressed else 0),
            header_bytes + associated_data,
        )

    def unseal(self, data: bytes, associated_data: bytes) -> bytes | None:
        """Open a value. Return None if it was changed, bound to other data, or sealed with another
        key."""
        compressed = self.decrypt(data, associated_data)
        return compressed.inflate() if compressed is not None else None

    def decrypt(self, data: bytes, associated_data: bytes) -> CompressedValue | None:
        """Decrypt a value without inflating it, so that its size can be checked first. The size is
        authenticated."""
        header = _Header.unpack(data)
        key = self._keys.get(header.key_id) if header is not None else None
        if header is None or key is None or header.size > self.limit:
            return None
        end = _HEADER_STRUCT.size + len(header.key_id)
        aead, nonce = self._derive(key.seal, header.salt)
        try:
            decrypted = aead.decrypt(nonce, data[end:], data[:end] + associated_data)
        except InvalidTag:
            return None
        return CompressedValue(decrypted, header.size)

    def _derive(self, key: bytes, salt: bytes) -> tuple[AESGCM, bytes]:
        """Derive the key and the nonce for one value."""
        derived = HKDF(_SHA256, KEY_BYTES + NONCE_BYTES, salt, self._info).derive(key)
        return AESGCM(derived[:KEY_BYTES]), derived[KEY_BYTES:]


class _Header(NamedTuple):
    """The header before a sealed value, in the clear."""

    key_id: str  # the key's id
    salt: bytes
    size: int  # of the value in the clear, in bytes

    def pack(self) -> bytes:
        key_id = self.key_id.encode()
        return _HEADER_STRUCT.pack(FORMAT_VERSION, len(key_id), self.salt, self.size) + key_id

    @classmethod
    def unpack(cls, data: bytes) -> _Header | None:
        if len(data) < _HEADER_STRUCT.size:
            return None
        version, length, salt, size = _HEADER_STRUCT.unpack_from(data)
        key_id = data[_HEADER_STRUCT.size : _HEADER_STRUCT.size + length]
        if version != FORMAT_VERSION or len(key_id) != length or not key_id.isascii():
            return None
        return cls(key_id.decode(), salt, size)
