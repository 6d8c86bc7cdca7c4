"""Buffer and rewrite upstream's answers about stored responses; no model is at work here."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.errors import UpstreamBroken
from abridge.exchange.answers import json_start
from abridge.exchange.answers.answer import MALFORMED, REWRITTEN
from abridge.exchange.answers.whole import TIMEOUT
from abridge.exchange.body import Inflater, can_inflate, header, without
from abridge.exchange.request import INDIVISIBLE
from abridge.turn.events import Trouble
from abridge.wire.codec import Json, dumps, loads_exactly, read_object
from abridge.wire.problem import problem

_log = logging.getLogger(__name__)

Rewrite = Callable[[Json], Awaitable[Json | None]]
"""Rewrites a body; returns None where it cannot be read."""


@dataclass(slots=True, frozen=True)
class Rewriting:
    """Call an application and rewrite its successful JSON answers."""

    app: ASGIApp
    rewrite: Rewrite
    limit: int  # bytes of an answer that are buffered
    opaque: bool  # no other successful answer gets through, nor a larger one

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gathering = _Gathering(self, send)
        known = scope.get("extensions") or {}
        inner = {
            **scope,
            "headers": without(scope["headers"], (b"accept-encoding",)),
            "extensions": {key: known[key] for key in known if key not in INDIVISIBLE},
        }
        try:
            await self.app(inner, receive, gathering.send)
        except UpstreamBroken as error:
            if gathering.passing:
                raise
            _log.warning("upstream %s: %s", error.upstream, error)
            await gathering.refuse(Trouble(error.code, str(error)))


class _Gathering:
    """One answer on its way to the client."""

    def __init__(self, terms: Rewriting, send: Send) -> None:
        self._terms = terms
        self._send = send
        self._start: Message | None = None
        self._came = bytearray()
        self._refused = False
        self.passing = False  # the answer is passed on as it came

    async def send(self, message: Message) -> None:
        if self._refused:
            return
        if message["type"] == "http.response.start":
            self._start = message
            await self._begin(message)
        elif self.passing:
            await self._send(message)
        elif message["type"] == "http.response.body" and self._start is not None:
            self._came += message.get("body", b"")
            if len(self._came) > self._terms.limit:
                await self._give_up(self._start, more=message.get("more_body", False))
            elif not message.get("more_body", False):
                await self._end(self._start)

    async def refuse(self, trouble: Trouble = MALFORMED) -> None:
        """Send an error in place of the answer."""
        self._refused = True
        body = dumps(problem(trouble.message, code=trouble.code))
        await self._say(json_start(504 if trouble.code == TIMEOUT else 502, body), body)

    async def _begin(self, start: Message) -> None:
        headers = start.get("headers", [])
        kind = header(headers, b"content-type").split(b";")[0].strip().lower()
        encoding = header(headers, b"content-encoding")
        good = 200 <= start["status"] < 300 and start["status"] != 204
        plain = kind == b"application/json" and (not encoding or can_inflate(encoding))
        if good and not plain and self._terms.opaque:
            await self.refuse()
        elif not (good and plain):
            self.passing = True
            await self._send(start)

    async def _end(self, start: Message) -> None:
        headers = start["headers"]
        try:
            clear = bytes(self._came)
            if header(headers, b"content-encoding"):
                clear = Inflater(self._terms.limit).feed(clear)
            body = read_object(clear, loads_exactly)
            shown = await self._terms.rewrite(body) if body is not None else None
        except Exception as error:  # noqa: BLE001 -- upstream may send anything
            _log.warning("what upstream stores could not be read: %s", type(error).__name__)
            shown = None
        if shown is None:
            await self._give_up(start, more=False)
            return
        said = dumps(shown)
        length = (b"content-length", str(len(said)).encode())
        await self._say({**start, "headers": [*without(headers, REWRITTEN), length]}, said)

    async def _give_up(self, start: Message, *, more: bool) -> None:
        """Pass on an answer that cannot be read, or send an error where nothing unread may get
        through."""
        if self._terms.opaque:
            await self.refuse()
            return
        self.passing = True
        await self._say(start, bytes(self._came), more=more)

    async def _say(self, start: Message, body: bytes, *, more: bool = False) -> None:
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
