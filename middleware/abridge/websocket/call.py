"""One request of a WebSocket, sent to the application as the HTTP request it stands for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.types import ASGIApp, Message, Scope

from abridge.apis.json import as_object, dumps, loads_exact, objects, parse_object, string
from abridge.apis.responses.items import ITEM_ADDED, ITEM_DONE
from abridge.apis.responses.reasoning import is_reasoning
from abridge.core.conversation import Json
from abridge.errors import RequestError
from abridge.observability.record import CANCELLED, WEBSOCKET
from abridge.pipeline.inner_call import InnerCall
from abridge.websocket.events import (
    TERMINAL_EVENTS,
    error_event,
    http_error_event,
    with_error,
)
from abridge.websocket.steering import STEERED
from abridge.work import Work

SendEvent: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Sends one event, a JSON object, to the client. Raises OSError if it has left."""

RememberResponse: TypeAlias = Callable[[Json, Work], Awaitable[None]]
"""Remembers a complete response, so that it can be continued; with the work on it."""

CONNECTION_HEADERS = (
    *(b"connection", b"upgrade", b"sec-websocket-key", b"sec-websocket-version"),
    *(b"sec-websocket-extensions", b"sec-websocket-protocol", b"content-length"),
    *(b"transfer-encoding", b"content-type", b"content-encoding", b"accept", b"accept-encoding"),
    b"expect",
)
"""Headers of the request to upgrade that its requests do not have, or have by themselves."""

OPENAI_BETA = b"openai-beta"

WEBSOCKET_BETA = b"responses_websockets"
"""How the beta begins that clients name for WebSockets, such as `responses_websockets=2026-02-06`;
an upstream that is asked over HTTP may not know it."""

LINGER_SECONDS = 5.0
"""Seconds after the last event within which the application must end an answer. The requests that
wait for it are not to wait for an upstream that keeps its connection open."""

CREATED = "response.created"

_EVENT_NAME = re.compile(rb"event: ?([^\r\n]*)")

_NOTED = frozenset(name.encode() for name in (*TERMINAL_EVENTS, CREATED, ITEM_ADDED, ITEM_DONE))

_NOTED_TYPE = re.compile(rb'"type"\s*:\s*"(?:%b)"' % b"|".join(map(re.escape, _NOTED)))


def http_scope(scope: Scope, length: int) -> Scope:
    """Return the scope of a request on a WebSocket, with a body of so many bytes."""
    headers = [
        header
        for header in map(_without_beta, scope["headers"])
        if header is not None and header[0] not in CONNECTION_HEADERS
    ]
    own = [
        (b"accept", b"text/event-stream"),
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % length),
    ]
    scheme = "https" if scope.get("scheme") == "wss" else "http"
    left_out = ("subprotocols", "extensions")
    kept = {name: value for name, value in scope.items() if name not in left_out}
    return {
        **kept,
        "type": "http",
        "method": "POST",
        "scheme": scheme,
        "headers": [*headers, *own],
        WEBSOCKET: True,
    }


def _without_beta(header: tuple[bytes, bytes]) -> tuple[bytes, bytes] | None:
    name, value = header[0].lower(), header[1]
    if name != OPENAI_BETA:
        return name, value
    betas = [beta.strip() for beta in value.split(b",")]
    kept = b", ".join(beta for beta in betas if not beta.startswith(WEBSOCKET_BETA))
    return (name, kept) if kept else None


