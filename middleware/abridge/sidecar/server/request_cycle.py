"""One request of a connection and its response.

In place of uvicorn's: the application can have itself called when the client leaves, write without
awaiting, and a response costs less to write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.types import Message
from uvicorn.protocols.http.httptools_impl import STATUS_LINE as STATUS_LINES
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from abridge.http.asgi import can_be_written
from abridge.waiting import Flag

FRAMING = frozenset({b"content-length", b"transfer-encoding", b"connection"})
"""Headers that say where a response ends."""

STATUS_LINE = {status: line.removesuffix(b"\r\n") for status, line in STATUS_LINES.items()}


class RequestCycle(RequestResponseCycle):
    """It is itself the `receive` of its application."""

    def __init__(
        self,
        scope: Any,
        connection: HttpToolsProtocol,
        *,
        keep_alive: bool,
        on_response: Callable[[], None],
    ) -> None:
        """Set what uvicorn's sets, without its eleven arguments."""
        self.scope = scope
        self.transport = connection.transport
        self.flow = connection.flow
        self.logger = connection.logger
        self.default_headers = connection.server_state.default_headers
        self.message_event = Flag()  # type: ignore[assignment]  # all that is used of one
        self.on_response = on_response
        self.disconnected = False
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = connection.expect_100_continue
        self.body = bytearray()
        self.more_body = True
        self.response_started = False
        self.response_complete = False
        self.chunked_encoding = None
        self.expected_content_length = 0
        self._on_leave: Callable[[], object] | None = None

    # What the application receives

    @property
    def receive(self) -> RequestCycle:
        return self

    async def __call__(self) -> Any:
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        if not self.disconnected and not self.response_complete:
            self.flow.resume_reading()
            if not self.message_event.is_set():
                await self.message_event.wait()
            self.message_event.clear()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body, self.body = bytes(self.body), bytearray()
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    def call_on_leave(self, callback: Callable[[], object]) -> bool:
        """Have `callback` called when the client leaves; see `http/asgi.py`."""
        self._on_leave = callback
        if self.disconnected:
            self.disconnect()
        elif not self.response_complete:
            self.flow.resume_reading()  # a large body paused it, and nobody receives any more
        return True

    def disconnect(self) -> None:
        """Tell the application that its client has left, and the client nothing more."""
        self.disconnected = True
        self.waiting_for_100_continue = False
        self.message_event.set()
        callback, self._on_leave = self._on_leave, None
        if callback is not None:
            callback()

    # What the application sends

    async def send(self, message: Any) -> None:
        """Send a message of the response. Raises RuntimeError for one that is out of order."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        expected = "http.response.body" if self.response_started else "http.response.start"
        if message["type"] != expected or self.response_complete:
            raise RuntimeError(f"ASGI message {message['type']!r} is out of order.")
        if self.response_started:
            self._send_body(message.get("body", b""), more=message.get("more_body", False))
        else:
            self.transport.write(self._begin(message))

    async def send_whole(self, start: Message, body: bytes) -> None:
        """Send a response in one write, which wakes its client once; see `http/asgi.py`."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if self.response_started:
            raise RuntimeError("A response has begun already.")
        self._send_body(body, more=False, head=self._begin(start))

    def write_at_once(self, body: bytes) -> bool:
        """Send a piece of the body without awaiting, if the client takes it; see `http/asgi.py`."""
        if self.flow.write_paused or self.disconnected or self.response_complete:
            return False
        self._send_body(body, more=True)
        return True

    def _begin(self, start: Message) -> bytes:
        """Begin the response, and return its head."""
        self.response_started = True
        self.waiting_for_100_continue = False
        headers = [(name.lower(), value) for name, value in start.get("headers", ())]
        headers[:0] = self.default_headers
        if not can_be_written(headers):
            raise RuntimeError("A header of the response has a character that it must not have.")
        for name, value in headers:
            if name in FRAMING:
                self._note_framing(name, value)
        if not (self.keep_alive or any(map(_closes, headers))):
            headers.append((b"connection", b"close"))
        is_bodiless = start["status"] in (204, 304) or self.scope["method"] == "HEAD"
        if self.chunked_encoding is None and is_bodiless:
            self.chunked_encoding = False
        elif self.chunked_encoding is None and self.scope["http_version"] != "1.0":
            self.chunked_encoding = True
            headers.append((b"transfer-encoding", b"chunked"))
        lines = [STATUS_LINE[start["status"]], *map(b": ".join, headers), b"", b""]
        return b"\r\n".join(lines)

    def _note_framing(self, name: bytes, value: bytes) -> None:
        if name == b"content-length" and self.chunked_encoding is None:
            self.expected_content_length = int(value)
            self.chunked_encoding = False
        elif name == b"transfer-encoding" and value.lower() == b"chunked":
            self.expected_content_length = 0
            self.chunked_encoding = True
        elif _closes((name, value)):
            self.keep_alive = False

    def _send_body(self, body: bytes, *, more: bool, head: bytes = b"") -> None:
        if self.scope["method"] == "HEAD":
            self.expected_content_length, data = 0, b""
        elif self.chunked_encoding:
            data = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            data = data if more else data + b"0\r\n\r\n"
        elif self.chunked_encoding is None:  # it ends with its connection
            data = body
        else:
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0:
                raise RuntimeError("The response's body is longer than its Content-Length.")
            data = body
        if data or head:
            self.transport.write(head + data)
        if not more:
            self._complete()

    def _complete(self) -> None:
        if self.expected_content_length:
            raise RuntimeError("The response's body is shorter than its Content-Length.")
        self.response_complete = True
        self._on_leave = None
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


def _closes(header: tuple[bytes, bytes]) -> bool:
    name, value = header
    return name == b"connection" and b"close" in map(bytes.strip, value.lower().split(b","))
