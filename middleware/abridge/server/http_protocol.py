"""uvicorn's HTTP protocol with a timeout for clients that stop sending or reading.

Theory of operation. uvicorn itself waits for a client without end. Here, ten times within the
client timeout, each connection checks if it waits for its client: for the rest of a request, or for
the client to read what it was sent. If nothing moved for the whole timeout, the client is treated
as disconnected, so that the request's task ends; if no response has begun, it gets a 408.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from abridge.apis.json import dumps
from abridge.apis.openai import error_body

TIMEOUT_BODY = dumps(
    error_body(
        "The request did not arrive in time.", kind="invalid_request_error", code="request_timeout"
    )
)

TIMEOUT_RESPONSE = (
    b"HTTP/1.1 408 Request Timeout\r\n"
    b"content-type: application/json\r\n"
    b"content-length: %d\r\n"
    b"connection: close\r\n"
    b"\r\n"
    b"%b"
) % (len(TIMEOUT_BODY), TIMEOUT_BODY)


class HttpProtocol(HttpToolsProtocol):
    def __init__(self, *args: Any, client_timeout: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._client_timeout = client_timeout
        self._last_progress = self.loop.time()
        self._unsent_bytes = 0
        self._in_body = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._check_timer = self.loop.call_later(self._client_timeout / 10, self._check_progress)

    def connection_lost(self, exc: Exception | None) -> None:
        self._check_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._last_progress = self.loop.time()
        super().data_received(data)

    def resume_writing(self) -> None:
        self._last_progress = self.loop.time()
        super().resume_writing()

    # Trailers are dropped. httptools reports them as headers, but the request has been routed by
    # its headers by then, and a trailer would be forwarded, or trusted, as one of them.

    def on_message_begin(self) -> None:
        self._in_body = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_body = True
        super().on_headers_complete()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_body:
            super().on_header(name, value)

    # The client timeout

    def _check_progress(self) -> None:
        now = self.loop.time()
        if not self._is_waiting_for_client():
            self._last_progress = now
        elif now - self._last_progress >= self._client_timeout:
            self._time_out()
        self._check_timer = self.loop.call_later(self._client_timeout / 10, self._check_progress)

    def _is_waiting_for_client(self) -> bool:
        previous, self._unsent_bytes = self._unsent_bytes, self.transport.get_write_buffer_size()
        if self._has_unread_output():
            return self._unsent_bytes >= previous
        if self.flow.read_paused or self.pipeline:  # waiting for the app
            return False
        return self.cycle is None or self.cycle.more_body or self.cycle.response_complete

    def _has_unread_output(self) -> bool:
        return self.flow.write_paused or self.transport.is_closing()

    def _time_out(self) -> None:
        cycle = self.cycle
        if cycle is None or cycle.response_started or self._has_unread_output():
            self.transport.abort()
            return
        self.transport.write(TIMEOUT_RESPONSE)
        self.transport.close()
        cycle.disconnected = True
        cycle.message_event.set()


def protocol_factory(client_timeout: float) -> type[asyncio.Protocol]:
    """Return the protocol factory for uvicorn; `client_timeout` is in seconds."""
    return cast("type[asyncio.Protocol]", partial(HttpProtocol, client_timeout=client_timeout))
