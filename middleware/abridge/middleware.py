"""The ASGI seam: decide whether a request concerns Abridge, and get out of the way if not.

A request concerns it for one of two reasons. *Response side*: a summary is due, or what the client
may see is restricted. *Request side*: the body holds something Abridge made, or refers to something
it hid or replaced. Otherwise the application gets the client's own `send`, and from `receive` the
messages as they came.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import httpx
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.answering import Answering, pass_on
from abridge.answering.counting import INNER
from abridge.answering.stored import About
from abridge.errors import RequestError
from abridge.exchange.answers import json_start
from abridge.exchange.body import Keep, Room, Taken, header, take
from abridge.exchange.request import SUMMARY, Request, clear_body, model_of
from abridge.exchange.terms import hides
from abridge.metrics import metrics_on
from abridge.paths import path_of, written_path
from abridge.settings import ROUTE, Route, Settings
from abridge.summarize import Summarizer
from abridge.summarize.guard import Review
from abridge.telemetry.record import RECORD, TRACE, Record, Sink
from abridge.telemetry.tracing import tracing_for
from abridge.wire.api import Api
from abridge.wire.apis import api_for, may_hold_answers
from abridge.wire.codec import dumps
from abridge.wire.preset import Preset
from abridge.wire.problem import problem
from abridge.wire.wish import NEEDLE

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

STORED = "This is not available here."
"""Error message for the endpoints of stored responses where reasoning is hidden: stored responses
hold the raw reasoning, in places that are not known."""


class AbridgeMiddleware:
    """Add reasoning summaries to the answers of an application.

    Mount it inside authentication and outside compression.

    `summarizer`: an object with the `Summarizer` protocol; used instead of the settings' one.
    `review`: sees each summary part whole before it is shown, and may change or withhold it.
    `transport`: used to call a summarizer model instead of a transport made here.
    `registry`: where metrics are registered; the default registry if None.
    `tenant`: names a request's tenant where the application knows better than a header. What one
        tenant's requests leave is never used for another; nothing is remembered for None.
    `sinks`: each is called with the record of every finished request.
    `tracer_provider`: makes the spans if `tracing.enabled`; the application's global one if None.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings | None = None,
        *,
        summarizer: Summarizer | None = None,
        review: Review | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        registry: CollectorRegistry | None = None,
        tenant: Callable[[Scope], str | None] | None = None,
        sinks: Sequence[Sink] = (),
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        self.app = app
        self.settings = settings or Settings()
        self._routes = self.settings.routes
        self._room = Room(int(self.settings.limits.bodies))
        self._tracing = tracing_for(self.settings, tracer_provider)
        self._asked = app if self._tracing is None else self._tracing.upstream(app)
        self._answering = Answering(
            self._asked,
            self,
            self.settings,
            metrics_on(registry),
            summarizer=summarizer,
            review=review,
            transport=transport,
            tenant=tenant,
            sinks=tuple(sinks),
            tracing=self._tracing,
        )
        self._hides = any(map(hides, self._routes))
        self._crosses = any(route.upstream.api != "same" for route in self._routes)
        self._reads_all = (
            self._hides
            or self._crosses
            or len(self._routes) > 1
            or self.settings.attribution.enabled
            or any(route.summary.default != "off" for route in self._routes)
            or any(route.upstream.preset != Preset() for route in self._routes)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, RECORD: Record.of(scope), TRACE: None}  # not an outer Abridge's
            if self._tracing is None or INNER in scope:
                await self._take(scope, receive, send)
            else:
                with self._tracing.request(scope) as traced:
                    await self._take(traced, receive, send)
        elif scope["type"] == "lifespan":
            try:
                await self.app(scope, receive, send)
            finally:
                await self.aclose()
        else:
            await self.app(scope, receive, send)

    async def aclose(self) -> None:
        """Close the connections to summarizer models and stores; a later request opens new ones."""
        await self._answering.aclose()

    async def _take(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request and hand its record to the sinks."""
        try:
            await self._serve(scope, receive, send)
        except RequestError as refusal:
            Record.in_(scope).refuse(refusal)
            await refuse(refusal, send)
        finally:
            self._answering.finish(scope)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, written = path_of(scope), written_path(scope).decode("latin-1")
        api = api_for(path, written) if scope["method"] == "POST" else None
        record = Record.in_(scope)
        record.api = api.name if api is not None else None
        about = About.read(scope["method"], path) if api is None else None
        if about is not None and await self._answering.stored.answer(about, scope, receive, send):
            record.outcome = "stored"
            return
        preflight = scope["method"] == "OPTIONS"
        if self._hides and api is None and not preflight and may_hold_answers(path, written):
            raise RequestError(STORED, status=404, code="not_found")
        if api is None and not self._routed_by_body(scope):
            route = self._route(path.partition("/models/")[2] or None)
            await pass_on(self._asked, {**scope, ROUTE: route}, receive, send)
            return
        with self._room.share() as keep:
            await self._read(api, scope, receive, send, keep)

    async def _read(
        self, api: Api | None, scope: Scope, receive: Receive, send: Send, keep: Keep
    ) -> None:
        """Read the body and dispatch the request."""
        taken = await take(scope, receive, int(self.settings.limits.body), keep)
        body = self._clear(scope, taken)
        if body is not taken.data and body is not None:
            keep(len(body))
        request = None
        if api is not None and body is not None and self._must_parse(scope, body):
            request = Request.read(api, scope, taken, body)
            if request is None and (self._hides or self._crosses):
                raise RequestError("The request body is no JSON object.", code="invalid_json")
        if request is not None:
            route = self._route(request.model or None)
            await self._answering.answer(request, route, receive, send)
        else:
            model = model_of(body) if len(self._routes) > 1 else None
            route = self._route(model)
            if api is not None:
                Record.in_(scope).ask(api.name, route.upstream.name, model)
            await pass_on(self._asked, {**scope, ROUTE: route}, taken.receive, send)
            if taken.left:
                Record.in_(scope).outcome = "left"

    def _route(self, model: str | None) -> Route:
        return self.settings.route(model) if len(self._routes) > 1 else self._routes[0]

    def _routed_by_body(self, scope: Scope) -> bool:
        """Tell whether the upstream can only be chosen by the model named in the body."""
        kind = header(scope["headers"], b"content-type")
        return len(self._routes) > 1 and kind.startswith(b"application/json")

    def _clear(self, scope: Scope, taken: Taken) -> bytes | None:
        """Return the body without its content encoding; None if it is unknown and not needed."""
        limit = int(self.settings.limits.body)
        if taken.data is None:
            if self._reads_all and not taken.left:
                raise RequestError(
                    f"The request body is larger than {limit} bytes.",
                    status=413,
                    code="request_too_large",
                )
            return None
        try:
            return clear_body(scope, taken.data, limit)
        except RequestError:
            if self._reads_all:
                raise
            return None

    def _must_parse(self, scope: Scope, body: bytes) -> bool:
        return (
            self._reads_all
            or NEEDLE in body
            or bool(header(scope["headers"], SUMMARY))
            or self._answering.concerns(body)
            or self._answering.demands(body)
            or self._answering.may_seal(body)
        )


async def refuse(refusal: RequestError, send: Send) -> None:
    """Send a RequestError to the client in the API's error shape."""
    body = dumps(problem(str(refusal), kind=refusal.kind, param=refusal.param, code=refusal.code))
    again = [(b"retry-after", b"1")] if refusal.status == 503 else []
    await send(json_start(refusal.status, body, again))
    await send({"type": "http.response.body", "body": body, "more_body": False})
