"""Connections to upstreams, each used by one request after another."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterable, Callable
from contextvars import Context, copy_context
from typing import NamedTuple, TypeAlias, cast

import httpx

from abridge.http.response import ResponseHead, ResponseParser
from abridge.waiting import Flag, SilenceTimer

READ_BUFFER = 64 << 10  # bytes of a body; reading pauses while more are unread

MAX_AT_ONCE = 8 << 10  # bytes of a read that are taken at once; for more other streams get a turn

CLOSED_MESSAGE = "The connection was closed."

Take: TypeAlias = Callable[[bytes], bool]
"""Takes a piece of a body without awaiting; returns False, and takes nothing, if it cannot."""


class _Reader(NamedTuple):
    """A task that waits for more of a response. What comes of the body is given to `take`, if there
    is one, in the task's context but without waking it."""

    waiter: asyncio.Future[None]
    take: Take | None
    context: Context


class UpstreamConnection(asyncio.Protocol):
    """A connection. `on_idle` is called when a request has left it reusable, `on_lost` once it is
    closed."""

    __slots__ = (
        *("_idle_timeout", "_is_idle", "_is_paused", "_loop", "_on_idle", "_on_lost", "_reader"),
        *("_response", "_silence", "_upload", "_use_count", "_writable"),
        *("closed", "has_received", "transport"),
    )

    def __init__(
        self,
        on_idle: Callable[[UpstreamConnection], object],
        on_lost: Callable[[UpstreamConnection], object],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_idle = on_idle
        self._on_lost = on_lost
        self._use_count = 0
        self._is_idle = True  # True while no request uses it
        self._response: ResponseParser  # to the last request
        self._reader: _Reader | None = None
        self._idle_timeout = 0.0  # seconds
        self._silence = SilenceTimer(self._on_silence)  # started while upstream is awaited
        self._upload: asyncio.Task[None] | None = None
        self._writable: asyncio.Future[None] | None = None  # while the transport takes no more
        self._is_paused = False  # True while nothing is read
        self.transport: asyncio.Transport  # set once it is connected
        self.closed = Flag()
        self.has_received = False  # True once a byte of the response has come

    @property
    def is_open(self) -> bool:
        return not self.transport.is_closing()

    @property
    def is_reused(self) -> bool:
        """True if the current request is not the connection's first."""
        return self._use_count > 1

    # The request

    def send_request(self, data: bytes, *, idle_timeout: float, is_head: bool) -> None:
        """Send the request, and fail the response after `idle_timeout` seconds of silence."""
        self._use_count += 1
        self.has_received = False
        if not self.is_open:
            raise httpx.ReadError(CLOSED_MESSAGE)
        self._upload = None
        self._is_idle = False
        self._response = ResponseParser(has_no_body=is_head)
        self._idle_timeout = idle_timeout
        self._silence.start(idle_timeout)
        self.transport.write(data)

    def start_upload(self, body: AsyncIterable[bytes], length: int | None) -> None:
        """Start to send a body of `length` bytes, or a chunked one, while awaiting the response."""
        self._upload = asyncio.create_task(self._send_body(body, length))
        self._upload.add_done_callback(self._on_upload_done)

    async def _send_body(self, body: AsyncIterable[bytes], length: int | None) -> None:
        sent = 0
        async for chunk in body:
            sent += len(chunk)
            if length is None:
                await self._write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunk else b"")
            elif sent <= length:
                await self._write(chunk)
            else:
                raise httpx.LocalProtocolError(
                    "The request's body is longer than its Content-Length."
                )
        if length is None:
            await self._write(b"0\r\n\r\n")
        elif sent < length:
            raise httpx.LocalProtocolError("The request's body is shorter than its Content-Length.")

    async def _write(self, data: bytes) -> None:
        self.transport.write(data)
        self._silence.restart()
        if self._writable is not None:
            await self._writable

    def _on_upload_done(self, upload: asyncio.Task[None]) -> None:
        if upload.cancelled() or (error := upload.exception()) is None:
            return
        if self._response.head is None:
            self._response.fail(cast(Exception, error))
        self.disconnect()

    @property
    def _is_sent(self) -> bool:
        """True if upstream has got all of the request."""
        upload = self._upload
        return self._writable is None and (
            upload is None
            or (upload.done() and not upload.cancelled() and upload.exception() is None)
        )

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    async def start_tls(self, tls: ssl.SSLContext, host: str) -> None:
        """Speak TLS with a host from now on. Raises OSError."""
        if not self.is_open:
            raise ConnectionResetError(CLOSED_MESSAGE)
        if not self._is_idle:  # a request has opened a tunnel
            self._become_idle()
        self._use_count = 0
        transport = await self._loop.start_tls(self.transport, self, tls, server_hostname=host)
        self.transport = cast(asyncio.Transport, transport)

    # The response

    def set_idle_timeout(self, seconds: float) -> None:
        """Limit upstream's silence from now on."""
        self._idle_timeout = seconds

    async def read_head(self) -> ResponseHead:
        """Return the head of the final response.

        Raises httpx's errors, and those raised by the request body's stream.
        """
        response = self._response
        while response.head is None:
            await self._wait(None)
        self._silence.stop()
        return response.head

    async def read_body(self, take: Take | None = None) -> bytes:
        """Return what there is of the body, `b""` at its end; await it if there is nothing.

        What comes meanwhile is given to `take`, if there is one; what that does not take is
        returned. Raises httpx's errors, and what `take` raises.
        """
        response = self._response
        while not (response.body or response.is_complete):
            await self._wait(take)
        return self._take_all(response)

    def take_whole(self) -> bytes | None:
        """Return the body if all of it has come, else None, and take nothing."""
        response = self._response
        return self._take_all(response) if response.is_complete else None

    def _take_all(self, response: ResponseParser) -> bytes:
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()
        return response.take()

    async def _wait(self, take: Take | None) -> None:
        if (response := self._response).failure is not None:
            try:
                raise response.failure
            finally:
                response.failure = None  # else a circle: an error refers to those who raise it
        waiter = self._loop.create_future()
        self._reader = _Reader(waiter, take, copy_context())
        self._silence.start(self._idle_timeout)
        try:
            await waiter
        finally:
            self._reader = None
            self._silence.stop()

    def data_received(self, data: bytes) -> None:
        if self._is_idle:  # what nobody has asked for must not answer the next request
            self.transport.abort()
            return
        response = self._response
        self.has_received = True
        self._silence.restart()
        response.feed(data)
        if len(response.body) > READ_BUFFER and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()
        if self._reader is not None:
            self._tell(self._reader, len(data))
        if response.failure is not None:
            self.transport.abort()

    def _tell(self, reader: _Reader, size: int) -> None:
        """Have what has come taken, or wake the task that waits: it looks itself what there is."""
        response, take = self._response, reader.take
        if take is None or size > MAX_AT_ONCE or response.is_over:
            self._wake()
            return
        if not response.body or reader.waiter.done():
            return
        data = response.take()
        try:
            is_taken = reader.context.run(take, data)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the task gets it
            reader.waiter.set_exception(error)
            return
        if not is_taken:
            response.body += data
            reader.waiter.set_result(None)

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.waiter.done():
            self._reader.waiter.set_result(None)

    def _on_silence(self) -> None:
        self._response.fail(httpx.ReadTimeout("Nothing was received for too long."))
        self._wake()

    # The end

    def finish(self) -> Exception | None:
        """Leave the connection to the next request if that can use it, else close it.

        Returns the error if the response is incomplete.
        """
        response = self._response
        is_read = response.is_complete and not response.body
        failure = None if is_read else response.failure or httpx.ReadError(CLOSED_MESSAGE)
        if is_read and self._is_sent and response.is_reusable and self.is_open:
            self._become_idle()
            self._on_idle(self)
        else:
            self.disconnect()
        return failure

    def _become_idle(self) -> None:
        self._response.release()
        self._is_idle = True

    def disconnect(self) -> None:
        """Abort request and response: upstream notices at once, and so does the body's reader."""
        if self._upload is not None:
            self._upload.cancel()
        if not self._is_idle:
            self._response.fail(httpx.ReadError(CLOSED_MESSAGE))
            self._wake()
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the body's reader get all that was received before it gets the error."""
        self._silence.cancel()
        if self._upload is not None:
            self._upload.cancel()
        if not self._is_idle:
            self._response.end(exc)
            self._response.release()
            self._wake()
        self.closed.set()
        self._on_lost(self)
