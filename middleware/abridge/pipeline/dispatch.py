"""Dispatch requests: choose upstream's API, prepare the request, and engage if anything is due.

The response side is engaged where a summary is due, raw reasoning is hidden, calls are attributed,
reasoning must be remembered or put into envelopes, or upstream speaks another API than the client.
The request side is changed where the body holds something that Abridge made, or refers to something
it hid or replaced. With neither, the application answers by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.effort import LoweredEffort
from abridge.apis.json import dumps
from abridge.apis.openai import is_minted
from abridge.config.client_key import must_count
from abridge.config.exposure import hides_raw, reasons_in_summaries
from abridge.config.settings import ATTEMPT, ROUTE, Route, Settings
from abridge.core.language import REASONING
from abridge.core.styles import SummaryStyle
from abridge.errors import (
    EndpointMissing,
    FieldRefused,
    RequestError,
    StateRefused,
    UpstreamUnavailable,
)
from abridge.http.asgi import adding_headers
from abridge.lasting import Lasting
from abridge.memory.registry import MemoryRegistry
from abridge.observability.metrics_sink import MetricsSink
from abridge.observability.record import Record
from abridge.pipeline.body import BufferedBody, Room
from abridge.pipeline.compaction import Compactor
from abridge.pipeline.discovery import ApiDiscovery, endpoint_trial
from abridge.pipeline.early_head import send_head_early
from abridge.pipeline.engage import Endpoints, Engagement
from abridge.pipeline.failover import Failover, cannot_move_on, with_retry_after
from abridge.pipeline.health import Attempt, UpstreamHealth
from abridge.pipeline.prepare import PreparedRequest, RequestPreparation
from abridge.pipeline.refused_fields import TAKEN, RefusedFields, request_trial
from abridge.pipeline.renaming import RenamingApp
from abridge.pipeline.request import ApiRequest
from abridge.pipeline.shared_findings import SharedFindings
from abridge.pipeline.token_counting import TokenCounting
from abridge.providers.catalog import PROFILES
from abridge.stored_responses.references import read_conversation_id

EFFORT_HEADER, BUDGET_HEADER = b"x-abridge-effort", b"x-abridge-budget"
"""Response headers with what is in force where a client asked for more than it may."""

BACKGROUND_FIELDS = ("background", "background_options")
"""Fields of a request that say how a background response is made, not what it says."""


class BeginsBackground(Protocol):
    """Begins background responses of Abridge's own."""

    async def begin(
        self,
        prepared: PreparedRequest,
        style: SummaryStyle | None,
        body: bytes,
        endpoints: Endpoints,
        *,
        streams: bool,
    ) -> None: ...


