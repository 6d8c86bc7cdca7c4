"""The head of a stream before upstream has sent its own, so that a client sees it is being served.

Once the head is out, nothing can be answered but a stream. So an error that comes later is told in
it, in the form of the client's API, with the status and the `retry-after` that it would have had.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from starlette.types import Message, Scope, Send

from abridge.apis.errors import UNREADABLE
from abridge.apis.json import parse_object
from abridge.core.conversation import Json
from abridge.http.asgi import EVENT_STREAM, find_write_at_once, get_header, media_type
from abridge.pipeline.answers.error_writer import ErrorWriter, error_of
from abridge.pipeline.answers.stream import KEEP_ALIVE
from abridge.pipeline.client import Client

EARLY_HEAD = "abridge.early_head"
"""Scope key of a request's `EarlyHead`; None where there is none."""

MAX_ERROR_BYTES = 256 << 10
"""What is kept of the body of an error, until it is told in the stream."""


class EarlyHead:
    """A client's `send` that begins the stream by itself if nobody does for some time.

    Used as a context: at its end, a stream that nobody began or finished ends with an error.
    """

    def __init__(self, send: Send, errors: ErrorWriter) -> None:
        self._send = send
        self._errors = errors
        self._sending = asyncio.Lock()
        self._waiting: asyncio.Task[None] | None = None
        self._is_sent = False
        self._failed: Message | None = None  # the head that came too late, of no stream
        self._body = bytearray()
        self.write_at_once = find_write_at_once(send)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        was_waiting = await self._stop_waiting()
        if was_waiting and self._is_sent and isinstance(error, Exception):
            told = error_of(error)
            await self._tell(*self._errors.write(told.message, 502, code=told.code))

    @property
    def promises_stream(self) -> bool:
        """The stream was begun, or may be at any time."""
        return self._is_sent or self._waiting is not None

    def wait(self, seconds: float) -> None:
        """Send the head after so many seconds, unless an answer has begun by then."""
        if self._waiting is None and not self._is_sent:
            self._waiting = asyncio.create_task(self._begin(seconds))

    async def send(self, message: Message) -> None:
        """Send a message of the answer, in place of which the head may have been sent."""
        if self._waiting is not None:
            await self._stop_waiting()
        if not self._is_sent:
            await self._send(message)
        elif message["type"] == "http.response.start":
            has_type = media_type(message.get("headers") or ()) == EVENT_STREAM
            is_stream = message["status"] == 200 and has_type
            self._failed = None if is_stream else message
        elif self._failed is None:
            await self._send(message)
        else:
            await self._take_error(self._failed, message)

    async def _begin(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._is_sent = True
        headers = [(b"content-type", EVENT_STREAM), (b"cache-control", b"no-cache")]
        headers += self._errors.id_headers(headers)
        message = {"type": "http.response.start", "status": 200, "headers": headers}
        try:
            async with self._sending:
                await self._send(message)
            while True:
                async with self._sending:
                    await self._send_body(KEEP_ALIVE)
                await asyncio.sleep(Client.KEEP_ALIVE_SECONDS)
        except OSError:
            pass  # the client has left, which the exchange is told by itself

    async def _stop_waiting(self) -> bool:
        """Send nothing by itself any more, once what is being sent is; return whether it would."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return False
        async with self._sending:
            waiting.cancel()
        await asyncio.wait([waiting])
        return True

    async def _take_error(self, start: Message, message: Message) -> None:
        room = MAX_ERROR_BYTES - len(self._body)
        self._body += message.get("body", b"")[:room]
        if not message.get("more_body", False):
            await self._tell(start, bytes(self._body))

    async def _tell(self, start: Message, body: bytes) -> None:
        """End the stream with an error that would have been a response of its own."""
        status, told = start["status"], parse_object(body) or {}
        if status < 400 or not isinstance(told.get("error"), dict):
            told = self._errors.api.write_error(UNREADABLE.message, code=UNREADABLE.code)
        facts: Json = {"status": status if status >= 400 else 502}
        if retry_after := get_header(start["headers"], b"retry-after"):
            facts["retry_after"] = retry_after.decode("latin-1")
        await self._send_body(self._errors.api.stream_error(told, facts), more=False)

    async def _send_body(self, data: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


def send_head_early(scope: Scope, seconds: float) -> None:
    """Have the head of a request's stream sent after so many seconds; 0: not before upstream's."""
    early: EarlyHead | None = scope.get(EARLY_HEAD)
    if early is not None and seconds:
        early.wait(seconds)
