"""A request's body: read whole where it must be known, handed on as it came where not."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from starlette.types import Message, Receive, Scope

from abridge.errors import RequestError

GZIP_OR_DEFLATE = 47  # zlib's window bits that take either header

Keep: TypeAlias = Callable[[int], None]
"""Told of so many bytes more that a request keeps in memory. Raises RequestError if it may not."""


class Room:
    """The room for all bodies that are in memory at once, in bytes."""

    def __init__(self, size: int) -> None:
        self._free = size

    @contextmanager
    def share(self) -> Iterator[Keep]:
        """What one request keeps, until it is over."""
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
    """What was taken off `receive` to look at. `data` is the body, None where it is not whole: past
    the limit, or because the client has `left`. `keep` is told of what else is kept for it."""

    def __init__(
        self, messages: list[Message], data: bytes | None, receive: Receive, keep: Keep
    ) -> None:
        self.left = bool(messages) and messages[-1]["type"] == "http.disconnect"
        self._messages = messages[::-1]
        self._receive = receive
        self.data = data
        self.keep = keep

    def with_body(self, data: bytes) -> Taken:
        """The same with another body."""
        message: Message = {"type": "http.request", "body": data, "more_body": False}
        return Taken([message], data, self._receive, self.keep)

    async def receive(self) -> Message:
        """The same messages again, then what else comes."""
        return self._messages.pop() if self._messages else await self._receive()


async def take(scope: Scope, receive: Receive, limit: int, keep: Keep) -> Taken:
    """Read a body of at most `limit` bytes, or as much of a longer one as shows that it is."""
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
    """Undoes a content encoding, in pieces; raises ValueError on what it cannot undo.

    `limit` bounds what one piece may become, since a few bytes can become very many.
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
    """The first header of a lower-case name, or nothing."""
    return next((value for key, value in headers if key.lower() == name), b"")


def without(
    headers: Iterable[tuple[bytes, bytes]], names: Iterable[bytes]
) -> list[tuple[bytes, bytes]]:
    left = frozenset(names)
    return [(key, value) for key, value in headers if key.lower() not in left]


def length(scope: Scope) -> int:
    """How long the body is said to be; 0 where nothing is said."""
    said = header(scope["headers"], b"content-length")
    return int(said) if said.isdigit() else 0
