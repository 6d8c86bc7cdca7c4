"""Request bodies: buffered where they must be read, and replayed to the application."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from starlette.types import Message, Receive, Scope

from abridge.client_shares import ClientShares
from abridge.config.tables import LimitSettings
from abridge.errors import RequestError
from abridge.http.asgi import content_length

ReserveMemory: TypeAlias = Callable[[int], None]
"""Reserves memory for so many more bytes of a request. Raises RequestError if there is too
little."""


class MemoryBudget:
    """Memory for all buffered bodies together; one client gets a share, or at least one body."""

    def __init__(self, limits: LimitSettings) -> None:
        self._shares = ClientShares()
        self.resize(limits)

    def resize(self, limits: LimitSettings) -> None:
        """Have other limits from now on."""
        share = max(limits.body, int(limits.bodies * limits.client_share))
        self._shares.resize(limits.bodies, share)

    def reserving(self, client: str) -> Reservation:
        """Return what reserves memory for one request of a client."""
        return Reservation(self._shares, client)


class Reservation:
    """Memory of one request, reserved by calls; at the end of its context all is released."""

    __slots__ = ("_client", "_shares", "_size")

    def __init__(self, shares: ClientShares, client: str) -> None:
        self._shares, self._client, self._size = shares, client, 0

    def __enter__(self) -> ReserveMemory:
        return self

    def __call__(self, size: int) -> None:
        if not self._shares.take(self._client, size):
            message = "Too many requests are in progress."
            raise RequestError(message, status=503, code="overloaded")
        self._size += size

    def __exit__(self, *_: object) -> None:
        self._shares.give_back(self._client, self._size)


UNCOUNTED_BYTES = 64 << 10
"""Bytes of an answer that may wait without being counted: no event of most answers is longer."""


class Room:
    """Memory for what of one answer waits until it is whole, an event or a JSON body. Those of all
    answers share it with the bodies of requests."""

    def __init__(self, reserve: ReserveMemory) -> None:
        self._reserve = reserve
        self._size = UNCOUNTED_BYTES

    def holds(self, size: int) -> bool:
        """Return whether so many bytes may wait. What is taken is kept until the request ends."""
        if size > self._size:
            try:
                self._reserve(size - self._size)
            except RequestError:
                return False
            self._size = size
        return True


class BufferedBody:
    """Messages taken off `receive`, to be read, and replayed as a `receive` itself.

    A whole body is replayed in one piece, however it came, so that `Proxy` can send it again.
    """

    def __init__(
        self, messages: list[Message], data: bytes | None, receive: Receive, reserve: ReserveMemory
    ) -> None:
        self.client_left = bool(messages) and messages[-1]["type"] == "http.disconnect"
        self._messages = messages[::-1]
        self.rest = receive  # for what comes after the body
        self.data = data  # None if the body is over the limit, or the client left
        self.reserve = reserve  # reserves memory for what else the request needs
        self.call_on_leave = getattr(receive, "call_on_leave", None)  # see `http/asgi.py`

    def with_body(self, data: bytes) -> BufferedBody:
        """Return a copy with another body."""
        return BufferedBody([_message(data)], data, self.rest, self.reserve)

    async def __call__(self) -> Message:
        """Replay the buffered messages, then pass on what else comes."""
        return self._messages.pop() if self._messages else await self.rest()

    def receive_at_once(self) -> Message | None:
        """Return the next of the buffered messages; see `http/asgi.py`."""
        return self._messages.pop() if self._messages else None


async def buffer_body(
    scope: Scope, receive: Receive, limits: LimitSettings, reserve: ReserveMemory
) -> BufferedBody:
    """Read a body of at most `limits.body` bytes; of a longer one, only enough to know that it is.

    Raises RequestError if the body has begun and the rest of it comes too slowly.
    """
    if content_length(scope) > limits.body:
        return BufferedBody([], None, receive, reserve)
    message = await receive()
    data = message.get("body", b"")
    reserve(len(data))
    messages, size, began = [message], len(data), 0.0
    while message.get("more_body", False) and size <= limits.body:
        began = began or asyncio.get_running_loop().time()
        message = await _receive_by(began + limits.upload_seconds(size), receive)
        messages.append(message)
        received = len(message.get("body", b""))
        reserve(received)
        size += received
    if size > limits.body or message["type"] == "http.disconnect":
        return BufferedBody(messages, None, receive, reserve)
    if len(messages) > 1:
        data = b"".join(message.get("body", b"") for message in messages)
        messages = [_message(data)]
    return BufferedBody(messages, data, receive, reserve)


def _message(body: bytes) -> Message:
    """Return the message of a whole body."""
    return {"type": "http.request", "body": body, "more_body": False}


async def _receive_by(deadline: float, receive: Receive) -> Message:
    try:
        async with asyncio.timeout_at(deadline):
            return await receive()
    except TimeoutError:
        raise RequestError(
            "The request body did not arrive in time.", status=408, code="request_timeout"
        ) from None
