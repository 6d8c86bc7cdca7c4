"""The trial of a request that is sent again in another way if its answer is a certain error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.errors import AttemptFailed, EndpointMissing
from abridge.http.asgi import ReceiveUntil, decoder_for, find_write_at_once, send_whole
from abridge.waiting import Flag

MAX_ERROR_BYTES = 64 * 1024
"""Bytes of an error body that are read; a longer one is checked as if it were empty."""

Check = Callable[[int, bytes], None]
"""Checks an answer by its status and body. Raises AttemptFailed where the request is to be sent
again."""


@dataclass(slots=True, frozen=True)
class Trial:
    """Call an application, and withhold an answer until its error body was checked.

    `must_withhold` chooses answers by their status. Raises what `check` raises; then nothing was
    sent to the client. Else the answer is passed on.
    """

    app: ASGIApp
    must_withhold: Callable[[int], bool]
    check: Check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _TriedAnswer(self.must_withhold, self.check, send)
        async with ReceiveUntil(answer.ended, receive) as receive_or_end:
            await self.app(scope, receive_or_end, answer.take)
        if not answer.passes:
            await answer.end()


class _TriedAnswer:
    """One answer, withheld until it was checked."""

    def __init__(self, must_withhold: Callable[[int], bool], check: Check, send: Send) -> None:
        self._must_withhold = must_withhold
        self._check = check
        self._send = send
        self.passes = True
        self.write_at_once: Callable[[bytes], bool] | None = None  # once it passes
        self._withheld: list[Message] = []
        self._failure: AttemptFailed | None = None
        self.ended = Flag()  # set when the last message was withheld

    async def take(self, message: Message) -> None:
        """Take the application's next message."""
        if message["type"] == "http.response.start":
            self.passes = not self._must_withhold(message["status"])
            self.write_at_once = find_write_at_once(self._send) if self.passes else None
        if self.passes:
            await self._send(message)
            return
        if self._failure is None:
            self._withheld.append(message)
            if sum(len(one.get("body", b"")) for one in self._withheld) > MAX_ERROR_BYTES:
                await self._judge(b"")
        if message["type"] != "http.response.start" and not message.get("more_body", False):
            self.ended.set()

    async def send_whole(self, start: Message, body: bytes) -> None:
        """Take a whole answer; see `http/asgi.py`."""
        if self._must_withhold(start["status"]):
            await self.take(start)
            await self.take({"type": "http.response.body", "body": body})
        else:
            await send_whole(self._send, start, body)

    async def end(self) -> None:
        """Check an answer that is still withheld. Raises AttemptFailed."""
        if self._withheld:
            await self._judge(_error_body(self._withheld))
        failure, self._failure = self._failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # else a circle: an error keeps this frame, and all it names

    async def _judge(self, body: bytes) -> None:
        """Pass on what was withheld and all that follows, unless the request is sent again."""
        withheld, self._withheld = self._withheld, []
        try:
            self._check(withheld[0]["status"], body)
        except AttemptFailed as failure:
            if isinstance(failure, EndpointMissing) and self.ended.is_set():
                failure.answer = GivenAnswer(withheld)
            self._failure = failure
            return
        self.passes = True
        for message in withheld:
            await self._send(message)


class GivenAnswer:
    """An application that answers as another one has answered."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._messages = messages

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        for message in self._messages:
            await send(message)


def _error_body(messages: list[Message]) -> bytes:
    """Return the body, decoded; nothing if it cannot be."""
    body = b"".join(message.get("body", b"") for message in messages[1:])
    try:
        return decoder_for(messages[0].get("headers") or (), MAX_ERROR_BYTES)(body)
    except ValueError:
        return b""
