"""One connection of a client to the sidecar: uvicorn's, and stricter.

Theory of operation. uvicorn waits for a client for as long as that likes. Here it is looked, ten
times within `silence`, whether the client is the one who is waited for: to send what is missing of
a request, or to take what it was sent. If in all that time nothing moved, it is treated as one that
has left, so that whatever serves it ends; if it still can be told why, it is.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from abridge.wire.codec import dumps
from abridge.wire.problem import problem

TOO_SLOW = dumps(
    problem(
        "The request did not arrive in time.", kind="invalid_request_error", code="request_timeout"
    )
)
TIMEOUT = (
    b"HTTP/1.1 408 Request Timeout\r\n"
    b"content-type: application/json\r\n"
    b"content-length: %d\r\n"
    b"connection: close\r\n"
    b"\r\n"
    b"%b"
) % (len(TOO_SLOW), TOO_SLOW)


class Connection(HttpToolsProtocol):
    """`silence` is in seconds."""

    def __init__(self, *args: Any, silence: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._silence = silence
        self._moved = self.loop.time()
        self._unsent = 0
        self._in_body = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look = self.loop.call_later(self._silence / 10, self._look_after)

    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._moved = self.loop.time()
        super().data_received(data)

    def resume_writing(self) -> None:
        self._moved = self.loop.time()
        super().resume_writing()

    # No trailer is taken for a header: it comes after what was decided by the headers, and would be
    # sent on, or believed, as one of them.

    def on_message_begin(self) -> None:
        self._in_body = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_body = True
        super().on_headers_complete()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_body:
            super().on_header(name, value)

    # Nobody is waited for without end

    def _look_after(self) -> None:
        now = self.loop.time()
        if not self._waits_for_client():
            self._moved = now
        elif now - self._moved >= self._silence:
            self._give_up()
        self._look = self.loop.call_later(self._silence / 10, self._look_after)

    def _waits_for_client(self) -> bool:
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        if self._must_take():
            return self._unsent >= before
        if self.flow.read_paused or self.pipeline:  # by who does not read it, or has not yet begun
            return False
        return self.cycle is None or self.cycle.more_body or self.cycle.response_complete

    def _must_take(self) -> bool:
        return self.flow.write_paused or self.transport.is_closing()

    def _give_up(self) -> None:
        cycle = self.cycle
        if cycle is None or cycle.response_started or self._must_take():
            self.transport.abort()
            return
        self.transport.write(TIMEOUT)
        self.transport.close()
        cycle.disconnected = True
        cycle.message_event.set()


def connections(silence: float) -> type[asyncio.Protocol]:
    """What uvicorn makes connections with."""
    return cast("type[asyncio.Protocol]", partial(Connection, silence=silence))
