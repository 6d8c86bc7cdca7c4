"""uvicorn's HTTP protocol, with ceilings for what a client may send, hold and leave waiting.

Theory of operation. uvicorn itself waits for a client without end, and keeps whatever it sends of a
head. Four things are added:

*What is read.* Bytes are counted as they come: those that belong to no body may not exceed
`MAX_HEAD`. A head is checked once it is complete (`request_head.py`). A request to upgrade is read
again as if it did not ask for that, since the parser would take its body for the next request.

*What is refused.* The client is told so only if no other response is under way, whose bytes it
would end up in. Nothing further is read of the connection, and what waits in it is not begun.

*What is waited for.* Ten times within the client timeout, each connection checks if it waits for
its client: for the rest of a request, or for the client to read what it was sent. Waiting ends if
nothing moved for the whole timeout, if a head has not become complete within it, or if a body comes
too slowly. Then the client is treated as disconnected, so that the request's task ends; if no
response has begun, it gets a 408. The same check closes a connection that is not used any more.

*What is left.* Once the connection is lost, every request of it is told, and none is begun.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from abridge.apis.registry import find_api
from abridge.apis.responses.api import RESPONSES
from abridge.client_shares import ClientShares, client_name
from abridge.config.tables import KEEP_ALIVE_SECONDS, LimitSettings
from abridge.errors import RequestError
from abridge.sidecar.server.refusals import (
    MAX_FIELDS,
    MAX_HEAD,
    MAX_LINE,
    error_response,
    framing_too_large,
    head_too_large,
    late,
    malformed,
    too_many_connections,
)
from abridge.sidecar.server.request_cycle import RequestCycle
from abridge.sidecar.server.request_head import CHUNK_FRAMING, check_head, check_size
from abridge.waiting import Flag

MAX_WAITING = 8
"""Requests that may wait on a connection for the response to the one before them."""

DISCARD_SECONDS = 2.0
"""Seconds for a client to read a refusal, while what it still sends is discarded. Closed at once,
the connection would be reset, and the refusal might be lost."""

MAX_TURNED_AWAY = 16
"""Connections beyond the ceiling that may read their refusal at once; the oldest makes room."""

RESET_ON_CLOSE = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
"""SO_LINGER, on and without time."""

CountRefusal = Callable[[str], None]
"""Counts a connection or a request that was refused here, by its error code."""

MakeWebSocket = Callable[..., asyncio.Protocol]
"""Makes the protocol of a connection that becomes a WebSocket, as uvicorn makes its own."""


class HttpProtocol(HttpToolsProtocol):
    __slots__ = (  # one dictionary for these and uvicorn's attributes takes 1.6 KB
        "_admitted",
        "_body_began",
        "_body_bytes",
        "_check_seconds",
        "_check_timer",
        "_count_refusal",
        "_framing_bytes",
        "_head_bound",
        "_in_body",
        "_keep_alive",
        "_last_progress",
        "_limits",
        "_make_websocket",
        "_name",
        "_received_at",
        "_refused",
        "_running",
        "_shares",
        "_turned_away",
        "_unsent_bytes",
        "_upgrade",
    )

    def __init__(
        self,
        *args: Any,
        limits: LimitSettings,
        keep_alive: float,
        connections: ClientShares,
        turned_away: dict[HttpProtocol, None],
        count_refusal: CountRefusal,
        make_websocket: MakeWebSocket | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.url = b""  # uvicorn sets it once a request begins
        self.pipeline = []  # type: ignore[assignment]  # seldom any; an empty deque takes 760 bytes
        self._make_websocket = make_websocket
        self._limits = limits
        self._keep_alive = keep_alive
        self._shares = connections
        self._turned_away = turned_away
        self._admitted = self._in_body = False
        self._count_refusal = count_refusal
        self._check_seconds = min(limits.client, limits.upload) / 10
        self._refused = False  # nothing more is read of this connection
        self._running: RequestCycle | None = None  # the request that is being answered
        self._last_progress = self._received_at = self.loop.time()
        self._unsent_bytes = self._body_bytes = 0
        self._framing_bytes = 0  # received since the last request, and not part of a body
        self._head_bound = 0  # the most that a head which is complete now can have
        self._body_began = 0.0
        self._upgrade: list[tuple[bytes, bytes]] = []  # the headers that asked for one

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow._is_writable_event = Flag(is_set=True)  # type: ignore[assignment]  # noqa: SLF001 -- it is smaller
        self._name = client_name(self.client[0] if self.client else "")
        self._admitted = self._shares.take(self._name, 1)
        self._check_timer = self.loop.call_later(self._check_seconds, self._check_progress)
        if not self._admitted:
            self._turn_away()

    def connection_lost(self, exc: Exception | None) -> None:
        self._check_timer.cancel()
        self.pipeline.clear()
        self._turned_away.pop(self, None)
        if self._admitted:
            self._shares.give_back(self._name, 1)
        if self._running is not None and not self._running.response_complete:
            self._running.disconnect()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        self._last_progress = self.loop.time()
        super().resume_writing()

    # What is read

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._received_at = self.loop.time()
        if self._is_idle():
            self._last_progress = self._received_at  # a head has as much time as the first one had
        self._framing_bytes += len(data)
        self._head_bound = self._framing_bytes
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = data[upgrade.args[0] :]
            if self._make_websocket is not None and self._is_for_websocket():
                self._become_websocket(self._make_websocket, rest)
            else:
                self._read_without_upgrade(rest)
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._refuse(cause if isinstance(cause, RequestError) else malformed())
        else:
            if self._framing_bytes > MAX_HEAD:
                self._refuse(framing_too_large() if self._in_body else head_too_large())
            elif self._in_body or not self._framing_bytes:  # an incomplete head is no progress
                self._last_progress = self._received_at

    def _is_for_websocket(self) -> bool:
        """Return whether a request may make this connection a WebSocket of the Responses API.

        Others are answered as HTTP requests, and told that there is no WebSocket for them.
        """
        headers = dict(self.headers)
        path = httptools.parse_url(self.url).path
        return (
            self.parser.get_method() == b"GET"
            and headers[b"upgrade"].lower() == b"websocket"
            and not headers.keys() & {b"content-length", b"transfer-encoding"}
            and (self._running is None or self._running.response_complete)
            and find_api(unquote(path.decode()), path.decode()) is RESPONSES
        )

    def _become_websocket(self, make_websocket: MakeWebSocket, rest: bytes) -> None:
        """Hand the connection over, with the head of the request and what came after it."""
        self._check_timer.cancel()
        self.connections.discard(self)
        protocol = make_websocket(
            config=self.config,
            server_state=self.server_state,
            app_state=self.app_state,
            on_lost=partial(self._shares.give_back, self._name, 1),
        )
        lines = [b"GET %b HTTP/1.1" % self.url, *(b"%b: %b" % field for field in self.headers)]
        protocol.connection_made(self.transport)
        self.transport.set_protocol(protocol)
        protocol.data_received(b"\r\n".join([*lines, b"", b""]))
        if rest:
            protocol.data_received(rest)

    def _read_without_upgrade(self, rest: bytes) -> None:
        """Read the head again without `Upgrade`, which a server may ignore, and then the rest."""
        self._upgrade = [field for field in self.headers if field[0] == b"upgrade"]
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        kept = [field for field in self.headers if field[0] != b"upgrade"]
        lines = [b"%b %b HTTP/%b" % (method, self.url, version), *(b"%b: %b" % it for it in kept)]
        self._framing_bytes = 0
        self.data_received(b"\r\n".join([*lines, b"", rest]))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header; a trailer is dropped.

        The request has been routed by its headers when a trailer comes, and it would be forwarded,
        or trusted, as one of them.
        """
        if self._in_body:
            return
        fields = self.headers
        if len(fields) >= MAX_FIELDS:
            raise head_too_large()
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        fields.append((name, value))

    def on_headers_complete(self) -> None:
        if self._head_bound > MAX_LINE:
            check_size(self.url, self.headers)
        parser = self.parser
        version, method = parser.get_http_version(), parser.get_method()
        check_head(version, method, self.url, self.headers)
        if parser.should_upgrade():
            return  # it is read again
        if self._upgrade:
            self.headers += self._upgrade  # whoever answers may tell why there is none
            self._upgrade = []
        self._complete_scope(version, method)
        previous, self.cycle = self.cycle, self._new_cycle(version)
        self._in_body = True
        self._body_bytes = 0
        self._body_began = self._received_at
        if previous is None or previous.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.pipeline.insert(0, (self.cycle, self.app))
            if len(self.pipeline) > MAX_WAITING:
                raise malformed()
            self.flow.resume_reading()  # so as to notice that the client leaves

    def _complete_scope(self, version: str, method: bytes) -> None:
        """Add what the first line of the head says, as uvicorn does."""
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        self.scope |= {
            "method": method.decode("ascii"),
            "http_version": version,
            "path": unquote(path) if "%" in path else path,
            "raw_path": url.path,
            "query_string": url.query or b"",
        }

    def _new_cycle(self, version: str) -> RequestCycle:
        return RequestCycle(
            self.scope,
            self,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=(
                self._on_expecting_response_complete
                if self.expect_100_continue
                else self.on_response_complete
            ),
        )

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body, as uvicorn does; a read may hold tens of thousands of them."""
        size = len(body)
        self._body_bytes += size
        framing = self._framing_bytes - size - CHUNK_FRAMING
        self._framing_bytes = framing if framing > 0 else 0  # noqa: FURB136 -- max() is slower
        cycle = self.cycle
        if cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        if self._in_body:  # not that of a request to upgrade, which is read again
            self._in_body = False
            self._framing_bytes = 0
            super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle  # type: ignore[assignment]  # of no other kind here
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Begin the next request; unlike uvicorn's, set no timer if there is none yet."""
        self.server_state.total_requests += 1
        self._last_progress = self.loop.time()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def _on_expecting_response_complete(self) -> None:
        """Close if the client waits for leave to send the body: nobody knows whether it will."""
        if self._in_body and not self._body_bytes and self._running is self.cycle:
            self.transport.close()
        self.on_response_complete()

    # What is refused

    def _refuse(self, error: RequestError) -> None:
        """Read nothing more, and tell the client why if no other response is under way."""
        self._refused = True
        self._count_refusal(error.code or "")
        self.pipeline.clear()
        self.flow.resume_reading()  # so as to notice that the client leaves
        running = self._running
        if running is None or running.response_complete:
            self._answer_and_close(error)
        elif running is not self.cycle or not self._in_body:  # another request was at fault
            running.keep_alive = False
            self.cycle = running
        else:
            running.disconnect()
            if running.response_started:
                self.transport.close()
            else:
                self._answer_and_close(error)

    def _turn_away(self) -> None:
        """Refuse a connection beyond the ceiling; of those, keep only the latest."""
        self._refuse(too_many_connections())
        self._turned_away[self] = None
        if len(self._turned_away) > MAX_TURNED_AWAY:
            next(iter(self._turned_away)).reset()

    def _answer_and_close(self, error: RequestError) -> None:
        """Send a refusal, and discard what comes until the client closes."""
        self.transport.write(error_response(error, self.url))
        self.transport.write_eof()
        self._check_timer.cancel()
        self._check_timer = self.loop.call_later(DISCARD_SECONDS, self.reset)

    def reset(self) -> None:
        """Abort the connection."""
        reset(self.transport)

    # What is waited for

    def _check_progress(self) -> None:
        now = self.loop.time()
        self._check_timer = self.loop.call_later(self._check_seconds, self._check_progress)
        if self.flow.read_paused:
            self._body_began += self._check_seconds  # this time is the application's
        if not self._is_waiting_for_client():
            self._last_progress = now
        elif self._is_idle():
            if now - self._last_progress >= self._keep_alive:
                self.transport.close()
        elif now - self._last_progress >= self._limits.client or self._is_upload_late(now):
            self._time_out()

    def _is_waiting_for_client(self) -> bool:
        previous, self._unsent_bytes = self._unsent_bytes, self.transport.get_write_buffer_size()
        if self._has_unread_output():
            return self._unsent_bytes >= previous
        if self.flow.read_paused or self.pipeline:  # waiting for the app
            return False
        return self.cycle is None or self.cycle.more_body or self.cycle.response_complete

    def _is_idle(self) -> bool:
        """Return whether a response is complete and taken, and nothing has come since."""
        if self.cycle is None or not self.cycle.response_complete or self._has_unread_output():
            return False
        return not (self._in_body or self._framing_bytes)

    def _has_unread_output(self) -> bool:
        return self.flow.write_paused or self.transport.is_closing()

    def _is_upload_late(self, now: float) -> bool:
        return self._in_body and (
            now - self._body_began >= self._limits.upload_seconds(self._body_bytes)
        )

    def _time_out(self) -> None:
        cycle = self.cycle
        if self._has_unread_output():
            self.reset()
        elif cycle is None or cycle.response_started:
            self.transport.abort()
        else:
            self._refuse(late())


def reset(transport: asyncio.Transport) -> None:
    """Abort a connection, so that the kernel frees what it holds of it.

    Closed otherwise, a socket keeps what was not sent until its client has read it.
    """
    with suppress(OSError):
        transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE
        )
    transport.abort()


def protocol_factory(
    limits: LimitSettings,
    count_refusal: CountRefusal = lambda _: None,
    keep_alive: float = KEEP_ALIVE_SECONDS,
    make_websocket: MakeWebSocket | None = None,
) -> type[asyncio.Protocol]:
    """Return the protocol factory for a uvicorn server, whose connections share a ceiling and may
    be idle for `keep_alive` seconds. There are no WebSockets if nothing makes them."""
    share = max(1, int(limits.connections * limits.client_share))
    return cast(
        "type[asyncio.Protocol]",
        partial(
            HttpProtocol,
            limits=limits,
            keep_alive=keep_alive,
            connections=ClientShares(limits.connections, share),
            turned_away={},
            count_refusal=count_refusal,
            make_websocket=make_websocket,
        ),
    )