class Dispatcher:
    """Dispatches requests to `app`; those on which Abridge engages, by `engagement`."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        memory: MemoryRegistry,
        metrics_sink: MetricsSink,
        engagement: Engagement,
        *,
        background: BeginsBackground,
        lasting: Lasting,
    ) -> None:
        self._app = app
        self._background = background
        self._memory = memory
        self._engagement = engagement
        self._attributes_calls = settings.attribution.enabled
        self._event_limit = int(settings.limits.event)
        self._health = lasting.get("health", partial(UpstreamHealth, metrics_sink.metrics))
        self._failover = Failover(settings, self._health, memory, metrics_sink)
        self._discovery = lasting.get("discovery", ApiDiscovery)
        self.may_translate = self._discovery.may_translate
        self._refused = lasting.get("refused fields", RefusedFields)
        self._upstreams = [route.upstream for route in settings.routes if route.upstream.base_url]
        self._findings: SharedFindings | None = None
        if memory.stores.shared is not None and self._upstreams:
            kinds = {b"apis": self._discovery, b"fields": self._refused}
            make = partial(SharedFindings, memory.stores.shared, self._health, kinds)
            self._findings = lasting.get("findings", make)
        self._preparation = RequestPreparation(
            settings.limits, memory, engagement.answer_memory.learned, self._refused, metrics_sink
        )
        self._token_counting = TokenCounting(app, self._preparation, self._discovery)
        self._compactor = Compactor(
            settings, memory, self._preparation, engagement.summarizers.model, self._attempt
        )

    def take_effect(self) -> None:
        self._health.watch(self._upstreams)
        if self._findings is not None:
            self._findings.watch(self._upstreams)

    async def aclose(self) -> None:
        if self._findings is not None:
            await self._findings.aclose()

    async def dispatch(self, request: ApiRequest, receive: Receive, send: Send) -> None:
        """Have the request's upstream answer it, or the first of its fallbacks that can."""
        if self._findings is not None:
            self._findings.start()
        retry_after, own = b"", request.route
        attempts = await self._failover.attempts_for(request)
        for attempt, after in zip_longest(attempts, attempts[1:]):
            again = request if attempt.route is own else await request.reread(attempt.route)
            again.scope[ATTEMPT] = attempt
            try:
                with attempt:
                    await self._ask(again, receive, with_retry_after(retry_after, send))
            except UpstreamUnavailable as failure:
                cause, retry_after = failure.cause, retry_after or failure.retry_after
            except RequestError as refusal:
                if attempt.route is own or len(attempts) == 1:
                    raise
                if after is None:
                    raise cannot_move_on(refusal) from None
                cause = "refused"
            else:
                return
            self._failover.note(request.scope, attempt.route, after.route, cause)

    def _ask(self, request: ApiRequest, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer a request on an API that its upstream has."""
        route, api, model = request.route, request.api, request.model
        Record.get(request.scope).note_target(api.name, route.upstream.name, model)
        if request.counts_tokens:
            return self._token_counting.answer(request, send)
        if self._discovery.is_due(route):
            return self._find_api(request, Endpoints(self._app, receive, send), self._app)
        (upstream,) = self._discovery.candidates(route, api, model)
        app = self._discovery.watch(self._app, route, api)
        return self._answer(request, upstream, Endpoints(app, receive, send))

    async def pass_unread(
        self,
        app: ASGIApp,
        api: Api,
        scope: Scope,
        buffered: BufferedBody,
        send: Send,
        *,
        read: Callable[[BufferedBody], Awaitable[ApiRequest | None]],
    ) -> None:
        """Let the application answer a request that need not be read. Where it does not have the
        client's API, and may be asked on another one, `read` reads the request after all."""
        if self._findings is not None:
            self._findings.start()
        route: Route = scope[ROUTE]
        is_due = self._discovery.is_due(route)
        asked = endpoint_trial(app) if is_due else self._discovery.watch(app, route, api)
        try:
            await pass_on(asked, scope, buffered, send)
        except EndpointMissing as missing:  # of a trial alone
            own = missing.answer
        else:
            return
        buffered = buffered.with_body(buffered.data or b"")
        request = await read(buffered)
        if request is None:
            await pass_on(own or app, scope, buffered, send)
        else:
            await self._find_api(request, Endpoints(self._app, buffered.rest, send), own)

    async def _find_api(
        self, request: ApiRequest, endpoints: Endpoints, own: ASGIApp | None
    ) -> None:
        """Answer a request on the first API that its upstream has; on the client's own, if it has
        none. `own` is the application for that, or what it answered a request that it does not
        know; None where that was too long to be kept."""
        route, api, model = request.route, request.api, request.model
        name = route.renames.to_upstream(model)
        for upstream in self._discovery.candidates(route, api, model):
            app = own if upstream is api.upstream else endpoints.app
            if app is None:
                continue
            note_found = partial(self._discovery.note_found, route, api, model, upstream)
            trial = endpoint_trial(app, name, note_found)
            try:
                await self._answer(request, upstream, replace(endpoints, app=trial))
            except EndpointMissing as missing:
                own = missing.answer if upstream is api.upstream else own
            else:
                return
            self._discovery.note_missing(route, api, model, upstream)
            request = await request.reread()
        await self._answer(request, api.upstream, replace(endpoints, app=own or endpoints.app))

    async def _answer(
        self, request: ApiRequest, upstream: UpstreamApi, endpoints: Endpoints
    ) -> None:
        """Answer a request on one of upstream's APIs; without opaque reasoning state, or a field
        that Abridge adds, if upstream refuses that."""
        while True:
            drops_state, refused = request.drops_state, request.refused
            try:
                await self._attempt(request, upstream, endpoints)
            except StateRefused:
                self._failover.note_refused_state(request.scope)
                drops_state = "refused_state"
            except FieldRefused as refusal:
                refused |= {refusal.field}
            else:
                return
            again = await request.reread()
            request = replace(again, drops_state=drops_state, refused=refused)

    async def _attempt(
        self, request: ApiRequest, upstream: UpstreamApi, endpoints: Endpoints
    ) -> None:
        """Prepare the request for one of upstream's APIs and answer it, its conversation compacted
        if it asks for that."""
        if await self._compactor.take(request, upstream, endpoints):
            return
        if request.compacts:
            await self._have_compacted(request, upstream, endpoints)
            return
        style = request.summary_style()
        if request.background:
            if _is_kept_here(request, upstream):
                await self._begin_background(request, upstream, style, endpoints)
                return
            style = None
        language = self._summary_language(request, style)
        streams = request.body.get("stream") is True
        engaged = await request.work.run(self._must_engage, request, upstream, style)
        prepared = await self._preparation.prepare(
            request,
            upstream,
            engaged=engaged,
            summary_due=style is not None,
            summary_language=language,
        )
        endpoints = self._with_answer_changes(prepared, endpoints)
        endpoints = replace(endpoints, app=self._try(prepared, endpoints.app))
        if engaged:
            if streams:
                send_head_early(request.scope, request.route.summary.early_head)
            await self._engagement.engage(prepared, style, endpoints)
        else:
            await pass_on(endpoints.app, prepared.scope, prepared.buffered, endpoints.send)

    def _try(self, prepared: PreparedRequest, app: ASGIApp) -> ASGIApp:
        """Return the application so that its refusal of state, or of what Abridge added, is noticed
        before the client is told."""
        request, added = prepared.request, prepared.added
        has_state = prepared.may_have_state and request.drops_state != "refused_state"
        names = request.route.upstream, request.route.renames.to_upstream(request.model)
        is_new = request.refused or (added and added - self._refused.those(TAKEN, *names, added))
        if not (has_state or is_new):
            return app
        note_accepted = partial(self._refused.note_accepted, *names, added, request.refused)
        return request_trial(app, added, note_accepted, has_state=has_state)

    async def _have_compacted(
        self, request: ApiRequest, upstream: UpstreamApi, endpoints: Endpoints
    ) -> None:
        """Have upstream's own endpoint compact a conversation, if it has one."""
        prepared = await self._preparation.prepare(request, upstream, engaged=False)
        app = endpoint_trial(self._with_answer_changes(prepared, endpoints).app, prepared.model)
        try:
            await pass_on(app, prepared.scope, prepared.buffered, endpoints.send)
        except EndpointMissing:
            again = await request.reread()
            await self._compactor.answer(again, upstream, endpoints)

    async def _begin_background(
        self,
        request: ApiRequest,
        upstream: UpstreamApi,
        style: SummaryStyle | None,
        endpoints: Endpoints,
    ) -> None:
        """Begin a background response of Abridge's own. The request is prepared like any other, so
        that one which cannot be answered is refused now."""
        if request.body.get("store") is False:
            raise RequestError(
                "A background response must be stored: 'store' must not be false.",
                param="store",
                code="unsupported_value",
            )
        streams = request.body.get("stream") is True
        left_out = (*BACKGROUND_FIELDS, "stream")
        body = {key: value for key, value in request.body.items() if key not in left_out}
        alone = await request.work.run(dumps, {**body, "stream": True})
        prepared = await self._preparation.prepare(
            replace(request, body=body, begins_background=True),
            upstream,
            engaged=True,
            summary_due=style is not None,
            summary_language=self._summary_language(request, style),
        )
        await self._background.begin(prepared, style, alone, endpoints, streams=streams)

    def _with_answer_changes(self, prepared: PreparedRequest, endpoints: Endpoints) -> Endpoints:
        """Return the endpoints through which models are renamed in the answer, and its headers say
        what was lowered in the request."""
        app, send = endpoints.app, endpoints.send
        if prepared.renamed:
            app = RenamingApp(
                app, prepared.renamed, self._event_limit, Room(prepared.request.buffered.reserve)
            )
        if headers := _lowered_headers(prepared.lowered):
            send = adding_headers(headers, send)
        return Endpoints(app, endpoints.receive, send)

    def _summary_language(self, request: ApiRequest, style: SummaryStyle | None) -> str:
        """Return the language that a summary is to be written in. A copy has the reasoning's."""
        if style is None:
            return REASONING
        language = request.summary_language()
        return REASONING if self._engagement.summarizers.copies else language

    def _must_engage(
        self, request: ApiRequest, upstream: UpstreamApi, style: SummaryStyle | None
    ) -> bool:
        return (
            style is not None
            or hides_raw(request.route)
            or upstream is not request.api.upstream
            or self._must_note(request)
            or is_minted(read_conversation_id(request.body))
            or must_count(request.scope)
            or _must_omit_reasoning(request)
            or (self._attributes_calls and not request.background)
            or self._memory.for_route(request.route).may_need_memory(request.decoded)
            or (self._memory.keyring.configured and bool(request.wants_opaque_state(request.body)))
        )

    def _must_note(self, request: ApiRequest) -> bool:
        """Return whether the answer is to be stored here, since upstream forgets it; or whose it is
        noted, since upstream may store it for an account that all clients share; or who gave it,
        since only that fallback can read the state in it."""
        if self._memory.for_route(request.route).store is None:
            return False
        attempt: Attempt | None = request.scope.get(ATTEMPT)
        returns_state = (
            request.api.returns_signatures or request.wants_opaque_state(request.body) is True
        )
        if attempt is not None and attempt.stands_in and returns_state:
            return True
        upstream, store = request.route.upstream, request.body.get("store")
        may_store = request.api.upstream.stores_responses and store in (None, True)
        return may_store and (upstream.shares_key or PROFILES[upstream.profile].forgets_responses)


async def pass_on(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Let the application answer by itself; the response is not read."""
    await app(scope, receive, send)
    Record.get(scope).outcome = "untouched"


def _must_omit_reasoning(request: ApiRequest) -> bool:
    """Return whether the client wants to see no reasoning, and upstream is none that knows to leave
    it out: whoever summarizes its reasoning does, others show it raw."""
    if request.wish != "omitted":
        return False
    route = request.route
    return not reasons_in_summaries(route, PROFILES[route.upstream.profile], [request.model])


def _lowered_headers(lowered: LoweredEffort) -> list[tuple[bytes, bytes]]:
    values = ((EFFORT_HEADER, lowered.effort), (BUDGET_HEADER, lowered.budget))
    return [(name, str(value).encode()) for name, value in values if value is not None]


def _is_kept_here(request: ApiRequest, upstream: UpstreamApi) -> bool:
    """Return whether a background response is Abridge's own: upstream keeps none, or its answer
    must be read as it comes, since reasoning is hidden or tokens are counted."""
    return (
        upstream is not request.api.upstream
        or PROFILES[request.route.upstream.profile].forgets_responses
        or hides_raw(request.route)
        or must_count(request.scope)
    )
