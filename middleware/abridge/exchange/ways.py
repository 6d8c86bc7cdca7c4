"""Choose the API on which an upstream is called; find it out where `api = "auto"`.

The client's own API is tried first. If upstream answers with 404 or 405, and the error does not
name something else that is missing, upstream does not have this API: the request is sent again on
the other one, and if that is answered, later requests for the same model go there directly. The
finding is kept per model, since one address may serve models that differ in this, and it expires,
since an upstream may be upgraded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from time import monotonic

from cachetools import TTLCache
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.errors import EndpointMissing
from abridge.settings import Route
from abridge.wire.api import Api, UpstreamApi
from abridge.wire.apis import APIS, UPSTREAM_APIS
from abridge.wire.codec import read_object, string

NOT_FOUND = 404
MISSING = (NOT_FOUND, 405)

FOR = 600.0
"""Seconds after which a missing API is tried again."""

MOST = 1024
"""Models for which a missing API is remembered."""

LONGEST = 64 * 1024
"""Bytes of an error body that are read."""

_ELSE = re.compile("model|deployment|response|conversation|prompt", re.IGNORECASE)
"""Words in an error's code that name another resource than the endpoint."""


class Ways:
    """APIs that upstreams were found not to have."""

    def __init__(self, time: Callable[[], float] = monotonic) -> None:
        self._lacks: TTLCache[tuple[str, str, str], None] = TTLCache(MOST, FOR, timer=time)

    def target(self, route: Route, api: Api, model: str) -> UpstreamApi | None:
        """Return the API to call; None if it is the client's own."""
        name = route.upstream.api
        if name == "auto" and self._is_lacking(route, api, model):
            return other(api)
        return None if name in ("auto", "same", api.name) else UPSTREAM_APIS[name]

    def is_open(self, route: Route, api: Api, model: str) -> bool:
        """Tell whether it is unknown if upstream has the client's API."""
        return route.upstream.api == "auto" and not self._is_lacking(route, api, model)

    def lacks(self, route: Route, api: Api, model: str) -> None:
        """Remember that upstream does not have this API for a model, but has the other."""
        self._lacks[route.upstream.name, api.name, model] = None

    def _is_lacking(self, route: Route, api: Api, model: str) -> bool:
        return (route.upstream.name, api.name, model) in self._lacks


def other(api: Api) -> UpstreamApi:
    return next(one.upstream for one in APIS if one is not api)


class Trial:
    """Call an application on an API that it may not have. Raises EndpointMissing if it has not;
    then nothing was sent to the client."""

    def __init__(self, app: ASGIApp, model: str) -> None:
        self._app = app
        self._model = model

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        held: list[Message] = []

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in MISSING:
                held.append(message)
            elif not held:
                await send(message)
            elif _size(held) <= LONGEST:
                held.append(message)

        await self._app(scope, receive, sending)
        if held and not self._misses_something_else(held):
            raise EndpointMissing
        for message in held:
            await send(message)

    def _misses_something_else(self, held: list[Message]) -> bool:
        """Tell whether the error says that something other than the endpoint was not found."""
        body = b"".join(message.get("body", b"") for message in held[1:])
        error = (read_object(body) or {}).get("error")
        if held[0]["status"] != NOT_FOUND or not isinstance(error, dict):
            return False
        name = re.escape(self._model)
        named = name and re.search(rf"(?<![\w-]){name}(?![\w-])", string(error.get("message")))
        return bool(error.get("param") or _ELSE.search(string(error.get("code"))) or named)


def _size(messages: list[Message]) -> int:
    return sum(len(message.get("body", b"")) for message in messages)


class Watched:
    """Call an application and note the status of its answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.status = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            await send(message)

        await self._app(scope, receive, sending)

    @property
    def found(self) -> bool:
        return self.status not in (0, *MISSING)
