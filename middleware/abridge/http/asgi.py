"""ASGI requests and responses: paths, headers and content encodings."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import cast
from urllib.parse import quote, unquote

from starlette.types import Message, Scope

PATH_SAFE = "/:@!$&'()*+,;="  # characters that need no percent-encoding in a path

GZIP_OR_DEFLATE = 47  # zlib's window bits that take either header

BYPASSING_EXTENSIONS = (
    "http.response.pathsend",
    "http.response.zerocopysend",
    "http.response.trailers",
)
"""ASGI extensions that send a response past the code that reads it."""

BODY_HEADERS = (
    b"content-length",
    b"content-encoding",
    b"etag",
    b"content-md5",
    b"digest",
    b"content-digest",
    b"repr-digest",
)
"""Headers that describe the original bytes of a body that is rewritten."""


def decoded_path(scope: Scope) -> str:
    """Return the path below the mount point, percent-decoded."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def encoded_path(scope: Scope) -> bytes:
    """Return the path below the mount point, percent-encoded as the client encoded it.

    `raw_path` is optional in ASGI, and some applications rewrite `path` without it: if the two
    disagree, `path` decides.
    """
    path, raw, root = scope["path"], scope.get("raw_path"), scope.get("root_path", "")
    if raw is None or unquote(raw.decode("latin-1")) != path:
        raw = quote(path, PATH_SAFE).encode()
    start = 0
    if path == root or path.startswith(f"{root}/"):
        for _ in root.encode():
            start += 3 if raw[start : start + 1] == b"%" else 1
    return cast(bytes, raw[start:])


class Inflater:
    """Decompress gzip or deflate incrementally; raises ValueError on invalid data.

    `limit` bounds the output of one call in bytes, against decompression bombs.
    """

    def __init__(self, limit: int) -> None:
        self._inflate = zlib.decompressobj(GZIP_OR_DEFLATE)
        self._limit = limit

    def feed(self, data: bytes) -> bytes:
        try:
            decoded = self._inflate.decompress(data, self._limit)
        except zlib.error as error:
            raise ValueError(str(error)) from None
        if self._inflate.unconsumed_tail:
            raise ValueError(f"it unpacks to more than {self._limit} bytes")
        return decoded


def can_inflate(encoding: bytes) -> bool:
    return encoding.strip().lower() in (b"gzip", b"x-gzip", b"deflate")


def get_header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    """Return the first header with this lower-case name, or `b""`."""
    return next((value for key, value in headers if key.lower() == name), b"")


def drop_headers(
    headers: Iterable[tuple[bytes, bytes]], names: Iterable[bytes]
) -> list[tuple[bytes, bytes]]:
    dropped = frozenset(names)
    return [(key, value) for key, value in headers if key.lower() not in dropped]


def content_length(scope: Scope) -> int:
    """Return the Content-Length, 0 if there is none."""
    value = get_header(scope["headers"], b"content-length")
    return int(value) if value.isdigit() else 0


def json_start(status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> Message:
    """Return the start message of a JSON response made by Abridge."""
    described = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *headers,
    ]
    return {"type": "http.response.start", "status": status, "headers": described}
