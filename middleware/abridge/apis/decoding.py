"""Tell ciphertext from text that is only encoded, which anyone can read.

Servers have put reasoning into opaque state as it is, in base64, in hexadecimal, and compressed
within that (vllm-project/vllm pull 57323). What is encrypted is like random bytes in any of these.
"""

from __future__ import annotations

import re
import zlib
from base64 import b64decode
from binascii import unhexlify
from bz2 import BZ2Decompressor
from collections.abc import Callable, Iterator
from functools import partial
from lzma import LZMADecompressor, LZMAError
from typing import Protocol

MAX_LOOKED_AT = 8192
"""Characters of state, and bytes of what it is decoded to, that are looked at."""

MAX_DEPTH = 4
"""Encodings around each other that are taken off."""

_WORDS = re.compile(
    rb"(?:[A-Za-z,.'\x22:;!?()-]{1,24}[ \t\r\n]{1,4}){4}[A-Za-z]"  # a run of words
    rb"|(?:[\xc3-\xf4][\x80-\xbf]{1,3}[ ,.]?){8}"  # or of letters of another script
)
"""Words in bytes: neither is likely among thousands of random ones."""

_TEXT = re.compile(rb"(?=[\t\r\n -~]*[A-Za-z] +[A-Za-z])[\t\r\n -~]+")
"""A text of two words or more, and nothing else."""

_HEXADECIMAL = re.compile(rb"(?:[0-9a-f]{2}){4,}|(?:[0-9A-F]{2}){4,}")

_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{4,}={0,2}")

_SEPARATOR = re.compile(rb"[.:]")

_TO_STANDARD = bytes.maketrans(b"-_", b"+/")

_COMPRESSED = (b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")
"""Zstandard and LZ4, which anyone can open, too."""


def is_readable(data: str, size: int = MAX_LOOKED_AT) -> bool:
    """Return whether text stands in the beginning of data, or in what that encodes."""
    return _may_be_read(data[:size].encode(errors="surrogatepass"), MAX_DEPTH)


def _may_be_read(data: bytes, depth: int) -> bool:
    if _WORDS.search(data) or _TEXT.fullmatch(data) or data.startswith(_COMPRESSED):
        return True
    return depth > 0 and any(_may_be_read(inner, depth - 1) for inner in _decode(data))


def _decode(data: bytes) -> Iterator[bytes]:
    """Yield what the beginning of data may encode."""
    data = data.strip(b'"\r\n ')
    if _HEXADECIMAL.fullmatch(data[: len(data) // 2 * 2]):
        yield unhexlify(data[: len(data) // 2 * 2])
    for piece in _SEPARATOR.split(data, 8):  # a version may stand before it
        if _BASE64.fullmatch(piece):
            whole = piece.rstrip(b"=")
            yield b64decode(whole[: len(whole) // 4 * 4].translate(_TO_STANDARD))
    zlib_or_gzip = partial(zlib.decompressobj, zlib.MAX_WBITS | 32)
    deflate = partial(zlib.decompressobj, -zlib.MAX_WBITS)
    for new in (zlib_or_gzip, deflate, BZ2Decompressor, LZMADecompressor):
        yield from _decompress(data, new)


class _Decompressor(Protocol):
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _decompress(data: bytes, new: Callable[[], _Decompressor]) -> Iterator[bytes]:
    try:
        opened = new().decompress(data, MAX_LOOKED_AT)
    except (OSError, ValueError, EOFError, LZMAError, zlib.error):
        return
    if opened:
        yield opened
