"""uvicorn's WebSocket protocol, with the ceilings that the HTTP protocol has.

The head of the request to upgrade has been read and checked there, and the connection counted. What
is added here: a message that is not yet whole takes of a budget that all connections share, must
come fast enough, and consists of a limited number of frames. A client that does not read what it is
sent is not read either, so that its pings cannot pile up answers; after the client timeout, the
connection is reset. And a server that closes does not cut off what is being answered: it tells the
application, which closes the connection when that is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from abridge.client_shares import ClientShares, client_name
from abridge.config.tables import LimitSettings
from abridge.http.asgi import CLOSING
from abridge.sidecar.server.http_protocol import DISCARD_SECONDS, CountRefusal, reset
from abridge.sidecar.server.refusals import error_response, invalid

MAX_FRAMES = 4096
"""Frames that a message may consist of."""

MAX_QUEUED = 64
"""Messages that may wait for the application; beyond them, a single read would hold thousands."""


SMALL_MESSAGE = 64 << 10
"""Bytes of a message that need not be reserved while they come."""


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Serves a connection that has become a WebSocket.

    `incomplete` is the budget of all messages that are not yet whole, in bytes; `on_lost` is called
    once the connection is lost.
    """

    def __init__(
        self,
        *args: Any,
        limits: LimitSettings,
        incomplete: ClientShares,
        count_refusal: CountRefusal,
        on_lost: Callable[[], None],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._limits = limits
        self._incomplete = incomplete
        self._count_refusal = count_refusal
        self._on_lost = on_lost
        self._closing = asyncio.Event()
        self._refused = False  # nothing more is read of this connection
        self._check_seconds = min(limits.client, limits.upload) / 10
        self._message_bytes = 0  # received of a message that is not yet whole
        self._message_began = 0.0
        self._reserved = 0
        self._unsent_bytes = 0
        self._last_progress = self.loop.time()

    # The connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._name = client_name(self.client[0] if self.client else "")
        self._check_timer = self.loop.call_later(self._check_seconds, self._check_progress)

    def connection_lost(self, exc: Exception | None) -> None:
        self._check_timer.cancel()
        self._give_back()
        super().connection_lost(exc)
        self._on_lost()

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        self._message_bytes = 0
        if self.response.status_code == 101:
            cast(dict[str, Any], self.scope)[CLOSING] = self._closing

    def shutdown(self) -> None:
        """Tell the application that the server closes; it ends the connection."""
        self._closing.set()

    def reset(self) -> None:
        reset(self.transport)

    # What is read

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if not self._message_bytes:
            self._message_began = self.loop.time()
        self._message_bytes += len(data)
        super().data_received(data)
        if not self.handshake_initiated:
            self.transport.write(error_response(invalid("request to upgrade")))
            self.transport.close()
        self._reserve()

    def _reserve(self) -> None:
        """Take of the budget for a message that is not yet whole, unless that is small."""
        wanted = self._message_bytes - self._reserved if self._message_bytes > SMALL_MESSAGE else 0
        if wanted and self._incomplete.take(self._name, wanted):
            self._reserved += wanted
        elif wanted:
            self._fail(CloseCode.TRY_AGAIN_LATER, "overloaded")

    def _give_back(self) -> None:
        self._incomplete.give_back(self._name, self._reserved)
        self._reserved = self._message_bytes = 0

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= MAX_FRAMES:
            self._fail(CloseCode.MESSAGE_TOO_BIG, "too_many_frames")
        else:
            super().handle_cont(event)

    def handle_ping(self) -> None:
        self._note_control_frame()
        super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        self._note_control_frame()
        super().handle_pong(event)

    def _note_control_frame(self) -> None:
        """Do not take a ping or a pong for the beginning of a message."""
        if not self.frames and not self._reserved:
            self._message_bytes = 0

    def send_receive_event_to_app(self) -> None:
        self._give_back()
        if self.queue.qsize() >= MAX_QUEUED:
            self._fail(CloseCode.POLICY_VIOLATION, "too_many_messages")
        else:
            super().send_receive_event_to_app()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._last_progress = self.loop.time()
        if not self.read_paused:
            self.transport.resume_reading()

    async def receive(self) -> Any:
        message = await super().receive()
        if not self.writable.is_set() and not self.disconnected:
            self.transport.pause_reading()
        return message

    # What is refused

    def _fail(self, code: int, reason: str) -> None:
        if not self.close_sent:
            self._count_refusal(reason)
            self.conn.fail(code, reason)
            self.handle_parser_exception()

    def handle_parser_exception(self) -> None:
        """Close, and discard what still comes: closed at once, the client might not learn why."""
        closed = self.conn.close_sent
        code, reason = (closed.code, closed.reason) if closed is not None else (1006, "")
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self._refused = self.close_sent = True
        self._give_back()
        self._check_timer.cancel()
        self.close_timer = self.loop.call_later(DISCARD_SECONDS, self.reset)

    # What is waited for

    def _check_progress(self) -> None:
        now = self.loop.time()
        self._check_timer = self.loop.call_later(self._check_seconds, self._check_progress)
        previous, self._unsent_bytes = self._unsent_bytes, self.transport.get_write_buffer_size()
        is_waiting = not self.writable.is_set() or self.transport.is_closing()
        if not is_waiting or self._unsent_bytes < previous:
            self._last_progress = now
        if now - self._last_progress >= self._limits.client:
            self.reset()
        elif self._is_late(now):
            self._fail(CloseCode.POLICY_VIOLATION, "request_timeout")

    def _is_late(self, now: float) -> bool:
        if self.read_paused or not self.writable.is_set():
            self._message_began += self._check_seconds  # this time is the application's
        received = self._message_bytes
        return bool(received) and (
            now - self._message_began >= self._limits.upload_seconds(received)
        )


def websocket_factory(
    limits: LimitSettings, count_refusal: CountRefusal
) -> Callable[..., WebSocketProtocol]:
    """Return what makes the protocols of one server, which share a budget."""
    share = max(limits.body, int(limits.bodies * limits.client_share))
    incomplete = ClientShares(limits.bodies, share)
    return partial(
        WebSocketProtocol, limits=limits, incomplete=incomplete, count_refusal=count_refusal
    )
