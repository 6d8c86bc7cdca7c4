"""Operations on a response that Abridge stores.

Rewrite upstream's answers about stored responses to what the client was shown.

Endpoints of stored responses.

Responses stored here are answered here. Those stored upstream are rewritten on their way, since
upstream does not know what its client was shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.apis.display import Display
from abridge.apis.json import dumps, loads_exact, objects, string
from abridge.apis.openai import is_minted
from abridge.apis.responses.reasoning import is_reasoning
from abridge.attribution.responses import ItemAttributor, attribute_response
from abridge.config.exposure import hides_raw, shows_summary
from abridge.config.settings import ROUTE, Settings
from abridge.core.conversation import Json
from abridge.errors import RequestError
from abridge.http.asgi import json_start
from abridge.memory.registry import MemoryRegistry
from abridge.memory.tenants import tenant_tags
from abridge.observability.record import Record
from abridge.providers.catalog import PROFILES
from abridge.stored_responses.repository import (
    LocalResponse,
    ResponseRepository,
    UpstreamResponse,
    is_reasoning_id,
)
from abridge.stored_responses.rewriting import Rewrite, RewritingApp
from abridge.stored_responses.views import (
    PageQuery,
    find_summaries,
    items_as_shown,
    list_page,
    response_as_shown,
)


@dataclass(slots=True, frozen=True)
class LocalView:
    """A response stored here; methods raise RequestError if it is gone."""

    response_id: str
    record: LocalResponse
    responses: ResponseRepository

    async def whole_response(self) -> Json:
        output = [item for _, item in await self._load_items(self.record.output)]
        if len(output) < len(self.record.output):
            raise response_not_found(self.response_id)
        return {**self.record.response, "output": output}

    async def input_items(self, query: bytes) -> Json:
        """List the input, without reasoning that has expired."""
        item_ids, more = PageQuery.parse(query).select(self.record.basis)
        return list_page(await self._load_items(item_ids), has_more=more)

    async def delete(self) -> Json:
        await self.responses.delete(self.response_id)
        return {"id": self.response_id, "object": "response", "deleted": True}

    async def _load_items(self, item_ids: Sequence[str]) -> list[tuple[str, Json]]:
        found = list(zip(item_ids, await self.responses.get_items(item_ids), strict=True))
        if any(item is None and not is_reasoning_id(name) for name, item in found):
            raise response_not_found(self.response_id)
        return [(name, loads_exact(item)) for name, item in found if item is not None]


DELETED_FIELDS = ("id", "object", "deleted")


@dataclass(slots=True, frozen=True)
class UpstreamView:
    """The client's view of a response that upstream stores.

    Each method rewrites a body, and returns None if it cannot be read.
    """

    record: UpstreamResponse
    responses: ResponseRepository | None
    display: Display
    summary_is_raw: bool  # upstream's "summaries" are raw reasoning
    attribution_limit: int | None  # characters of reasoning per call; None: no attribution

    async def rewrite_response(self, body: Json) -> Json | None:
        record, limit = self.record, self.attribution_limit
        view = response_as_shown(
            body, self.display, record.fields, record.made, summary_is_raw=self.summary_is_raw
        )
        return view if view is None or limit is None else attribute_response(view, limit)

    async def rewrite_items(self, body: Json) -> Json | None:
        """Rewrite a list of items, each of which may have been shown in any response."""
        summaries = self.record.made
        if self.responses is not None:
            summaries = await _find_summaries(objects(body.get("data")), self.responses)
        view = items_as_shown(body, self.display, summaries, summary_is_raw=self.summary_is_raw)
        if view is not None and not self.display.show_raw:
            view["data"] = list(map(ItemAttributor(0).attribute, view["data"]))
        return view

    async def rewrite_deleted(self, body: Json) -> Json | None:
        return {key: body[key] for key in DELETED_FIELDS if key in body}


async def _find_summaries(items: list[Json], responses: ResponseRepository) -> Json:
    """Find the summaries of reasoning items, in all of the tenant's responses."""
    reasoning_ids = [string(item.get("id")) for item in items if is_reasoning(item)]
    response_ids = await responses.find_showing(reasoning_ids)
    unique_ids = list(dict.fromkeys(response_ids))
    records = dict(zip(unique_ids, await responses.find(*unique_ids), strict=True))
    summaries: Json = {}
    for reasoning_id, response_id in zip(reasoning_ids, response_ids, strict=True):
        record = records[response_id]
        if isinstance(record, UpstreamResponse) and reasoning_id in record.made:
            summaries[reasoning_id] = record.made[reasoning_id]
    return summaries


ENDPOINTS = (("GET", ""), ("DELETE", ""), ("GET", "input_items"), ("POST", "cancel"))

_RESPONSE_PATH = re.compile(
    r".*/responses/([\w+=-]+)(?:/(input_items|cancel))?/?", re.ASCII | re.DOTALL
)
"""Path of an endpoint. An id may be base64, as LiteLLM's are."""

RESPONSE_ID_PREFIX = "resp_"
"""Prefix of response ids."""