class Call(InnerCall):
    """One request of a WebSocket, which sends its answer to the client as events.

    `remember` is given the complete response, before the client is.
    """

    def __init__(
        self, body: bytes, limit: int, send_event: SendEvent, remember: RememberResponse
    ) -> None:
        super().__init__(body, limit)
        self.response_id = ""  # once it is known
        self.has_begun = False  # more of the answer was sent than reasoning
        self.is_steered = False  # another response takes the place of this one
        self.sent = 0  # events
        self._task: asyncio.Task[None] | None = None  # the application's
        self._created: Json = {}  # the response as it began
        self._response: Json | None = None  # once it is complete
        self._remember = remember
        self._send_event = send_event
        self._linger_timer: asyncio.TimerHandle | None = None
        self._items: list[Json] = []  # that are done
        self._ended = False

    async def run(self, app: ASGIApp, scope: Scope) -> None:
        """Have the application answer."""
        self._task = asyncio.create_task(app(scope, self.receive, self.send))  # type: ignore[arg-type]
        try:
            await self._task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if not self.is_steered or (current is not None and current.cancelling()):
                raise

    def stop(self) -> None:
        """End the answer, since it is steered, unless it has begun by now or is over."""
        self.is_steered = self.is_steerable
        if self._task is not None and self.is_steered:
            self._task.cancel(CANCELLED)

    @property
    def is_steerable(self) -> bool:
        """Return whether another response can still take the place of this one."""
        return not (self.has_begun or self._ended)

    @property
    def is_complete(self) -> bool:
        return self._response is not None

    async def finish(self, error: RequestError | None = None) -> None:
        """Send an error if the answer has no end of its own; if it was steered, its end."""
        if self._ended:
            return
        self._ended = True
        if self.is_steered and error is None:
            event = {"type": "response.incomplete", "sequence_number": self.sent}
            response = {**self._created, **STEERED, "output": self._items}
            await self._send_event(dumps({**event, "response": response}))
        else:
            await self._send_event(error_event(error or _broken()))

    def close(self) -> None:
        """Note that the application has ended."""
        if self._linger_timer is not None:
            self._linger_timer.cancel()

    async def take_event(self, frame: bytes, payload: bytes) -> None:
        if self._ended:
            return
        self.sent += 1
        if not _may_be_noted(frame, payload):
            await self._send_event(payload)
            return
        work = Work.on(payload)
        payload = await work.run(self._note, payload)
        if self._response is not None:
            await self._remember(self._response, work)
        await self._send_event(payload)
        self._linger()

    def _linger(self) -> None:
        """Give the application some time once the last event was sent."""
        if self._ended:
            loop = asyncio.get_running_loop()
            self._linger_timer = loop.call_later(LINGER_SECONDS, self.leave)

    def _note(self, payload: bytes) -> bytes:
        """Note an event that begins or ends an item or the response; return it as it is sent."""
        event = parse_object(payload, loads_exact) or {}
        kind, response = string(event.get("type")), event.get("response")
        if kind == CREATED:
            self._created = as_object(response)
            self.response_id = string(self._created.get("id"))
        elif kind == ITEM_ADDED:
            self.has_begun = self.has_begun or not is_reasoning(event.get("item"))
        elif kind == ITEM_DONE and isinstance(item := event.get("item"), dict):
            self._items.append(item)
        elif kind in TERMINAL_EVENTS:
            self._ended = True
            if kind == "error":
                return payload if "error" in event else with_error(event)
            if isinstance(response, dict) and kind != "response.failed":
                # Some upstreams leave the output out at the end.
                output = objects(response.get("output")) or self._items
                self._response = {**response, "output": output}
            elif isinstance(response, dict) and self.is_steered:
                steered = {"type": "response.incomplete", "response": {**response, **STEERED}}
                return dumps({**event, **steered})
        return payload

    async def take_whole(self, start: Message, body: bytes) -> None:
        if (code := start["status"]) != 200:
            event = http_error_event(code, start.get("headers") or (), body)
            self._ended = True
            await self._send_event(event)
            return
        work = Work.on(body)
        response = await work.run(parse_object, body, loads_exact) or {}
        status = string(response.get("status"))
        if f"response.{status}" not in TERMINAL_EVENTS:
            return
        self._ended = True
        if status != "failed":
            await self._remember(response, work)
        await self._send_event(
            b'{"type":"response.%b","sequence_number":0,"response":%b}' % (status.encode(), body)
        )


def _broken() -> RequestError:
    message = "The response ended before it was complete."
    return RequestError(message, status=502, code="upstream_broken")


def _may_be_noted(frame: bytes, payload: bytes) -> bool:
    """Return whether an event may be one to note: by its name, or if it has none by its text."""
    if named := _EVENT_NAME.match(frame):
        return named[1].strip() in _NOTED
    return _NOTED_TYPE.search(payload) is not None
