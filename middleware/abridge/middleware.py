"""The ASGI seam: decides whether Abridge has anything to do with a request, or gets out of the way.

Two switches. *Response side*: a summary is due, or what the client may see is restricted. *Request
side*: the body holds something Abridge made, or refers to something it hid or replaced. With both
off the application gets the client's own `send`, and on `receive` the messages as they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

import httpx
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.errors import RequestError
from abridge.exchange import Exchange, Terms
from abridge.exchange.account import Account
from abridge.exchange.answer import json_start
from abridge.exchange.body import Keep, Room, Taken, header, take
from abridge.exchange.request import SUMMARY, Request, clear_body, model_of
from abridge.exchange.terms import display, hides, plan, shows_summary
from abridge.history.shown import Shown
from abridge.history.visit import LONGER, Past, Visit, new_key
from abridge.metrics import metrics_on
from abridge.paths import path_of, written_path
from abridge.settings import ROUTE, Route, Settings
from abridge.summarize import Summarizer
from abridge.summarize.chosen import Chosen
from abridge.summarize.guard import Guard, Review
from abridge.summarize.patience import Patience
from abridge.turn.conversation import Heard, Prefix
from abridge.turn.events import Ended
from abridge.turn.part import Style
from abridge.turn.usage import EXTRACTIVE
from abridge.wire.api import Api
from abridge.wire.apis import api_for
from abridge.wire.codec import dumps
from abridge.wire.problem import problem
from abridge.wire.profiles import PROFILES
from abridge.wire.wish import NEEDLE

STORED = "Stored responses are not available here."
"""Where reasoning is hidden: they hold it as the model wrote it."""


class AbridgeMiddleware:
    """Gives the reasoning that an application answers with a summary.

    Mount it inside authentication and outside compression. `summarizer` is any object with the
    protocol of `abridge.summarize`, used in place of the one in the settings; `review` sees each
    part whole before it is shown, and may change or withhold it. `transport` stands in for the one
    by which a summarizer model is called; metrics are made on `registry`, or on the default one.
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
    ) -> None:
        self.app = app
        self.settings = settings or Settings()
        self._routes = self.settings.routes
        self._metrics = metrics_on(registry)
        self._guards = self._make_guards(review)
        self._patience = Patience()
        self._room = Room(int(self.settings.limits.bodies))
        self._summarizers = Chosen(
            app,
            self.settings.summarizer,
            self.settings.limits,
            given=summarizer,
            transport=transport,
        )
        key = new_key()
        shown = Shown(key, LONGER * max(route.history.ttl for route in self._routes))
        self._pasts = {
            route.upstream.name: Past(route.history, shown, key) for route in self._routes
        }
        self._hides = any(map(hides, self._routes))
        self._reads_all = (
            self._hides
            or len(self._routes) > 1
            or any(route.summary.default != "off" for route in self._routes)
        )

    def _make_guards(self, review: Review | None) -> dict[str, Guard]:
        """One for all, or, where each upstream summarizes its own answers, one for each: a broken
        upstream must not open the breaker of another."""

        def guard() -> Guard:
            return Guard(self.settings.summarizer, review=review)

        names = [route.upstream.name for route in self._routes]
        if self.settings.summarizer.kind == "upstream":
            return {name: guard() for name in names}
        return dict.fromkeys(names, guard())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                await self._serve(scope, receive, send)
            except RequestError as refusal:
                self._count(api_for(path_of(scope)), "none", "refused")
                await refuse(refusal, send)
        elif scope["type"] == "lifespan":
            try:
                await self.app(scope, receive, send)
            finally:
                await self.aclose()
        else:
            await self.app(scope, receive, send)

    async def aclose(self) -> None:
        """Close what was opened to call a summarizer model; a later request opens anew."""
        await self._summarizers.aclose()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = path_of(scope)
        api = None
        if scope["method"] == "POST":
            api = api_for(path, written_path(scope).decode("latin-1"))
        if self._hides and api is None and "/responses/" in path:
            raise RequestError(STORED, status=404, code="not_found")
        if api is None and not self._routed_by_body(scope):
            route = self._route(path.partition("/models/")[2] or None)
            await self.app({**scope, ROUTE: route}, receive, send)
            return
        with self._room.share() as keep:
            await self._read(api, scope, receive, send, keep)

    async def _read(
        self, api: Api | None, scope: Scope, receive: Receive, send: Send, keep: Keep
    ) -> None:
        """Read the body, and see what it asks for."""
        taken = await take(scope, receive, int(self.settings.limits.body), keep)
        body = self._clear(scope, taken)
        if body is not taken.data and body is not None:
            keep(len(body))
        request = None
        if api is not None and body is not None and self._must_parse(scope, body):
            request = Request.read(api, scope, taken, body)
            if request is None and self._hides:
                raise RequestError("The request body is no JSON object.", code="invalid_json")
        if request is not None:
            await self._decide(request, receive, send)
        else:
            route = self._route(model_of(body) if len(self._routes) > 1 else None)
            await self._pass(api, route, scope, taken.receive, send)

    async def _pass(
        self, api: Api | None, route: Route, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Get out of the way; what becomes of the answer is not looked at."""
        outcome = "failed"
        try:
            await self.app({**scope, ROUTE: route}, receive, send)
            outcome = "untouched"
        finally:
            self._count(api, route.upstream.name, outcome)

    def _count(self, api: Api | None, upstream: str, outcome: str) -> None:
        if api is not None:
            self._metrics.requests.labels(api.name, upstream, outcome).inc()

    def _route(self, model: str | None) -> Route:
        return self.settings.route(model) if len(self._routes) > 1 else self._routes[0]

    def _routed_by_body(self, scope: Scope) -> bool:
        """Whether only the body can tell which upstream a request is for."""
        kind = header(scope["headers"], b"content-type")
        return len(self._routes) > 1 and kind.startswith(b"application/json")

    def _clear(self, scope: Scope, taken: Taken) -> bytes | None:
        """The request's body in the clear, or None where it cannot be known and need not be."""
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
            or any(past.concerns(body) for past in self._pasts.values())
        )

    async def _decide(self, request: Request, receive: Receive, send: Send) -> None:
        """Set both switches, and answer accordingly."""
        route = self._route(request.model or None)
        request.scope = {**request.scope, ROUTE: route}
        style = request.style(route)
        if request.background:
            _check_background(route)
            style = None
        engaged = style is not None or hides(route)
        past = self._pasts[route.upstream.name]
        visit = Visit.begin(past, route, request.model, request.scope)
        if past.concerns(request.clear):
            self._mend(request, visit)
        elif engaged and visit.keeps:
            visit.prefix = Prefix().after(request.api.conversation(request.data).turns)
        request.grant(summary_is_raw=PROFILES[route.upstream.profile].summary_is_raw)
        if engaged:
            await self._engage(request, style, visit, receive, send)
        else:
            taken = request.taken.with_body(request.body()) if request.changed else request.taken
            scope = request.inner_scope(engaged=False)
            await self._pass(request.api, route, scope, taken.receive, send)

    def _mend(self, request: Request, visit: Visit) -> None:
        conversation = request.api.conversation(request.data)
        mended = visit.mend(conversation)
        visit.prefix = Prefix().after(conversation.turns)
        name = request.api.name
        self._metrics.marks_removed.labels(name).inc(mended.removed)
        self._metrics.originals.labels(name, "restored").inc(mended.restored)
        self._metrics.originals.labels(name, "missed").inc(mended.missed)
        if mended.changed:
            request.data, request.changed = conversation.body(), True

    async def _engage(
        self, request: Request, asked: Style | None, visit: Visit, receive: Receive, send: Send
    ) -> None:
        """Answer with everything that is due."""
        route = visit.route
        api, profile = request.api, PROFILES[route.upstream.profile]
        style = asked if shows_summary(route) else None
        scope = request.inner_scope(engaged=True)
        summarizer = self._summarizers.for_request(scope, request.model, api, profile)
        grace = self._patience.grace(route.upstream.name, monotonic(), route.summary.grace)
        shown = display(route, api, style, self.settings.chat, request.count(route))
        free = summarizer.name == EXTRACTIVE
        copied = free or route.summary.on_failure == "extract"

        def keep(heard: Sequence[Heard], ended: Ended) -> None:
            visit.keep(heard, ended, shown)
            self._metrics.store_bytes.set(sum(past.memory.size for past in self._pasts.values()))

        terms = Terms(
            api=api,
            profile=profile,
            plan=plan(route, style, self.settings.limits, grace, free=free),
            display=shown,
            hides=hides(route),
            guard=self._guards[route.upstream.name],
            summarizer=summarizer,
            showing=visit.showing(copied=copied),
            keep=keep,
            event_limit=int(self.settings.limits.event),
            reasoning_limit=int(self.settings.limits.reasoning),
        )
        account = Account(
            self._metrics,
            api=api.name,
            upstream=route.upstream.name,
            style=style or "off",
            summarizer=summarizer.name,
            spent=monotonic() - request.began,
        )
        exchange = Exchange(terms, account, receive, send)
        try:
            await exchange.run(self.app, scope, request.let_go())
        finally:
            self._learn(route, exchange)

    def _learn(self, route: Route, exchange: Exchange) -> None:
        """Whether the summarizer kept the answer waiting, for the next answers of the route."""
        if exchange.missed:
            self._patience.missed(route.upstream.name, monotonic())
        elif exchange.summarized:
            self._patience.met(route.upstream.name)


def _check_background(route: Route) -> None:
    """A response in the background is fetched later, past whoever would hide its reasoning."""
    if hides(route):
        raise RequestError(
            "Background responses are not available here.",
            param="background",
            code="unsupported_value",
        )


async def refuse(refusal: RequestError, send: Send) -> None:
    """Tell the client what is wrong with its request, in the API's error shape."""
    body = dumps(problem(str(refusal), kind=refusal.kind, param=refusal.param, code=refusal.code))
    again = [(b"retry-after", b"1")] if refusal.status == 503 else []
    await send(json_start(refusal.status, body, again))
    await send({"type": "http.response.body", "body": body, "more_body": False})