UNKNOWN_RESPONSE = UpstreamResponse("", raw=False)
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
        self._attribution_limit = (
            int(settings.limits.reasoning) if settings.attribution.enabled else 0
        )

    async def answer(self, path: ResponsePath, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request; return False if upstream's answer needs no change. Raises
        RequestError."""
        responses, record = await self._find(path.response_id, scope)
        if responses is not None and isinstance(record, LocalResponse):
            await self._answer_locally(
                path, LocalView(path.response_id, record, responses), scope, send
            )
            return True
        if record is None and self._is_missing(path.response_id):
            raise response_not_found(path.response_id)
        is_known = isinstance(record, UpstreamResponse) and record.upstream in self._routes
        if not (is_known or self._hiding_routes):
            return False
        upstream_response = (
            record if isinstance(record, UpstreamResponse) and is_known else UNKNOWN_RESPONSE
        )
        route = self._routes.get(upstream_response.upstream, self._default_route)
        summary_is_raw = PROFILES[route.upstream.profile].summary_is_raw
        view = self._view(upstream_response, responses, summary_is_raw=summary_is_raw)
        await self._ask_upstream(path, view, {**scope, ROUTE: route}, receive, send)
        return True

    async def _answer_locally(
        self, path: ResponsePath, local: LocalView, scope: Scope, send: Send
    ) -> None:
        """Answer for a response stored here."""
        content = await _read_local(path, local, scope)
        summaries = find_summaries(content.get("output") or content.get("data"))
        view = self._view(UpstreamResponse(local.record.upstream, raw=True, made=summaries), None)
        body = dumps(await _choose_rewrite(path, view, scope)(content))
        Record.get(scope).status = 200
        await send(json_start(200, body))
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _ask_upstream(
        self, path: ResponsePath, view: UpstreamView, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Have upstream answer, and rewrite that."""
        rewrite = _choose_rewrite(path, view, scope)
        if path.method == "DELETE" and view.responses is not None:
            await view.responses.delete(path.response_id)
        app = RewritingApp(self._app, rewrite, self._limit, hide_unread=not view.display.show_raw)
        await app(scope, receive, send)

    async def _find(
        self, response_id: str, scope: Scope
    ) -> tuple[ResponseRepository | None, LocalResponse | UpstreamResponse | None]:
        """Find a response's record, and the tenant's responses it is in."""
        responses = None
        for responses in self._tenant_responses(scope):
            (record,) = await responses.find(response_id)
            if record is not None:
                return responses, record
        return responses, None

    def _tenant_responses(self, scope: Scope) -> Iterator[ResponseRepository]:
        """Yield the client's responses, for every distinct store and tenant rule."""
        route_memories = self._route_memories.values()
        distinct = {
            (
                route_memory.store,
                route_memory.tenant_rule,
                route_memory.settings.anonymous,
            ): route_memory
            for route_memory in route_memories
        }
        for route_memory in distinct.values():
            tags = tenant_tags(
                scope,
                route_memory.keyring,
                route_memory.tenant_rule,
                anonymous=route_memory.settings.anonymous,
            )
            if (responses := ResponseRepository.for_tenant(route_memory, tags)) is not None:
                yield responses

    def _is_missing(self, response_id: str) -> bool:
        """Tell whether no upstream can have the response.

        The id is Abridge's, or it is a response id and the upstream to be asked stores none; any
        other id may belong to the application.
        """
        upstream = self._default_route.upstream
        stores_none = upstream.api in ("chat", "messages") and response_id.startswith(
            RESPONSE_ID_PREFIX
        )
        return is_minted(response_id) or (
            stores_none and self._route_memories[upstream.name].store is not None
        )

    def _view(
        self,
        record: UpstreamResponse,
        responses: ResponseRepository | None,
        *,
        summary_is_raw: bool = False,
    ) -> UpstreamView:
        """Return the client's view of a response. If its upstream is unknown, show no more than the
        settings of every upstream allow."""
        route = self._routes.get(record.upstream)
        routes = self._hiding_routes if route is None else [route]
        display = Display(
            show_raw=record.raw and not any(map(hides_raw, routes)),
            show_summary=all(map(shows_summary, routes)),
        )
        attribution_limit = (
            self._attribution_limit if self._attribution_limit or not display.show_raw else None
        )
        return UpstreamView(record, responses, display, summary_is_raw, attribution_limit)


async def _read_local(path: ResponsePath, local: LocalView, scope: Scope) -> Json:
    if path.subresource == "input_items":
        return await local.input_items(scope.get("query_string", b""))
    if path.subresource == "cancel":
        raise not_cancellable()
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
            "The stream of this response cannot be resumed: get the response itself.",
            param="stream" if is_stream else "starting_after",
            code="stream_not_resumable",
        )


def not_cancellable() -> RequestError:
    return RequestError("Cannot cancel a synchronous response.")


def response_not_found(response_id: str) -> RequestError:
    return RequestError(f"Response with id '{response_id}' not found.", status=404)
