"""Buffer and rewrite upstream's answers that no reader reads, as those about stored responses."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.apis.errors import (
    ANSWER_TOO_LONG,
    TIMEOUT_CODE,
    UNREADABLE,
    MayQuote,
    kept_headers,
    rewrite_error_body,
    words_of_refusal,
)
from abridge.apis.frames import encode_event
from abridge.apis.json import dumps, loads_exact, parse_object
from abridge.apis.openai import error_body
from abridge.apis.sse import FrameDecoder
from abridge.core.conversation import Json
from abridge.core.events import ErrorDetail
from abridge.errors import EventTooLarge, UpstreamBroken
from abridge.http.asgi import (
    BODY_HEADERS,
    EVENT_STREAM,
    TRAILERS,
    can_decode,
    content_encoding,
    decoder_for,
    drop_headers,
    json_start,
    media_type,
    scope_of_read_answer,
    without_trailers,
)
from abridge.work import Work

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
    hides_raw: bool  # no other answer gets through, and errors are told without hidden reasoning
    rewrite_frame: Callable[[bytes], bytes] | None = None  # of a stream; None: none is rewritten
    holds: Callable[[int], bool] = lambda _: True  # whether so many bytes may wait
    may_quote: MayQuote = bool  # whether an error may repeat hidden reasoning

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _BufferedAnswer(self, send)
        try:
            await self.app(scope_of_read_answer(scope), receive, answer.send)
        except UpstreamBroken as error:
            if answer.has_begun:
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
        self._passing = False  # the answer is passed on as it came
        self._frames: FrameDecoder | None = None  # of a stream that is rewritten

    @property
    def has_begun(self) -> bool:
        """True if some of upstream's answer went out before all of it had come."""
        return self._passing or self._frames is not None

    async def send(self, message: Message) -> None:
        if self._replaced or message["type"] == TRAILERS:
            return
        if message["type"] == "http.response.start":
            self._start = without_trailers(message)
            await self._begin(self._start)
        elif self._passing:
            await self._send(message)
        elif self._frames is not None:
            await self._stream(self._frames, message)
        elif message["type"] == "http.response.body" and self._start is not None:
            self._buffer += message.get("body", b"")
            if not self._has_room(len(self._buffer)):
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
        is_success = 200 <= start["status"] < 300 and start["status"] != NO_CONTENT
        is_json = content_type == b"application/json" and can_decode(headers)
        is_stream = content_type == EVENT_STREAM and not content_encoding(headers)
        if is_success and is_stream and self._rewriting.rewrite_frame is not None:
            self._frames = FrameDecoder(self._rewriting.limit)
            await self._send({**start, "headers": drop_headers(headers, BODY_HEADERS)})
        elif is_success and not is_json and self._rewriting.hide_unread:
            await self.refuse()
        elif not is_success and self._rewriting.hides_raw:
            await self._begin_hidden(start)
        elif not (is_success and is_json):
            self._passing = True
            await self._send(start)

    def _has_room(self, size: int) -> bool:
        return size <= self._rewriting.limit and self._rewriting.holds(size)

    async def _stream(self, frames: FrameDecoder, message: Message) -> None:
        """Send the frames that a piece of a stream completes, rewritten."""
        body, more = message.get("body", b""), message.get("more_body", False)
        complete = self._complete_frames(frames, body, more=more)
        if complete is None:
            error = error_body(ANSWER_TOO_LONG.message, code=ANSWER_TOO_LONG.code)
            rewritten, more, self._replaced = encode_event("error", error), False, True
        else:
            rewritten = await Work.on(body).run(self._rewrite_frames, complete)
        if rewritten or not more:
            await self._send({**message, "body": rewritten, "more_body": more})

    def _complete_frames(
        self, frames: FrameDecoder, body: bytes, *, more: bool
    ) -> list[bytes] | None:
        """Return the frames that a piece completes; None if what waits is too long."""
        try:
            complete = [*frames.feed(body), *([] if more else frames.end())]
        except EventTooLarge:
            return None
        return complete if self._has_room(frames.waiting) else None

    def _rewrite_frames(self, frames: list[bytes]) -> bytes:
        rewrite = self._rewriting.rewrite_frame or bytes
        return b"".join(map(rewrite, frames))

    async def _begin_hidden(self, start: Message) -> None:
        """Begin an answer that is no success: buffer an error, send no other's body or headers."""
        if start["status"] == NO_CONTENT:
            await self._replace({**start, "headers": kept_headers(start["headers"])}, b"")
        elif start["status"] < 400:
            await self.refuse()

    async def _retell(self, start: Message) -> None:
        """Send an error of upstream's without what may hold reasoning."""
        status, told = start["status"], b""
        with suppress(ValueError):
            told = self._decoded(start)
        words = words_of_refusal(status, told, self._rewriting.may_quote)
        body = dumps(rewrite_error_body(status, told, error_body, words=words))
        kept = kept_headers(start["headers"])
        await self._send_response(json_start(status, body, kept), body)

    async def _rewrite(self, start: Message) -> None:
        headers = start["headers"]
        try:
            work, decoded = Work.on(self._buffer), self._decoded(start)
            body = await work.run(parse_object, decoded, loads_exact)
            rewritten = await self._rewriting.rewrite(body) if body is not None else None
            encoded = None if rewritten is None else await work.run(dumps, rewritten)
        except Exception as error:  # noqa: BLE001 -- upstream may send anything
            _log.warning("upstream's stored response could not be read: %s", type(error).__name__)
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
        return decoder_for(start["headers"], self._rewriting.limit)(bytes(self._buffer))

    async def _pass_or_refuse(self, start: Message, *, more: bool) -> None:
        """Pass on an answer that cannot be read, or send an error where nothing unread may get
        through."""
        if self._rewriting.hide_unread:
            await self.refuse()
            return
        self._passing = True
        await self._send_response(start, bytes(self._buffer), more=more)

    async def _replace(self, start: Message, body: bytes) -> None:
        """Send another answer; what follows of upstream's is discarded."""
        self._replaced = True
        await self._send_response(start, body)

    async def _send_response(self, start: Message, body: bytes, *, more: bool = False) -> None:
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
