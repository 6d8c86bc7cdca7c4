"""Endpoints of stored responses.

Responses stored here are answered here. Those stored upstream are rewritten on their way, since
upstream does not know what its client was shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.answering.elsewhere import Again
from abridge.answering.kept import Kept
from abridge.answering.rewriting import Rewrite, Rewriting
from abridge.errors import RequestError
from abridge.exchange.answers import json_start
from abridge.exchange.terms import hides, shows_summary
from abridge.history.pasts import Pasts
from abridge.history.responses import Elsewhere, Responses, Stored
from abridge.history.tenant import tags
from abridge.settings import ROUTE, Settings
from abridge.telemetry.record import Record
from abridge.wire.codec import Json, dumps
from abridge.wire.display import Display
from abridge.wire.mint import is_minted
from abridge.wire.profiles import PROFILES
from abridge.wire.responses.again import made_in
from abridge.wire.responses.stored import no_response, not_in_background

WAYS = (("GET", ""), ("DELETE", ""), ("GET", "input_items"), ("POST", "cancel"))

_PATH = re.compile(r".*/responses/([\w+=-]+)(?:/(input_items|cancel))?/?", re.ASCII | re.DOTALL)
"""Path of an endpoint. An id may be base64, as LiteLLM's are."""

RESPONSE = "resp_"
"""Prefix of response ids."""

NOBODY_KNOWS = Elsewhere("", raw=False)
"""Used for a response of which nothing is recorded, as for most."""


class About(NamedTuple):
    """Endpoint of a stored response that a request addresses."""

    method: str
    identity: str
    of: str  # "" for the response itself, else "input_items" or "cancel"

    @classmethod
    def read(cls, method: str, path: str) -> About | None:
        found = _PATH.fullmatch(path)
        if found is None or (method, found[2] or "") not in WAYS:
            return None
        return cls(method, found[1], found[2] or "")


class StoredResponses:
    """Serve the endpoints of stored responses; `app` is asked for those stored upstream."""

    def __init__(self, app: ASGIApp, settings: Settings, pasts: Pasts) -> None:
        self._app = app
        self._routes = {route.upstream.name: route for route in settings.routes}
        self._first = settings.routes[0]
        self._hidden = [route for route in settings.routes if hides(route)]
        self._pasts = {route.upstream.name: pasts.of(route) for route in settings.routes}
        self._limit = int(settings.limits.event)
        self._attributed = int(settings.limits.reasoning) if settings.attribution.enabled else 0

    async def answer(self, about: About, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request; return False if upstream's answer needs no change. Raises
        RequestError."""
        responses, record = await self._find(about.identity, scope)
        if responses is not None and isinstance(record, Stored):
            await self._tell(about, Kept(about.identity, record, responses), scope, send)
            return True
        if record is None and self._is_nowhere(about.identity):
            raise no_response(about.identity)
        known = isinstance(record, Elsewhere) and record.upstream in self._routes
        if not (known or self._hidden):
            return False
        elsewhere = record if isinstance(record, Elsewhere) and known else NOBODY_KNOWS
        route = self._routes.get(elsewhere.upstream, self._first)
        masked = PROFILES[route.upstream.profile].summary_is_raw
        again = self._again(elsewhere, responses, masked=masked)
        await self._ask(about, again, {**scope, ROUTE: route}, receive, send)
        return True

    async def _tell(self, about: About, kept: Kept, scope: Scope, send: Send) -> None:
        """Answer for a response stored here."""
        said = await _said(about, kept, scope)
        made = made_in(said.get("output") or said.get("data"))
        again = self._again(Elsewhere(kept.stored.upstream, raw=True, made=made), None)
        body = dumps(await _way(about, again, scope)(said))
        Record.in_(scope).status = 200
        await send(json_start(200, body))
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _ask(
        self, about: About, again: Again, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Have upstream answer, and rewrite that."""
        way = _way(about, again, scope)
        if about.method == "DELETE" and again.responses is not None:
            await again.responses.forget(about.identity)
        app = Rewriting(self._app, way, self._limit, opaque=not again.display.raw)
        await app(scope, receive, send)

    async def _find(
        self, identity: str, scope: Scope
    ) -> tuple[Responses | None, Stored | Elsewhere | None]:
        """Find a response's record, and the tenant's responses it is in."""
        responses = None
        for responses in self._tenants(scope):
            (record,) = await responses.find(identity)
            if record is not None:
                return responses, record
        return responses, None

    def _tenants(self, scope: Scope) -> Iterator[Responses]:
        """Yield the client's responses, for every distinct store and tenant rule."""
        pasts = self._pasts.values()
        ways = {(past.store, past.tenant, past.settings.anonymous): past for past in pasts}
        for past in ways.values():
            told = tags(scope, past.keyring, past.tenant, anonymous=past.settings.anonymous)
            if (responses := Responses.of(past, told)) is not None:
                yield responses

    def _is_nowhere(self, identity: str) -> bool:
        """Tell whether no upstream can have the response.

        The id is Abridge's, or it is a response id and the upstream to be asked stores none; any
        other id may belong to the application.
        """
        upstream = self._first.upstream
        keeps_none = upstream.api in ("chat", "messages") and identity.startswith(RESPONSE)
        return is_minted(identity) or (keeps_none and self._pasts[upstream.name].store is not None)

    def _again(
        self, elsewhere: Elsewhere, responses: Responses | None, *, masked: bool = False
    ) -> Again:
        """Return the client's view of a response. If its upstream is unknown, show no more than the
        settings of every upstream allow."""
        route = self._routes.get(elsewhere.upstream)
        concerned = self._hidden if route is None else [route]
        display = Display(
            raw=elsewhere.raw and not any(map(hides, concerned)),
            summary=all(map(shows_summary, concerned)),
        )
        attributed = self._attributed if self._attributed or not display.raw else None
        return Again(elsewhere, responses, display, masked, attributed)


async def _said(about: About, kept: Kept, scope: Scope) -> Json:
    if about.of == "input_items":
        return await kept.input_items(scope.get("query_string", b""))
    if about.of == "cancel":
        raise not_in_background()
    if about.method == "DELETE":
        return await kept.delete()
    return await kept.whole()


def _way(about: About, again: Again, scope: Scope) -> Rewrite:
    if about.of == "input_items":
        return again.items
    if about.method == "DELETE":
        return again.deleted
    _check_whole(scope)
    return again.response


def _check_whole(scope: Scope) -> None:
    """Raise RequestError for a stream: the one that was shown is over, and upstream's is not what
    was shown."""
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    streams = any(value.lower() not in ("false", "0") for value in query.get("stream", ()))
    if streams or "starting_after" in query:
        raise RequestError(
            "The stream of this response cannot be resumed: get the response itself.",
            param="stream" if streams else "starting_after",
            code="stream_not_resumable",
        )
