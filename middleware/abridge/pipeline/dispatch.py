"""Dispatch requests: choose upstream's API, prepare the request, and engage if anything is due.

The response side is engaged where a summary is due, raw reasoning is hidden, calls are attributed,
reasoning must be remembered or put into envelopes, or upstream speaks another API than the client.
The request side is changed where the body holds something that Abridge made, or refers to something
it hid or replaced. With neither, the application answers by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.apis.api import UpstreamApi
from abridge.config.exposure import hides_raw
from abridge.config.settings import ROUTE, Route, Settings
from abridge.errors import EndpointMissing, RequestError
from abridge.memory.tenants import TenantCallable
from abridge.observability.logs import log_request
from abridge.observability.metrics import Metrics
from abridge.observability.metrics_sink import MetricsSink
from abridge.observability.record import Record, Sink
from abridge.pipeline.discovery import ApiDiscovery, EndpointTrial, StatusWatcher, other_api
from abridge.pipeline.engage import Endpoints, Engagement
from abridge.pipeline.prepare import RequestPreparation
from abridge.pipeline.request import ApiRequest
from abridge.stored_responses.endpoints import StoredResponses
from abridge.summarizers.guard import Review
from abridge.summarizers.summarizer import Summarizer

if TYPE_CHECKING:
    from abridge.observability.tracing.spans import Tracing


class Dispatcher:
    """Dispatch requests to `app`; `outer_app` is the middleware, which leads to `app` through
    Abridge."""

    def __init__(
        self,
        app: ASGIApp,
        outer_app: ASGIApp,
        settings: Settings,
        metrics: Metrics,
        *,
        summarizer: Summarizer | None,
        review: Review | None,
        transport: httpx.AsyncBaseTransport | None,
        tenant: TenantCallable | None,
        sinks: tuple[Sink, ...],
        tracing: Tracing | None,
    ) -> None:
        self._app = app
        self._discovery = ApiDiscovery()
        self._attributes_calls = settings.attribution.enabled
        self._metrics_sink = MetricsSink(metrics, settings, (log_request, *sinks))
        self._preparation = RequestPreparation(settings, self._metrics_sink, tenant)
        self._engagement = Engagement(
            app,
            outer_app,
            settings,
            self._metrics_sink,
            self._preparation,
            summarizer=summarizer,
            review=review,
            transport=transport,
            tracing=tracing,
        )
        self.stored_responses = StoredResponses(app, settings, self._preparation.memory)
        self.may_need_rewrite = self._preparation.memory.may_need_rewrite
        self.may_need_memory = self._preparation.memory.may_need_memory
        self.may_seal = self._preparation.memory.may_seal
        self.finish = self._metrics_sink.finish

    async def aclose(self) -> None:
        await self._engagement.aclose()
        await self._preparation.memory.aclose()

    async def dispatch(
        self, request: ApiRequest, route: Route, receive: Receive, send: Send
    ) -> None:
        """Answer a request on an API that its upstream has."""
        request.scope = {**request.scope, ROUTE: route}
        model = request.model
        Record.get(request.scope).note_target(request.api.name, route.upstream.name, model)
        upstream = self._discovery.choose_api(route, request.api, model)
        if upstream is not None or not self._discovery.is_undecided(route, request.api, model):
            await self._prepare_and_answer(request, upstream, Endpoints(self._app, receive, send))
            return
        scope = request.scope
        try:
            await self._prepare_and_answer(
                request, None, Endpoints(EndpointTrial(self._app, model), receive, send)
            )
        except EndpointMissing:
            watcher = StatusWatcher(self._app)
            retry = request.reread(scope)
            await self._prepare_and_answer(
                retry, other_api(request.api), Endpoints(watcher, receive, send)
            )
            if watcher.has_endpoint:
                self._discovery.note_missing(route, request.api, model)

    async def _prepare_and_answer(
        self, request: ApiRequest, upstream: UpstreamApi | None, endpoints: Endpoints
    ) -> None:
        """Decide whether to engage, prepare the request and answer it."""
        route: Route = request.scope[ROUTE]
        style = request.summary_style(route)
        if request.background:
            _check_background(route)
            style = None
        engaged = (
            style is not None
            or hides_raw(route)
            or upstream is not None
            or (self._attributes_calls and not request.background)
            or self._preparation.memory.for_route(route).may_need_memory(request.decoded)
            or (self._preparation.memory.keyring.configured and bool(request.wants_opaque_state))
        )
        prepared = await self._preparation.prepare(request, upstream, engaged=engaged)
        if engaged:
            await self._engagement.engage(prepared, style, endpoints)
        else:
            buffered = (
                request.buffered.with_body(request.upstream_body())
                if request.changed
                else request.buffered
            )
            await pass_on(endpoints.app, request.scope, buffered.receive, endpoints.send)


async def pass_on(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Let the application answer by itself; the response is not read."""
    await app(scope, receive, send)
    Record.get(scope).outcome = "untouched"


def _check_background(route: Route) -> None:
    """Raise RequestError where reasoning is hidden: a background response is fetched later,
    unfiltered."""
    if hides_raw(route):
        raise RequestError(
            "Background responses are not available here.",
            param="background",
            code="unsupported_value",
        )
