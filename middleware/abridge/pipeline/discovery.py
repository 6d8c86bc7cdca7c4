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

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.json import parse_object, string
from abridge.apis.registry import APIS, UPSTREAM_APIS
from abridge.config.settings import Route
from abridge.errors import EndpointMissing

NOT_FOUND = 404

MISSING_STATUSES = (NOT_FOUND, 405)

MISSING_TTL = 600.0
"""Seconds after which a missing API is tried again."""

MAX_MODELS = 1024
"""Models for which a missing API is remembered."""

MAX_ERROR_BYTES = 64 * 1024
"""Bytes of an error body that are read."""

_OTHER_RESOURCE = re.compile("model|deployment|response|conversation|prompt", re.IGNORECASE)
"""Words in an error's code that name another resource than the endpoint."""


class ApiDiscovery:
    """APIs that upstreams were found not to have."""

    def __init__(self, time: Callable[[], float] = monotonic) -> None:
        self._missing: TTLCache[tuple[str, str, str], None] = TTLCache(
            MAX_MODELS, MISSING_TTL, timer=time
        )

    def choose_api(self, route: Route, api: Api, model: str) -> UpstreamApi | None:
        """Return the API to call; None if it is the client's own."""
        name = route.upstream.api
        if name == "auto" and self._is_missing(route, api, model):
            return other_api(api)
        return None if name in ("auto", "same", api.name) else UPSTREAM_APIS[name]

    def is_undecided(self, route: Route, api: Api, model: str) -> bool:
        """Tell whether it is unknown if upstream has the client's API."""
        return route.upstream.api == "auto" and not self._is_missing(route, api, model)

    def note_missing(self, route: Route, api: Api, model: str) -> None:
        """Remember that upstream does not have this API for a model, but has the other."""
        self._missing[route.upstream.name, api.name, model] = None

    def _is_missing(self, route: Route, api: Api, model: str) -> bool:
        return (route.upstream.name, api.name, model) in self._missing


def other_api(api: Api) -> UpstreamApi:
    return next(candidate.upstream for candidate in APIS if candidate is not api)


class EndpointTrial:
    """Call an application on an API that it may not have. Raises EndpointMissing if it has not;
    then nothing was sent to the client."""

    def __init__(self, app: ASGIApp, model: str) -> None:
        self._app = app
        self._model = model

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        withheld: list[Message] = []

        async def send_or_withhold(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in MISSING_STATUSES:
                withheld.append(message)
            elif not withheld:
                await send(message)
            elif _body_size(withheld) <= MAX_ERROR_BYTES:
                withheld.append(message)

        await self._app(scope, receive, send_or_withhold)
        if withheld and not self._is_other_resource_missing(withheld):
            raise EndpointMissing
        for message in withheld:
            await send(message)

    def _is_other_resource_missing(self, withheld: list[Message]) -> bool:
        """Tell whether the error says that something other than the endpoint was not found."""
        body = b"".join(message.get("body", b"") for message in withheld[1:])
        error = (parse_object(body) or {}).get("error")
        if withheld[0]["status"] != NOT_FOUND or not isinstance(error, dict):
            return False
        name = re.escape(self._model)
        named = name and re.search(rf"(?<![\w-]){name}(?![\w-])", string(error.get("message")))
        return bool(
            error.get("param") or _OTHER_RESOURCE.search(string(error.get("code"))) or named
        )


def _body_size(messages: list[Message]) -> int:
    return sum(len(message.get("body", b"")) for message in messages)


class StatusWatcher:
    """Call an application and note the status of its answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.status = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def note_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            await send(message)

        await self._app(scope, receive, note_and_send)

    @property
    def has_endpoint(self) -> bool:
        return self.status not in (0, *MISSING_STATUSES)
