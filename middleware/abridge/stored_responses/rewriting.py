"""Buffer and rewrite upstream's answers about stored responses; no model is at work here."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.apis.errors import TIMEOUT_CODE, UNREADABLE, kept_headers, rewrite_error_body
from abridge.apis.json import dumps, loads_exact, parse_object
from abridge.apis.openai import error_body
from abridge.core.conversation import Json
from abridge.core.events import ErrorDetail
from abridge.errors import UpstreamBroken
from abridge.http.asgi import (
    BODY_HEADERS,
    TRAILERS,
    Inflater,
    can_inflate,
    drop_headers,
    get_header,
    json_start,
    media_type,
    scope_of_read_answer,
    with_header_list,
    without_trailers,
)

NO_CONTENT = 204

_log = logging.getLogger(__name__)

Rewrite = Callable[[Json], Awaitable[Json | None]]
"""Rewrites a body; returns None where it cannot be read."""


@dataclass(slots=True, frozen=True)
class RewritingApp:
    """Call an application and rewrite its successful JSON answers."""

    app: ASGIApp
    rewrite: Rewrite
    limit: int  # bytes of an answer that are buffered
    hide_unread: bool  # no other successful answer gets through, nor a larger one
    hides_raw: bool  # no other answer gets through, and errors are told in Abridge's own words

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _BufferedAnswer(self, send)
        try:
            await self.app(scope_of_read_answer(scope), receive, answer.send)
        except UpstreamBroken as error:
            if answer.passing:
                raise
            _log.warning("upstream %s: %s", error.upstream, str(error))
            await answer.refuse(ErrorDetail(error.code, str(error)))


class _BufferedAnswer:
    """One answer on its way to the client."""

    def __init__(self, rewriting: RewritingApp, send: Send) -> None:
        self._rewriting = rewriting
        self._send = send
        self._start: Message | None = None
        self._buffer = bytearray()
        self._replaced = False  # another answer was sent in its place
        self.passing = False  # the answer is passed on as it came

    async def send(self, message: Message) -> None:
        if self._replaced or message["type"] == TRAILERS:
            return
        if message["type"] == "http.response.start":
            self._start = without_trailers(with_header_list(message))
            await self._begin(self._start)
        elif self.passing:
            await self._send(message)
        elif message["type"] == "http.response.body" and self._start is not None:
            self._buffer += message.get("body", b"")
            if len(self._buffer) > self._rewriting.limit:
                await self._pass_or_refuse(self._start, more=message.get("more_body", False))
            elif not message.get("more_body", False):
                await (self._retell if self._start["status"] >= 400 else self._rewrite)(self._start)

    async def refuse(self, error: ErrorDetail = UNREADABLE) -> None:
        """Send an error in place of the answer."""
        body = dumps(error_body(error.message, code=error.code))
        await self._replace(json_start(504 if error.code == TIMEOUT_CODE else 502, body), body)

    async def _begin(self, start: Message) -> None:
        headers = start["headers"]
        content_type = media_type(headers)
        encoding = get_header(headers, b"content-encoding")
        is_success = 200 <= start["status"] < 300 and start["status"] != NO_CONTENT
        is_json = content_type == b"application/json" and (not encoding or can_inflate(encoding))
        if is_success and not is_json and self._rewriting.hide_unread:
            await self.refuse()
        elif not is_success and self._rewriting.hides_raw:
            await self._begin_hidden(start)
        elif not (is_success and is_json):
            self.passing = True
            await self._send(start)

    async def _begin_hidden(self, start: Message) -> None:
        """Begin an answer that is no success: buffer an error, send no other's body or headers."""
        if start["status"] == NO_CONTENT:
            await self._replace({**start, "headers": kept_headers(start["headers"])}, b"")
        elif start["status"] < 400:
            await self.refuse()

    async def _retell(self, start: Message) -> None:
        """Send an error of upstream's in Abridge's own words."""
        try:
            told = self._decoded(start)
        except ValueError:
            told = b""
        body = dumps(rewrite_error_body(start["status"], told, error_body))
        kept = kept_headers(start["headers"])
        await self._send_response(json_start(start["status"], body, kept), body)

    async def _rewrite(self, start: Message) -> None:
        headers = start["headers"]
        try:
            body = parse_object(self._decoded(start), loads_exact)
            rewritten = await self._rewriting.rewrite(body) if body is not None else None
            encoded = None if rewritten is None else dumps(rewritten)
        except Exception as error:  # noqa: BLE001 -- upstream may send anything
            _log.warning("what upstream stores could not be read: %s", type(error).__name__)
            encoded = None
        if encoded is None:
            await self._pass_or_refuse(start, more=False)
            return
        length = (b"content-length", str(len(encoded)).encode())
        await self._send_response(
            {**start, "headers": [*drop_headers(headers, BODY_HEADERS), length]}, encoded
        )

    def _decoded(self, start: Message) -> bytes:
        """Return the body without its content encoding. Raises ValueError."""
        body = bytes(self._buffer)
        encoding = get_header(start["headers"], b"content-encoding")
        return Inflater(encoding, self._rewriting.limit).feed(body) if encoding else body

    async def _pass_or_refuse(self, start: Message, *, more: bool) -> None:
        """Pass on an answer that cannot be read, or send an error where nothing unread may get
        through."""
        if self._rewriting.hide_unread:
            await self.refuse()
            return
        self.passing = True
        await self._send_response(start, bytes(self._buffer), more=more)

    async def _replace(self, start: Message, body: bytes) -> None:
        """Send another answer; what follows of upstream's is discarded."""
        self._replaced = True
        await self._send_response(start, body)

    async def _send_response(self, start: Message, body: bytes, *, more: bool = False) -> None:
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
