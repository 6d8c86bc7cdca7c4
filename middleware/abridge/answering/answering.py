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

from abridge.answering.counting import Counting
from abridge.answering.engaging import Ends, Engaging
from abridge.answering.preparing import Preparing
from abridge.answering.stored import StoredResponses
from abridge.errors import EndpointMissing, RequestError
from abridge.exchange.request import Request
from abridge.exchange.terms import hides
from abridge.exchange.ways import Trial, Watched, Ways, other
from abridge.history.tenant import Named
from abridge.metrics import Metrics
from abridge.settings import ROUTE, Route, Settings
from abridge.summarize import Summarizer
from abridge.summarize.guard import Review
from abridge.telemetry.log import log_request
from abridge.telemetry.record import Record, Sink
from abridge.wire.api import UpstreamApi

if TYPE_CHECKING:
    from abridge.telemetry.tracing.spans import Tracing


class Answering:
    """Dispatch requests to `app`; `outer_app` is the middleware, which leads to `app` through
    Abridge."""

    def __init__(
        self,
        app: ASGIApp,
        again: ASGIApp,
        settings: Settings,
        metrics: Metrics,
        *,
        summarizer: Summarizer | None,
        review: Review | None,
        transport: httpx.AsyncBaseTransport | None,
        tenant: Named | None,
        sinks: tuple[Sink, ...],
        tracing: Tracing | None,
    ) -> None:
        self._app = app
        self._ways = Ways()
        self._attributes = settings.attribution.enabled
        self._counting = Counting(metrics, settings, (log_request, *sinks))
        self._preparing = Preparing(settings, self._counting, tenant)
        self._engaging = Engaging(
            app,
            again,
            settings,
            self._counting,
            self._preparing,
            summarizer=summarizer,
            review=review,
            transport=transport,
            tracing=tracing,
        )
        self.stored = StoredResponses(app, settings, self._preparing.pasts)
        self.concerns = self._preparing.pasts.concerns
        self.demands = self._preparing.pasts.demands
        self.may_seal = self._preparing.pasts.may_seal
        self.finish = self._counting.finish

    async def aclose(self) -> None:
        await self._engaging.aclose()
        await self._preparing.pasts.aclose()

    async def answer(self, request: Request, route: Route, receive: Receive, send: Send) -> None:
        """Answer a request on an API that its upstream has."""
        request.scope = {**request.scope, ROUTE: route}
        model = request.model
        Record.in_(request.scope).ask(request.api.name, route.upstream.name, model)
        upstream = self._ways.target(route, request.api, model)
        if upstream is not None or not self._ways.is_open(route, request.api, model):
            await self._answer(request, upstream, Ends(self._app, receive, send))
            return
        scope = request.scope
        try:
            await self._answer(request, None, Ends(Trial(self._app, model), receive, send))
        except EndpointMissing:
            watched = Watched(self._app)
            again = request.again(scope)
            await self._answer(again, other(request.api), Ends(watched, receive, send))
            if watched.found:
                self._ways.lacks(route, request.api, model)

    async def _answer(self, request: Request, upstream: UpstreamApi | None, ends: Ends) -> None:
        """Decide whether to engage, prepare the request and answer it."""
        route: Route = request.scope[ROUTE]
        style = request.style(route)
        if request.background:
            _check_background(route)
            style = None
        engaged = (
            style is not None
            or hides(route)
            or upstream is not None
            or (self._attributes and not request.background)
            or self._preparing.pasts.of(route).demands(request.clear)
            or (self._preparing.pasts.keyring.lasting and bool(request.asks_sealed))
        )
        prepared = await self._preparing.prepare(request, upstream, engaged=engaged)
        if engaged:
            await self._engaging.engage(prepared, style, ends)
        else:
            taken = request.taken.with_body(request.body()) if request.changed else request.taken
            await pass_on(ends.app, request.scope, taken.receive, ends.send)


async def pass_on(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Let the application answer by itself; the response is not read."""
    await app(scope, receive, send)
    Record.in_(scope).outcome = "untouched"


def _check_background(route: Route) -> None:
    """Raise RequestError where reasoning is hidden: a background response is fetched later,
    unfiltered."""
    if hides(route):
        raise RequestError(
            "Background responses are not available here.",
            param="background",
            code="unsupported_value",
        )
