"""The cipher under everything that is sealed: readable only with the keys, and tamper-evident.

Each value is sealed with AES-256-GCM under a key derived from a key of the ring and a salt, with a
random nonce of 96 bits. A process keeps a salt for at most `VALUES_PER_SALT` values: two of those
have the same nonce with a probability of less than 2**-56. Without a salt in common there is no key
in common, so what other processes seal adds nothing to that. The associated data (where the value
belongs, and to whom) and the header, with the size in the clear, are authenticated with each value.

In version 1, which is still read, each value has its own salt, from which the nonce is derived too.
"""

from __future__ import annotations

import os
import secrets
import struct
import zlib
from time import monotonic
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from abridge.caches import SEALING_KEYS, cached
from abridge.memory.keys import KEY_BYTES, Key, Keyring

MAX_VALUE_BYTES = 64 << 20
"""Largest value in the clear, in bytes."""

FORMAT_VERSION = 2

NONCE_BYTES = 12

SALT_BYTES = 20

VALUES_PER_SALT = 1 << 20
"""Values that a process seals with one salt."""

SALT_SECONDS = 3600.0
"""How long a process keeps a salt: by its salt, a value is known to come from the same process as
another."""

COMPRESSION_LEVEL = 1
"""zlib compression level: the default takes five times as long for a result a fifth smaller."""

_HEADER_STRUCT = struct.Struct(f">BB{SALT_BYTES + NONCE_BYTES}sI")
"""Version, length of the key id, salt and nonce (in version 1 a salt as long as both), size in the
clear. The key id follows."""

_SHA256 = SHA256()


class _Salt:
    """The salt with which this process seals: renewed in time, and in a process forked from it."""

    def __init__(self) -> None:
        self._salt = b""
        self._process = self._values_left = 0
        self._expires = 0.0

    def take(self) -> bytes:
        """Return the salt for one value."""
        now, process = monotonic(), os.getpid()
        if self._values_left <= 0 or now >= self._expires or process != self._process:
            self._salt = secrets.token_bytes(SALT_BYTES)
            self._process, self._values_left = process, VALUES_PER_SALT
            self._expires = now + SALT_SECONDS
        self._values_left -= 1
        return self._salt


_salt = _Salt()


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
        self._use = use
        self.limit = limit

    def seal(self, clear: bytes, associated_data: bytes, *, compressed: bool = True) -> bytes:
        """Seal a value. Raises ValueError if it is larger than `limit`. Without `compressed`, its
        length tells nothing of what is in it: for a secret beside text that others choose."""
        if len(clear) > self.limit:
            raise ValueError(f"a value of {len(clear)} bytes is larger than {self.limit}")
        key = self._keys.primary
        salt_and_nonce = _salt.take() + secrets.token_bytes(NONCE_BYTES)
        header = _Header(FORMAT_VERSION, key.id, salt_and_nonce, len(clear))
        aead, nonce = self._derive(key, header)
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
        aead, nonce = self._derive(key, header)
        try:
            decrypted = aead.decrypt(nonce, data[end:], data[:end] + associated_data)
        except InvalidTag:
            return None
        return CompressedValue(decrypted, header.size)

    def _derive(self, key: Key, header: _Header) -> tuple[AESGCM, bytes]:
        """Return the cipher for one value, with the key derived for it, and its nonce."""
        if header.version == 1:
            return _derive_version_1(key.seal, header.salt_and_nonce, self._use)
        salt, nonce = header.salt_and_nonce[:SALT_BYTES], header.salt_and_nonce[SALT_BYTES:]
        return _derive_shared(key.seal, salt, self._use), nonce


@cached(SEALING_KEYS)
def _derive_shared(key: bytes, salt: bytes, use: bytes) -> AESGCM:
    """Derive the key for all values with one salt."""
    return AESGCM(HKDF(_SHA256, KEY_BYTES, salt, b"abridge sealed " + use).derive(key))


def _derive_version_1(key: bytes, salt: bytes, use: bytes) -> tuple[AESGCM, bytes]:
    """Derive the key and the nonce for one value."""
    derived = HKDF(_SHA256, KEY_BYTES + NONCE_BYTES, salt, b"abridge box " + use).derive(key)
    return AESGCM(derived[:KEY_BYTES]), derived[KEY_BYTES:]


class _Header(NamedTuple):
    """The header before a sealed value, in the clear."""

    version: int
    key_id: str  # the key's id
    salt_and_nonce: bytes
    size: int  # of the value in the clear, in bytes

    def pack(self) -> bytes:
        key_id = self.key_id.encode()
        start = _HEADER_STRUCT.pack(self.version, len(key_id), self.salt_and_nonce, self.size)
        return start + key_id

    @classmethod
    def unpack(cls, data: bytes) -> _Header | None:
        if len(data) < _HEADER_STRUCT.size:
            return None
        version, length, salt_and_nonce, size = _HEADER_STRUCT.unpack_from(data)
        key_id = data[_HEADER_STRUCT.size : _HEADER_STRUCT.size + length]
        if version not in (1, FORMAT_VERSION) or len(key_id) != length or not key_id.isascii():
            return None
        return cls(version, key_id.decode(), salt_and_nonce, size)
