"""Sealed values: who can read them, and that changed ones do not open."""

from __future__ import annotations

import base64
import zlib

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from abridge.memory.cipher import (
    FORMAT_VERSION,
    NONCE_BYTES,
    SALT_BYTES,
    SALT_SECONDS,
    Cipher,
    _Header,
    _Salt,
)
from abridge.memory.keys import Key, Keyring

OLD, NEW = Key.derive("old", bytes(32)), Key.derive("new", bytes([1] * 32))
RING = Keyring((OLD,))
SEALED_1 = (
    "AQMrO72/wQPxlUYRNTresrj0TJlG12KaxpOuocStG5E6TgAAABJvbGTv"
    "iAHOWdG5eKsk4hzEjggUA0GEVPo8BlKITD/I/zMnXkI3GOKwm2HZ+9o="
)
"""Of `I add the numbers.`, by the key `old` for the use `store`, bound to `place`; version 1."""

SEALED_2 = (
    "AgO40jifhM+hLb3bju/fiTY5/eWMAYvHlLuJ4+pyCRVGPAAAABJvbGTOMu/u0psqFlEERSxgBp41JdDx+PyRMGr/Rs"
    "45ovYi0dBzWXjVQx46a8I="
)
"""The same in version 2."""

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
    head = _Header(FORMAT_VERSION, OLD.id, bytes(SALT_BYTES + NONCE_BYTES), size)
    cipher, nonce = Cipher(RING)._derive(OLD, head)
    return head.pack() + cipher.encrypt(nonce, packed, head.pack())


@pytest.mark.parametrize("said", [0, 99, 101, 10_000])
def test_a_value_of_another_size_than_announced_does_not_open(said: int) -> None:
    assert Cipher(RING).unseal(packed_as(100, zlib.compress(bytes(100))), b"") == bytes(100)
    assert Cipher(RING).unseal(packed_as(said, zlib.compress(bytes(100))), b"") is None


@pytest.mark.parametrize("packed", [b"", b"no zlib", zlib.compress(bytes(100))[:-1]])
def test_invalid_compressed_data_does_not_open(packed: bytes) -> None:
    assert Cipher(RING).unseal(packed_as(100, packed), b"") is None


@pytest.mark.parametrize("text", [SEALED_1, SEALED_2])
def test_the_format_never_changes(text: str) -> None:
    """The format is a promise: it was written by another replica, or before an update."""
    sealed = base64.b64decode(text)
    cipher = Cipher(RING, use=b"store")
    assert cipher.unseal(sealed, b"place") == b"I add the numbers."
    for bit in range(8 * len(sealed)):
        changed = bytearray(sealed)
        changed[bit // 8] ^= 1 << bit % 8
        assert cipher.unseal(bytes(changed), b"place") is None


def parts(sealed: bytes) -> tuple[bytes, bytes]:
    """The salt and the nonce of a sealed value."""
    header = _Header.unpack(sealed)
    assert header is not None
    return header.salt_and_nonce[:SALT_BYTES], header.salt_and_nonce[SALT_BYTES:]


def salt_of(cipher: Cipher) -> bytes:
    return parts(cipher.seal(b"", b""))[0]


class Process:
    """A process that has just started, with a clock and an id that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.id = 1000.0, 1
        monkeypatch.setattr("abridge.memory.cipher._salt", _Salt())
        monkeypatch.setattr("abridge.memory.cipher.monotonic", lambda: self.now)
        monkeypatch.setattr("os.getpid", lambda: self.id)


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    return Process(monkeypatch)


def test_no_two_values_have_a_nonce_in_common() -> None:
    assert len({parts(Cipher(RING).seal(b"", b""))[1] for _ in range(100)}) == 100


@pytest.mark.usefixtures("process")
def test_a_salt_is_for_a_limited_number_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("abridge.memory.cipher.VALUES_PER_SALT", 4)
    ciphers = [Cipher(RING, use=b"store"), Cipher(RING, use=b"envelope")]
    salts = [salt_of(ciphers[number % 2]) for number in range(12)]
    assert [salts.count(salt) for salt in dict.fromkeys(salts)] == [4, 4, 4]


def test_a_salt_is_for_a_limited_time(process: Process) -> None:
    first = salt_of(Cipher(RING))
    process.now += SALT_SECONDS - 1
    assert salt_of(Cipher(RING)) == first
    process.now += 1
    assert salt_of(Cipher(RING)) != first


def test_a_forked_process_has_a_salt_of_its_own(process: Process) -> None:
    first = salt_of(Cipher(RING))
    process.id = 2
    assert salt_of(Cipher(RING)) != first


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The keys derived from now on."""
    keys: list[bytes] = []

    def noting(key: bytes) -> AESGCM:
        keys.append(key)
        return AESGCM(key)

    monkeypatch.setattr("abridge.memory.cipher.AESGCM", noting)
    return keys


@pytest.mark.usefixtures("process")
def test_one_key_is_derived_for_all_values_with_a_salt(derived: list[bytes]) -> None:
    sealed = [Cipher(RING).seal(CLEAR, b"place") for _ in range(10)]
    assert all(Cipher(RING).unseal(each, b"place") == CLEAR for each in sealed)
    assert len(derived) == 1


@pytest.mark.usefixtures("process")
def test_each_use_and_each_key_of_a_ring_has_a_key_of_its_own(derived: list[bytes]) -> None:
    for ring in (RING, Keyring((NEW,))):
        for use in (b"store", b"envelope"):
            Cipher(ring, use=use).seal(CLEAR, b"place")
    assert len(set(derived)) == 4
