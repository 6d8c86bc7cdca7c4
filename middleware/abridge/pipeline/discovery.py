"""Choose the API on which an upstream is called; find it out where `api = "auto"`.

The client's own API is tried first, then its fallbacks. If upstream answers with 404 or 405, and
the error does not name something else that is missing, upstream does not have the API: the request
is sent again on the next one, and if that is answered, later requests for the same model go there
directly. The finding is kept per model, since one address may serve models that differ in this, and
it expires, since an upstream may be upgraded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from time import monotonic

from cachetools import TTLCache
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.json import parse_object, string
from abridge.apis.registry import UPSTREAM_APIS, fallbacks
from abridge.caches import MODELS, is_short
from abridge.config.settings import Route
from abridge.errors import EndpointMissing
from abridge.pipeline.trial import Trial

NOT_FOUND = 404

MISSING_STATUSES = (NOT_FOUND, 405)

FOUND_TTL = 600.0
"""Seconds for which a found API is called directly; then the client's own is tried again."""

_OTHER_RESOURCE = re.compile("model|deployment|response|conversation|prompt", re.IGNORECASE)
"""Words in an error's code that name another resource than the endpoint."""


class ApiDiscovery:
    """The APIs that upstreams were found to have, by upstream, client's API and model."""

    def __init__(self, time: Callable[[], float] = monotonic) -> None:
        self._found: TTLCache[tuple[str, str, str], UpstreamApi] = TTLCache(
            MODELS, FOUND_TTL, timer=time
        )

    def candidates(self, route: Route, api: Api, model: str) -> tuple[UpstreamApi, ...]:
        """Return the APIs to try, in order. The client's own is `api.upstream`."""
        name = route.upstream.api
        if name != "auto":
            return (api.upstream if name == "same" else UPSTREAM_APIS[name],)
        found = self._found.get((route.upstream.name, api.name, model))
        return (api.upstream, *fallbacks(api)) if found is None else (found,)

    def note_found(self, route: Route, api: Api, model: str, found: UpstreamApi) -> None:
        """Remember that upstream answers on this API, and not on those tried before."""
        if is_short(model):
            self._found[route.upstream.name, api.name, model] = found


class EndpointTrial:
    """Call an application on an API that it may not have.

    Raises EndpointMissing if it has not; then nothing was sent to the client. The answer of the
    `last` API to be tried is passed on in any case.
    """

    def __init__(self, app: ASGIApp, model: str, *, last: bool) -> None:
        self._app = app
        self._model = model
        self._last = last
        self._status = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        trial = Trial(self._app, self._must_withhold, self._check)
        await trial(scope, receive, send)

    @property
    def found(self) -> bool:
        """True once the application has answered on this API."""
        return self._status not in (0, *MISSING_STATUSES)

    def _must_withhold(self, status: int) -> bool:
        self._status = status
        return status in MISSING_STATUSES and not self._last

    def _check(self, status: int, body: bytes) -> None:
        """Raise EndpointMissing unless the error says that something else was not found."""
        error = (parse_object(body) or {}).get("error")
        if status != NOT_FOUND or not isinstance(error, dict):
            raise EndpointMissing
        name = re.escape(self._model)
        named = name and re.search(rf"(?<![\w-]){name}(?![\w-])", string(error.get("message")))
        if not (error.get("param") or _OTHER_RESOURCE.search(string(error.get("code"))) or named):
            raise EndpointMissing
