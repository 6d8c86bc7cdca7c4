"""Choose the API on which an upstream is called; find it out where `api = "auto"`.

The client's own API is tried first, then its fallbacks. If upstream answers with 404 or 405, and
the error does not name something else that is missing, upstream does not have the API: the request
is sent again on the next one, and if that is answered, later requests for the same model go there
directly, until that API is missing in its turn. If upstream has none of them, the client is told
what it answered on the client's own. The finding is kept per model, since one address may serve
models that differ in this, and it expires, since an upstream may be upgraded.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from time import monotonic

from starlette.types import ASGIApp

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.chat.api import CHAT
from abridge.apis.json import parse_object, string
from abridge.apis.openai import respell_error
from abridge.apis.registry import UPSTREAM_APIS, fallbacks
from abridge.config.settings import Route
from abridge.config.upstreams import UpstreamSettings
from abridge.errors import EndpointMissing
from abridge.pipeline.findings import FOUND_TTL, Findings
from abridge.pipeline.trial import Trial

MISSING_STATUSES = (404, 405)

_OTHER_RESOURCE = re.compile("model|deployment|response|conversation|prompt", re.IGNORECASE)
"""Words in an error's code that name another resource than the endpoint."""

_MODEL = re.compile(r"\b(model|deployment)s?\b", re.IGNORECASE)
"""Words in an error's message that say so; other ones stand in paths, too."""

SEEMS_MISSING = (
    'upstream %s: has no %s; if it has %s, set upstreams[].api = "chat" to serve clients through '
    "that"
)

_log = logging.getLogger(__name__)


class ApiDiscovery(Findings):
    """The APIs that upstreams were found to have, by client's API and model. They are called
    directly for `FOUND_TTL`; then the client's own is tried again."""

    def __init__(self, time: Callable[[], float] = monotonic) -> None:
        super().__init__(time)
        self._said: set[tuple[str, str, str]] = set()  # upstream, client's API, the one found
        self._translated: set[str] = set()  # the clients' APIs for which another one was found
        self._heard: set[tuple[str, str]] = set()
        """The upstreams, each with a client's API, that have answered on it, or said that they do
        not have it, where none is looked for."""

    def is_due(self, route: Route) -> bool:
        """Return whether an upstream's APIs are found out."""
        return route.upstream.api == "auto"

    def candidates(self, route: Route, api: Api, model: str) -> tuple[UpstreamApi, ...]:
        """Return the APIs to try, in order. The client's own is `api.upstream`."""
        if not self.is_due(route):
            return (UPSTREAM_APIS.get(route.upstream.api, api.upstream),)
        candidates = (api.upstream, *fallbacks(api))
        known = self.find(route.upstream, api.name, model)
        if known is None:
            return candidates
        found = UPSTREAM_APIS[known.value]
        return found, *(other for other in candidates if other is not found)

    def may_translate(self, api: Api) -> bool:
        """Return whether any upstream was found to have another API than these clients'."""
        return api.name in self._translated

    def note_found(self, route: Route, api: Api, model: str, found: UpstreamApi) -> None:
        """Remember that upstream answers on this API, and not on those tried before. It is said
        once in the log."""
        name = route.upstream.name
        known = self.find(route.upstream, api.name, model)
        renew_from = self._time() + FOUND_TTL / 2
        is_fresh = known is not None and known.value == found.name and known.until > renew_from
        if found is api.upstream or is_fresh:
            return
        self.keep(route.upstream, api.name, model, found.name)
        self.tell(route.upstream)
        if (name, api.name, found.name) not in self._said:
            self._said.add((name, api.name, found.name))
            _log.info(
                "upstream %s: has no %s; clients are served through %s", name, api.path, found.path
            )

    def note_missing(self, route: Route, api: Api, model: str, missing: UpstreamApi) -> None:
        """Forget that upstream was found to have this API."""
        known = self.find(route.upstream, api.name, model)
        if known is not None and known.value == missing.name:
            self.drop(route.upstream, api.name, model)
            self._said.discard((route.upstream.name, api.name, missing.name))
            self.tell(route.upstream)

    def keep(self, upstream: UpstreamSettings, *words: str, seconds: float = FOUND_TTL) -> None:
        api, _, found = words
        self._translated.add(api)
        super().keep(upstream, *words[:2], UPSTREAM_APIS[found].name, seconds=seconds)

    def watch(self, app: ASGIApp, route: Route, api: Api) -> ASGIApp:
        """Return the application so that, where no API is looked for, its first answer tells
        whether it has the clients'. If it has not, and Chat Completions could be in its place, the
        log says so. All its answers pass."""
        key = route.upstream.identity, api.name
        if route.upstream.api != "same" or CHAT.name not in api.fallbacks or key in self._heard:
            return app

        def must_withhold(status: int) -> bool:
            if has_endpoint(status):
                self._heard.add(key)
            return status in MISSING_STATUSES

        def check(_: int, body: bytes) -> None:
            if key not in self._heard and not names_resource(body):
                _log.warning(SEEMS_MISSING, route.upstream.name, api.path, CHAT.path)
            self._heard.add(key)

        return Trial(app, must_withhold, check)


def endpoint_trial(
    app: ASGIApp, model: str = "", note_found: Callable[[], None] | None = None
) -> Trial:
    """Return an application on an API that it may not have: then it raises EndpointMissing, and
    nothing was sent to the client. `model` is the one that was asked for, by upstream's name, if
    that is known. `note_found` is called once the application answers on this API."""

    def must_withhold(status: int) -> bool:
        if note_found is not None and has_endpoint(status):
            note_found()
        return status in MISSING_STATUSES

    def check(_: int, body: bytes) -> None:
        if not names_resource(body, model):  # else something else was not found
            raise EndpointMissing

    return Trial(app, must_withhold, check)


def has_endpoint(status: int) -> bool:
    """Return whether an answer with this status shows that there is an endpoint."""
    return status < 500 and status not in MISSING_STATUSES


def names_resource(body: bytes, model: str = "") -> bool:
    """Return whether an error says what was not found, and that is not the endpoint."""
    error = respell_error(parse_object(body) or {}).get("error")
    if not isinstance(error, dict):
        return False
    message, name = string(error.get("message")), re.escape(model)
    named = name and re.search(rf"(?<![\w-]){name}(?![\w-])", message)
    return bool(
        error.get("param")
        or _OTHER_RESOURCE.search(string(error.get("code")))
        or _MODEL.search(message)
        or named
    )
