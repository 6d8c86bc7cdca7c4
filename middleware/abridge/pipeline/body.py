"""Request bodies: buffered where they must be read, replayed as they came where not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from starlette.types import Message, Receive, Scope

from abridge.errors import RequestError
from abridge.http.asgi import content_length

ReserveMemory: TypeAlias = Callable[[int], None]
"""Reserves memory for so many more bytes of a request. Raises RequestError if there is too
little."""


class MemoryBudget:
    """Memory for all buffered bodies together, in bytes."""

    def __init__(self, size: int) -> None:
        self._free = size

    @contextmanager
    def reserving(self) -> Iterator[ReserveMemory]:
        """Yield a function that reserves memory for one request; all of it is released at the
        end."""
        reserved = 0

        def reserve(size: int) -> None:
            nonlocal reserved
            if size > self._free:
                raise RequestError(
                    "Too many requests are under way.",
                    status=503,
                    kind="server_error",
                    code="overloaded",
                )
            self._free -= size
            reserved += size

        try:
            yield reserve
        finally:
            self._free += reserved


class BufferedBody:
    """Messages taken off `receive`, to be read and replayed."""

    def __init__(
        self, messages: list[Message], data: bytes | None, receive: Receive, reserve: ReserveMemory
    ) -> None:
        self.client_left = bool(messages) and messages[-1]["type"] == "http.disconnect"
        self._messages = messages[::-1]
        self._receive = receive
        self.data = data  # None if the body is over the limit, or the client left
        self.reserve = reserve  # reserves memory for what else the request needs

    def with_body(self, data: bytes) -> BufferedBody:
        """Return a copy with another body."""
        message: Message = {"type": "http.request", "body": data, "more_body": False}
        return BufferedBody([message], data, self._receive, self.reserve)

    async def receive(self) -> Message:
        """Replay the buffered messages, then pass on what else comes."""
        return self._messages.pop() if self._messages else await self._receive()


async def buffer_body(
    scope: Scope, receive: Receive, limit: int, reserve: ReserveMemory
) -> BufferedBody:
    """Read a body of at most `limit` bytes; of a longer one, only enough to know that it is."""
    messages: list[Message] = []
    if content_length(scope) > limit:
        return BufferedBody(messages, None, receive, reserve)
    size, more = 0, True
    while more and size <= limit:
        message = await receive()
        messages.append(message)
        more = message["type"] == "http.request" and message.get("more_body", False)
        received = len(message.get("body", b""))
        reserve(received)
        size += received
    if size > limit or messages[-1]["type"] == "http.disconnect":
        return BufferedBody(messages, None, receive, reserve)
    data = b"".join(message.get("body", b"") for message in messages)
    return BufferedBody(messages, data, receive, reserve)
