"""Sealed values: who can read them, and what becomes of those that were touched."""

from __future__ import annotations

import base64
import zlib

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from abridge.memory.cipher import Cipher, _Header
from abridge.memory.keys import Key, Keyring

OLD, NEW = Key.derive("old", bytes(32)), Key.derive("new", bytes([1] * 32))
RING = Keyring((OLD,))
SEALED = (
    "AQMrO72/wQPxlUYRNTresrj0TJlG12KaxpOuocStG5E6TgAAABJvbGTv"
    "iAHOWdG5eKsk4hzEjggUA0GEVPo8BlKITD/I/zMnXkI3GOKwm2HZ+9o="
)
"""Of `I add the numbers.`, by the key `old` for the use `store`, bound to `place`."""

CLEAR = b"I think, therefore I add. " * 20


@given(st.binary(max_size=2000), st.binary(max_size=50))
def test_a_sealed_value_opens(clear: bytes, bound: bytes) -> None:
    cipher = Cipher(RING)
    assert cipher.unseal(cipher.seal(clear, bound), bound) == clear


def test_sealed_values_reveal_nothing_and_differ_each_time() -> None:
    one, two = (Cipher(RING).seal(CLEAR, b"place") for _ in range(2))
    assert b"think" not in one
    assert one != two
    assert len(one) < len(CLEAR)


def test_a_value_opens_only_with_its_use_and_associated_data() -> None:
    sealed = Cipher(RING, use=b"store").seal(CLEAR, b"place")
    assert Cipher(RING, use=b"store").unseal(sealed, b"another place") is None
    assert Cipher(RING, use=b"client").unseal(sealed, b"place") is None
    assert Cipher(RING, use=b"store").unseal(sealed, b"place") == CLEAR


@given(st.data())
def test_no_bit_can_be_changed(data: st.DataObject) -> None:
    cipher = Cipher(RING)
    sealed = bytearray(cipher.seal(b"secret", b"place"))
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    assert cipher.unseal(bytes(sealed), b"place") is None


@given(st.data())
def test_no_byte_can_be_cut_off_or_added(data: st.DataObject) -> None:
    cipher = Cipher(RING)
    sealed = cipher.seal(b"secret", b"place")
    cut = data.draw(st.integers(0, len(sealed) - 1))
    assert cipher.unseal(sealed[:cut], b"place") is None
    assert cipher.unseal(sealed + sealed[cut:], b"place") is None


@given(st.binary(max_size=200))
def test_arbitrary_bytes_do_not_open(data: bytes) -> None:
    assert Cipher(RING).unseal(data, b"place") is None
    assert Cipher(RING).unseal(b"\x01\x03" + data, b"place") is None


def test_keys_can_be_rotated() -> None:
    sealed = Cipher(RING).seal(CLEAR, b"place")
    rotated = Cipher(Keyring((NEW, OLD)))
    assert rotated.unseal(sealed, b"place") == CLEAR
    assert Cipher(Keyring((NEW,))).unseal(sealed, b"place") is None
    assert Cipher(RING).unseal(rotated.seal(CLEAR, b"place"), b"place") is None


def test_another_key_with_the_same_id_opens_nothing() -> None:
    sealed = Cipher(RING).seal(CLEAR, b"place")
    namesake = Key.derive("old", bytes([2] * 32))
    assert Cipher(Keyring((namesake,))).unseal(sealed, b"place") is None


def test_values_larger_than_the_limit_are_refused() -> None:
    small = Cipher(RING, limit=10)
    with pytest.raises(ValueError, match="larger"):
        small.seal(b"x" * 11, b"")
    assert small.unseal(small.seal(b"x" * 10, b""), b"") == b"x" * 10
    assert small.unseal(Cipher(RING).seal(b"x" * 11, b""), b"") is None


def packed_as(size: int, packed: bytes) -> bytes:
    """A sealed value by somebody who has the key and says what he likes of its size."""
    head = _Header(OLD.id, bytes(32), size)
    cipher, nonce = Cipher(RING)._derive(OLD.seal, head.salt)
    return head.pack() + cipher.encrypt(nonce, packed, head.pack())


@pytest.mark.parametrize("said", [0, 99, 101, 10_000])
def test_a_value_of_another_size_than_announced_does_not_open(said: int) -> None:
    assert Cipher(RING).unseal(packed_as(100, zlib.compress(bytes(100))), b"") == bytes(100)
    assert Cipher(RING).unseal(packed_as(said, zlib.compress(bytes(100))), b"") is None


@pytest.mark.parametrize("packed", [b"", b"no zlib", zlib.compress(bytes(100))[:-1]])
def test_invalid_compressed_data_does_not_open(packed: bytes) -> None:
    assert Cipher(RING).unseal(packed_as(100, packed), b"") is None


def test_the_format_never_changes() -> None:
    """The format is a promise: it was written by another replica, or before an update."""
    sealed = base64.b64decode(SEALED)
    assert Cipher(RING, use=b"store").unseal(sealed, b"place") == b"I add the numbers."


def test_each_value_is_sealed_under_its_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []

    def kept(key: bytes) -> AESGCM:
        keys.append(key)
        return AESGCM(key)

    monkeypatch.setattr("abridge.memory.cipher.AESGCM", kept)
    for _ in range(10):
        Cipher(RING).seal(b"", b"")
    assert len(set(keys)) == 10
