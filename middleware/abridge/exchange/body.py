"""Request bodies: buffered where they must be read, replayed as they came where not."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from starlette.types import Message, Receive, Scope

from abridge.errors import RequestError

GZIP_OR_DEFLATE = 47  # zlib's window bits that take either header

Keep: TypeAlias = Callable[[int], None]
"""Reserves memory for so many more bytes of a request. Raises RequestError if there is too
little."""


class Room:
    """Memory for all buffered bodies together, in bytes."""

    def __init__(self, size: int) -> None:
        self._free = size

    @contextmanager
    def share(self) -> Iterator[Keep]:
        """Yield a function that reserves memory for one request; all of it is released at the
        end."""
        kept = 0

        def keep(size: int) -> None:
            nonlocal kept
            if size > self._free:
                raise RequestError(
                    "Too many requests are under way.",
                    status=503,
                    kind="server_error",
                    code="overloaded",
                )
            self._free -= size
            kept += size

        try:
            yield keep
        finally:
            self._free += kept


class Taken:
    """Messages taken off `receive`, to be read and replayed."""

    def __init__(
        self, messages: list[Message], data: bytes | None, receive: Receive, keep: Keep
    ) -> None:
        self.left = bool(messages) and messages[-1]["type"] == "http.disconnect"
        self._messages = messages[::-1]
        self._receive = receive
        self.data = data  # None if the body is over the limit, or the client left
        self.keep = keep  # reserves memory for what else the request needs

    def with_body(self, data: bytes) -> Taken:
        """Return a copy with another body."""
        message: Message = {"type": "http.request", "body": data, "more_body": False}
        return Taken([message], data, self._receive, self.keep)

    async def receive(self) -> Message:
        """Replay the buffered messages, then pass on what else comes."""
        return self._messages.pop() if self._messages else await self._receive()


async def take(scope: Scope, receive: Receive, limit: int, keep: Keep) -> Taken:
    """Read a body of at most `limit` bytes; of a longer one, only enough to know that it is."""
    messages: list[Message] = []
    if length(scope) > limit:
        return Taken(messages, None, receive, keep)
    size, more = 0, True
    while more and size <= limit:
        message = await receive()
        messages.append(message)
        more = message["type"] == "http.request" and message.get("more_body", False)
        came = len(message.get("body", b""))
        keep(came)
        size += came
    if size > limit or messages[-1]["type"] == "http.disconnect":
        return Taken(messages, None, receive, keep)
    data = b"".join(message.get("body", b"") for message in messages)
    return Taken(messages, data, receive, keep)


class Inflater:
    """Decompress gzip or deflate incrementally; raises ValueError on invalid data.

    `limit` bounds the output of one call in bytes, against decompression bombs.
    """

    def __init__(self, limit: int) -> None:
        self._inflate = zlib.decompressobj(GZIP_OR_DEFLATE)
        self._limit = limit

    def feed(self, data: bytes) -> bytes:
        try:
            clear = self._inflate.decompress(data, self._limit)
        except zlib.error as error:
            raise ValueError(str(error)) from None
        if self._inflate.unconsumed_tail:
            raise ValueError(f"it unpacks to more than {self._limit} bytes")
        return clear


def can_inflate(encoding: bytes) -> bool:
    return encoding.strip().lower() in (b"gzip", b"x-gzip", b"deflate")


def header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    """Return the first header with this lower-case name, or `b""`."""
    return next((value for key, value in headers if key.lower() == name), b"")


def without(
    headers: Iterable[tuple[bytes, bytes]], names: Iterable[bytes]
) -> list[tuple[bytes, bytes]]:
    left = frozenset(names)
    return [(key, value) for key, value in headers if key.lower() not in left]


def length(scope: Scope) -> int:
    """Return the Content-Length, 0 if there is none."""
    said = header(scope["headers"], b"content-length")
    return int(said) if said.isdigit() else 0
