"""Test that what is only encoded is told from what is encrypted."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from random import Random

import pytest

from abridge.apis.decoding import is_readable
from tests.support.shared import RECORDINGS

TEXTS = {
    "English": "First I look at the question, and then I add the numbers one by one.",
    "two words": "I add",
    "Chinese": "\u6211\u5148\u60f3\u4e00\u60f3\u518d\u770b\u4e00\u770b\u9898\u76ee",
    "JSON": '{"thinking": "First I look at it, then I add."}',
}


def base64(data: bytes) -> bytes:
    return b64encode(data)


def base64url(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


def hexadecimal(data: bytes) -> bytes:
    return data.hex().encode()


ENCODINGS: dict[str, list[Callable[[bytes], bytes]]] = {
    "nothing": [],
    "base64": [base64],
    "base64 for URLs": [base64url],
    "hexadecimal": [hexadecimal],
    "base64 twice": [base64, base64],
    "zlib in base64": [zlib.compress, base64],
    "gzip in base64": [gzip.compress, base64],
    "bzip2 in base64": [bz2.compress, base64],
    "xz in base64": [lzma.compress, base64],
    "zlib in base64 in hexadecimal": [zlib.compress, base64, hexadecimal],
    "zlib in base64 with a version": [zlib.compress, base64, b"v1.".__add__],
    "among other bytes, in base64": [lambda data: bytes(range(32)) + data + bytes(9), base64],
}


@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_is_only_encoded_is_readable(
    text: str, encode: list[Callable[[bytes], bytes]]
) -> None:
    data = text.encode()
    if len(text) < 6 and len(encode) == 2 and encode[0](b"").startswith(bytes(range(32))):
        pytest.skip("two words may be anything there")
    for one in encode:
        data = one(data)
    assert is_readable(data.decode())


def test_random_bytes_are_not() -> None:
    random = Random(7)
    for size in (16, 64, 300, 6000):
        for _ in range(60):
            data = random.randbytes(size)
            assert not is_readable(b64encode(data).decode())
            assert not is_readable(data.hex())


@pytest.mark.parametrize("state", ["", "c2ln", "gAAAAABo", "CAES", "abc=", "eyJhbGciOiJkaXIifQ"])
def test_a_short_one_is_not(state: str) -> None:
    assert not is_readable(state)


def recorded_states() -> list[str]:
    """Return the state in recorded answers of those who encrypt it."""
    import re

    found = re.compile(r'"(?:encrypted_content|signature|thoughtSignature)": ?"([^"]{40,})"')
    paths = sorted(RECORDINGS.rglob("*.response.json")) if RECORDINGS.is_dir() else []
    return [state for path in paths for state in found.findall(path.read_text())]


def test_what_vendors_have_encrypted_is_not() -> None:
    assert [state[:80] for state in recorded_states() if is_readable(state)] == []
