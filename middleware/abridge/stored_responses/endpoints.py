"""Serve the endpoints of stored responses.

Responses stored here are answered here. Those stored upstream are rewritten on their way, since
upstream does not know what its client was shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import parse_qs, unquote_plus

from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.apis.api import Api
from abridge.apis.display import Display
from abridge.apis.json import dumps
from abridge.apis.openai import is_minted
from abridge.apis.registry import UPSTREAM_APIS, find_api
from abridge.apis.responses.api import RESPONSES
from abridge.apis.responses.request import SAFE_INCLUDES
from abridge.apis.shapes import DropCount
from abridge.config.exposure import hides_raw, shows_summary
from abridge.config.settings import ROUTE, Route, Settings
from abridge.config.upstreams import UpstreamSettings
from abridge.core.conversation import Json
from abridge.core.hidden import HiddenCount
from abridge.errors import RequestError
from abridge.http.asgi import decoded_path, request_paths, send_json
from abridge.memory.registry import MemoryRegistry
from abridge.observability.record import Record
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile
from abridge.stored_responses.repository import (
    LocalRecord,
    ResponseRepository,
    UpstreamRecord,
    lookup_error,
    tenant_repositories,
)
from abridge.stored_responses.rewriting import Rewrite, RewritingApp
from abridge.stored_responses.views import (
    LocalView,
    UpstreamView,
    find_summaries,
    response_not_found,
)
from abridge.work import Work

ENDPOINTS = (("GET", ""), ("DELETE", ""), ("GET", "input_items"), ("POST", "cancel"))

_RESPONSE_PATH = re.compile(
    r".*/responses/([\w+=-]+)(?:/(input_items|cancel))?/?", re.ASCII | re.DOTALL
)
"""Path of an endpoint. An id may be base64, as LiteLLM's are."""

RESPONSE_ID_PREFIX = "resp_"
"""Prefix of response ids."""

UNKNOWN_RESPONSE = UpstreamRecord("", raw=False)
"""Used for a response of which nothing is recorded, as for most."""


class ResponsePath(NamedTuple):
    """Endpoint of a stored response that a request addresses."""

    method: str
    response_id: str
    subresource: str  # "" for the response itself, else "input_items" or "cancel"

    @classmethod
    def parse(cls, method: str, path: str) -> ResponsePath | None:
        match = _RESPONSE_PATH.fullmatch(path)
        if match is None or (method, match[2] or "") not in ENDPOINTS:
            return None
        return cls(method, match[1], match[2] or "")


def api_of_preflight(scope: Scope) -> Api | None:
    """Return the API that a preflight request is about, if another request to its path would be
    served: `OPTIONS` opens no path that all other methods find closed."""
    if scope["method"] != "OPTIONS":
        return None
    api = find_api(*request_paths(scope))
    path = decoded_path(scope)
    if api is None and any(ResponsePath.parse(method, path) for method, _ in ENDPOINTS):
        return RESPONSES
    return api


class StoredResponses:
    """Serve the endpoints of stored responses; `app` is asked for those stored upstream."""

    def __init__(self, app: ASGIApp, settings: Settings, memory: MemoryRegistry) -> None:
        self._app = app
        self._routes = {route.upstream.name: route for route in settings.routes}
        self._default_route = settings.routes[0]
        self._hiding_routes = [route for route in settings.routes if hides_raw(route)]
        self._route_memories = {
            route.upstream.name: memory.for_route(route) for route in settings.routes
        }
        self._limit = int(settings.limits.event)
        limit = int(settings.limits.reasoning)
        self._attribution_limit = limit if settings.attribution.enabled else 0

    async def answer(self, path: ResponsePath, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request; return False if upstream's answer needs no change. Raises
        RequestError."""
        repository, record = await self.find(path.response_id, scope)
        if repository is not None and isinstance(record, LocalRecord):
            await self._answer_locally(
                path, LocalView(path.response_id, record, repository), scope, send
            )
            return True
        if record is None and self._is_missing(path.response_id):
            raise self._not_found(path.response_id, scope)
        owner = await self._find_owner(path.response_id, record, scope)
        known = record if isinstance(record, UpstreamRecord) else UNKNOWN_RESPONSE
        if not (known.upstream in self._routes or self._hiding_routes):
            if owner is None:
                return False
            await self._app({**scope, ROUTE: owner}, receive, send)
            return True
        known = known if known.upstream in self._routes else UNKNOWN_RESPONSE
        route = self._routes.get(known.upstream, owner or self._default_route)
        profile = PROFILES[route.upstream.profile]
        hidden = Record.get(scope).note_profile(profile.name)
        view = self._view(known, repository, profile, hidden)
        await self._ask_upstream(path, view, {**scope, ROUTE: route}, receive, send)
        return True

    async def _answer_locally(
        self, path: ResponsePath, local: LocalView, scope: Scope, send: Send
    ) -> None:
        """Answer for a response stored here."""
        content = await _read_local(path, local, scope)
        summaries = find_summaries(content.get("output") or content.get("data"))
        view = self._view(UpstreamRecord(local.record.upstream, raw=True, made=summaries), None)
        rewritten = await _choose_rewrite(path, view, scope)(content)
        body = await Work(heavy=True).run(dumps, rewritten)
        Record.get(scope).status = 200
        await send_json(send, body)

    async def _ask_upstream(
        self, path: ResponsePath, view: UpstreamView, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Have upstream answer, and rewrite that."""
        rewrite = _choose_rewrite(path, view, scope)
        if path.method == "DELETE" and view.repository is not None:
            await view.repository.delete(path.response_id)
        hides = view.display.hides_raw
        app = RewritingApp(
            self._app, rewrite, self._limit, hide_unread=not view.display.show_raw, hides_raw=hides
        )
        if hides:
            scope = {**scope, "query_string": _safe_query(scope.get("query_string", b""))}
        await app(scope, receive, send)
        Record.get(scope).dropped_response_fields = view.drops.count

    async def find(
        self, response_id: str, scope: Scope
    ) -> tuple[ResponseRepository | None, LocalRecord | UpstreamRecord | None]:
        """Find a response's record, and the tenant's repository that has it."""
        repository = None
        for repository in self._repositories(scope):
            (record,) = await repository.find(response_id)
            if record is not None:
                return repository, record
        return repository, None

    async def _find_owner(self, response_id: str, record: object, scope: Scope) -> Route | None:
        """Find the upstream that made a response for the tenant and whose key all clients share;
        None if there is no such upstream. Raises RequestError for a response that the one to be
        asked made for somebody else."""
        if not any(route.upstream.shares_key for route in self._routes.values()):
            return None
        for repository in self._repositories(scope):
            (name,) = await repository.find_owners([response_id])
            if name in self._routes:
                return self._routes[name]
        if record is None and self._default_route.upstream.shares_key:
            raise self._not_found(response_id, scope)
        return None

    def _not_found(self, response_id: str, scope: Scope) -> RequestError:
        return lookup_error(response_not_found(response_id), *self._repositories(scope))

    def _repositories(self, scope: Scope) -> Iterator[ResponseRepository]:
        return tenant_repositories(self._route_memories.values(), scope)

    def _is_missing(self, response_id: str) -> bool:
        """Return whether no upstream can have the response.

        The id is Abridge's, or it is a response id and the upstream to be asked stores none; any
        other id may belong to the application.
        """
        upstream = self._default_route.upstream
        stores_none = lacks_storage(upstream) and response_id.startswith(RESPONSE_ID_PREFIX)
        return is_minted(response_id) or (
            stores_none and self._route_memories[upstream.name].store is not None
        )

    def _view(
        self,
        record: UpstreamRecord,
        repository: ResponseRepository | None,
        profile: Profile | None = None,
        hidden: HiddenCount | None = None,
    ) -> UpstreamView:
        """Return the client's view of a response, which counts in `hidden` what it leaves out. If
        its upstream is unknown, show no more than the settings of every upstream allow."""
        route = self._routes.get(record.upstream)
        routes = self._hiding_routes if route is None else [route]
        hides = any(map(hides_raw, routes))
        display = Display(
            show_raw=record.raw and not hides,
            hides_raw=hides,
            hidden=Counter() if hidden is None else hidden,
            trusts_state=profile is None or profile.encrypts_state,
            show_summary=all(map(shows_summary, routes)),
        )
        limit = self._attribution_limit
        attribution_limit = limit if limit or not display.show_raw else None
        drops = DropCount.of(display)
        return UpstreamView(record, repository, display, profile, attribution_limit, drops)


def lacks_storage(upstream: UpstreamSettings) -> bool:
    """Return whether an upstream is known to speak an API that stores no responses."""
    api = UPSTREAM_APIS.get(upstream.api)
    return api is not None and not api.stores_responses


async def _read_local(path: ResponsePath, local: LocalView, scope: Scope) -> Json:
    if path.subresource == "input_items":
        return await local.input_items(scope.get("query_string", b""))
    if path.subresource == "cancel" and local.record.response.get("background") is not True:
        raise RequestError("Cannot cancel a synchronous response.")
    if path.method == "DELETE":
        return await local.delete()
    return await local.whole_response()


def _choose_rewrite(path: ResponsePath, view: UpstreamView, scope: Scope) -> Rewrite:
    if path.subresource == "input_items":
        return view.rewrite_items
    if path.method == "DELETE":
        return view.rewrite_deleted
    _check_not_streamed(scope)
    return view.rewrite_response


def _check_not_streamed(scope: Scope) -> None:
    """Raise RequestError for a stream: the one that was shown is over, and upstream's is not what
    was shown."""
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    is_stream = any(value.lower() not in ("false", "0") for value in query.get("stream", ()))
    if is_stream or "starting_after" in query:
        raise RequestError(
            "The stream of this response cannot be resumed: retrieve the response itself.",
            param="stream" if is_stream else "starting_after",
            code="stream_not_resumable",
        )


def _safe_query(query: bytes) -> bytes:
    """Return a query without what it has included that might reveal the reasoning."""
    return b"&".join([parameter for parameter in query.split(b"&") if _is_safe(parameter)])


def _is_safe(parameter: bytes) -> bool:
    name, _, value = map(unquote_plus, parameter.decode("latin-1").partition("="))
    return not name.startswith("include") or value in SAFE_INCLUDES
