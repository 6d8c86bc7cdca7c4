"""The ASGI seam: decide whether a request concerns Abridge, and get out of the way if not.

A request concerns it for one of two reasons. *Response side*: a summary is due, or what the client
may see is restricted. *Request side*: the body holds something Abridge made, or refers to something
it hid or replaced. Otherwise the application gets the client's own `send`, and from `receive` the
body as it came, in one piece where it was read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import httpx
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.apis.api import Api
from abridge.apis.messages.api import MESSAGES
from abridge.apis.paths import OVERRIDING_HEADERS, model_in_path
from abridge.apis.registry import compacts, counts_tokens, find_api
from abridge.apis.responses.api import RESPONSES
from abridge.apis.summary_request import may_request_summary
from abridge.background.responses import BackgroundResponses
from abridge.client_shares import ClientShares, client_of
from abridge.config.client_key import CLIENT_KEY, LEDGER, client_key
from abridge.config.exposure import hides_raw, open_paths, shared_paths
from abridge.config.settings import ATTEMPT, ROUTE, Route, Settings, check_settings
from abridge.errors import RequestError, SettingsError
from abridge.http.asgi import (
    CLOSING,
    NO_WEBSOCKET,
    decoded_path,
    drop_headers,
    get_header,
    request_paths,
    run_lifespan,
)
from abridge.lasting import Lasting
from abridge.memory.registry import MemoryRegistry
from abridge.observability.metrics import metrics_for
from abridge.observability.metrics_sink import SUMMARY_CALL, MetricsSink
from abridge.observability.record import (
    BACKGROUND,
    RECORD,
    TRACE,
    WEBSOCKET,
    Record,
    Sink,
)
from abridge.observability.tracing import create_tracing
from abridge.pipeline.allowed_models import (
    check_body,
    check_endpoint,
    check_path,
    check_unread,
    chooses_models,
    must_read,
)
from abridge.pipeline.answers.error_writer import ErrorWriter, refuse
from abridge.pipeline.body import BufferedBody, MemoryBudget, ReserveMemory, Room, buffer_body
from abridge.pipeline.conversation_endpoints import ConversationEndpoints, ConversationPath
from abridge.pipeline.dispatch import Dispatcher, pass_on
from abridge.pipeline.early_head import EARLY_HEAD, EarlyHead
from abridge.pipeline.engage import Engagement
from abridge.pipeline.images import ImageAnswers
from abridge.pipeline.model_lists import ModelLists, wants_anthropics_shape
from abridge.pipeline.renaming import rename_unread
from abridge.pipeline.request import (
    SUMMARY_HEADER,
    ApiRequest,
    check_model_name,
    decode_body,
    must_decode,
    read_model,
    too_large,
)
from abridge.stored_responses.endpoints import ResponsePath, StoredResponses, api_of_preflight
from abridge.summarizers.review import Review
from abridge.summarizers.selection import Overrides
from abridge.summarizers.summarizer import Summarizer
from abridge.waiting import Flag
from abridge.work import CLIENT, LIGHT_BYTES, LIGHT_WORK, Work

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from abridge.observability.tracing.spans import Tracing
    from abridge.sidecar.client_keys.door import ClientKeys
    from abridge.sidecar.websocket.session import Sessions

NOT_YET = dict.fromkeys((TRACE, ATTEMPT, BACKGROUND, CLIENT_KEY, EARLY_HEAD))
"""The scope keys of Abridge's that a request has only later, if at all."""

CLOSED_PATH = (
    "This path is closed, because reasoning is hidden here and answers on this path are not read. "
    "The setting reasoning.open_paths opens it."
)

SHARED_KEY_PATH = (
    "This path is closed, because all clients share one key here and would share what is behind "
    "the path. The setting upstreams[].forward_paths opens it."
)


class AbridgeMiddleware:
    """Add reasoning summaries to the answers of an application.

    Mount it inside authentication and outside compression.

    `summarizer`: an object with the `Summarizer` protocol, used instead of the one in the settings.
    `review`: gets each complete summary part before it is shown, and may change or withhold it.
    `transport`: used for calls to a summarizer model; None for Abridge's own.
    `registry`: where metrics are registered; None for the default registry.
    `tenant`: returns a request's tenant, if the application knows better than a header. What is
        remembered for one tenant is never used for another; for None nothing is remembered.
    `sinks`: each is called with the record of every finished request.
    `tracer_provider`: makes the spans if `tracing.enabled`; None for the application's global one.
    `keys`: admits requests, as `server.keys_file` says; None admits all.
    `lasting`: what it shares with those before and after it, where a change of settings makes
        another one.
    `entry`: where requests of a WebSocket go, which outlasts such a change; None: to this one.
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
        keys: ClientKeys | None = None,
        lasting: Lasting | None = None,
        entry: ASGIApp | None = None,
    ) -> None:
        self.app = app
        is_alone, lasting = lasting is None, lasting or Lasting()
        self._lasting = lasting
        self._entry = entry
        self._under_way = 0
        self._idle = Flag()
        self.settings = Settings() if settings is None else settings
        check_settings(self.settings)
        self._keys = keys
        if keys is None and self.settings.server.keys_file is not None:
            raise SettingsError(
                "server.keys_file: works only in `abridge serve` and create_app(); around the "
                "middleware, your application authenticates clients"
            )
        self._routes = self.settings.routes
        self._body_budget = lasting.get("bodies", partial(MemoryBudget, self.settings.limits))
        self._sessions: Sessions | None = None
        self._tracing = create_tracing(self.settings, tracer_provider)
        self._upstream_app = app if self._tracing is None else self._tracing.wrap_app(app)
        metrics = metrics_for(registry)
        self._metrics_sink = MetricsSink(metrics, self.settings, sinks, lasting)
        observe = self._metrics_sink.observe_store_operation
        self._memory = MemoryRegistry(self.settings, observe, tenant, lasting)
        self._unread_app: ASGIApp = ModelLists(self._upstream_app, self.settings)
        self._stored_responses = StoredResponses(self._upstream_app, self.settings, self._memory)
        self._conversations = ConversationEndpoints(
            self._upstream_app, self.settings, self._memory, self._body_budget
        )
        self._engagement = Engagement(
            self._upstream_app,
            self,
            self.settings,
            self._memory,
            self._metrics_sink,
            overrides=Overrides(summarizer, review, transport),
            tracing=self._tracing,
            lasting=lasting,
        )
        self._background = BackgroundResponses(
            self._answer_alone,
            self.settings,
            self._stored_responses,
            self._metrics_sink.metrics,
            lasting,
        )
        self._dispatcher = Dispatcher(
            self._upstream_app,
            self.settings,
            self._memory,
            self._metrics_sink,
            self._engagement,
            background=self._background,
            lasting=lasting,
        )
        self._names_matter = len(self._routes) > 1 or any(route.renames for route in self._routes)
        self._sends_heads_early = any(route.summary.early_head for route in self._routes)
        self._hides_raw = any(map(hides_raw, self._routes))
        self._open_paths = open_paths(self.settings)
        if self._hides_raw:
            self._unread_app = ImageAnswers(
                self._unread_app, self._open_paths, self.settings.limits, self._body_budget
            )
        self._shared_paths = {
            route.upstream.name: shared_paths(route.upstream)
            for route in self._routes
            if route.upstream.shares_key
        }
        self._translates = any(route.upstream.api not in ("same", "auto") for route in self._routes)
        self._parses_all = (
            self._hides_raw
            or bool(self._shared_paths)
            or self._translates
            or len(self._routes) > 1
            or self.settings.attribution.enabled
            or self._metrics_sink.ledger is not None
            or any(route.summary.default != "off" for route in self._routes)
            or any(route.upstream.changes_requests for route in self._routes)
        )
        if self.settings.server.websockets:
            self.load_sessions()
        if is_alone:
            self.take_effect()

    def take_effect(self) -> None:
        """Have the settings hold for what this one shares with others. Where it shares anything,
        nothing but this takes effect."""
        self._body_budget.resize(self.settings.limits)
        self._engagement.take_effect()
        self._dispatcher.take_effect()
        self._background.take_effect()
        self._metrics_sink.take_effect()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.call(scope, receive, send)

    def call(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Do the same, but for the coroutine that tells servers that this is an application."""
        if scope["type"] != "http":
            return self._serve_beside(scope, receive, send)
        own = {RECORD: Record.start(scope), LEDGER: self._metrics_sink.ledger is not None}
        scope = {**scope, **NOT_YET, **own}  # no outer Abridge's
        if self._hides_raw:  # paths are closed, so a request may have no other one
            scope["headers"] = drop_headers(scope["headers"], OVERRIDING_HEADERS)
        return self._trace(scope, receive, send)

    async def _serve_beside(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve what is no HTTP request: the lifespan, or a WebSocket."""
        if scope["type"] == "lifespan":
            await run_lifespan(self.app, scope, receive, send, self._drain)
        elif self._takes_socket(scope):
            if self._keys is not None and not await self._admits_socket(
                self._keys, scope, receive, send
            ):
                return
            with self._metrics_sink.metrics.websockets_open.track_inprogress():
                await self.load_sessions().serve(scope, receive, send)
        elif self._hides_raw and not self._open_paths.include_socket(*request_paths(scope)):
            error = RequestError(NO_WEBSOCKET, status=426, code="no_websocket")
            await refuse(error, RESPONSES, scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _takes_socket(self, scope: Scope) -> bool:
        """Return whether a WebSocket is one of the Responses API, which is served here: unless the
        settings say so, only on Abridge's own server."""
        wanted = self.settings.server.websockets
        is_served = CLOSING in scope if wanted is None else wanted
        return is_served and find_api(*request_paths(scope)) is RESPONSES

    def load_sessions(self) -> Sessions:
        """Return what serves WebSockets. It is loaded where the settings ask for it, or in the
        sidecar, and then before any traffic: streams would wait for it."""
        if self._sessions is None:
            from abridge.sidecar.websocket.session import Sessions  # noqa: PLC0415 -- mounted, seldom used

            remembered = self._lasting.get("websockets", ClientShares)
            self._sessions = Sessions(
                self._entry or self, self.settings.limits, self._body_budget, remembered
            )
        return self._sessions

    async def _admits_socket(
        self, keys: ClientKeys, scope: Scope, receive: Receive, send: Send
    ) -> bool:
        """Refuse a WebSocket that comes without a key; each request on it is admitted by itself."""
        try:
            await keys.authenticate(scope)
        except RequestError as error:
            self._metrics_sink.metrics.refusals.labels(error.code).inc()
            await refuse(error, RESPONSES, scope, receive, send)
            return False
        return True

    async def finish_background(self, seconds: float | None = None) -> None:
        """Wait for the background responses that run, so many seconds at most."""
        await self._background.finish(seconds)

    async def aclose(self) -> None:
        """End background responses, write what waits for the ledger, and close the connections to
        summarizer models and stores; a later request opens new ones."""
        await self._background.aclose()
        await self._dispatcher.aclose()
        await self._engagement.aclose()
        await self._memory.aclose()
        if self._metrics_sink.ledger is not None:
            await self._metrics_sink.ledger.aclose()

    async def retire(self) -> None:
        """Wait until the last request has ended, and take what nobody uses any more out of the
        metrics."""
        while self._under_way:
            self._idle.clear()
            await self._idle.wait()
        await self._background.finish_own()
        self._engagement.retire()

    async def close_calls(self) -> None:
        """Close the connections to summarizer models; what is shared with others stays."""
        await self._engagement.aclose()

    async def _drain(self) -> None:
        await self.finish_background(self.settings.server.drain)
        await self.aclose()

    async def _answer_alone(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that was admitted before, and whose client does not wait for it."""
        record = Record.start(scope)
        if (key := client_key(scope)) is not None:
            record.key, record.team = key.name, key.team
        own = {RECORD: record, TRACE: None, ATTEMPT: None, EARLY_HEAD: None}
        await self._trace({**scope, **own}, receive, send)

    def _trace(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve a request, within a span where traces are written."""
        if self._tracing is None or SUMMARY_CALL in scope:
            return self._handle(scope, receive, send)
        return self._handle_traced(self._tracing, scope, receive, send)

    async def _handle_traced(
        self, tracing: Tracing, scope: Scope, receive: Receive, send: Send
    ) -> None:
        with tracing.trace_request(scope) as traced:
            await self._handle(traced, receive, send)

    def _handle(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Find a request's API and answer it, with an early head where there may be one."""
        CLIENT.set(client_of(scope))
        api = find_api(*request_paths(scope)) if scope["method"] == "POST" else None
        must_wait = WEBSOCKET in scope or scope[BACKGROUND]
        if api is None or not self._sends_heads_early or must_wait:
            return self._answer(api, scope, receive, send)
        return self._answer_early(api, scope, receive, send)

    async def _answer_early(self, api: Api, scope: Scope, receive: Receive, send: Send) -> None:
        async with EarlyHead(send, _error_writer(api, scope)) as early:
            await self._answer(api, {**scope, EARLY_HEAD: early}, receive, early.send)

    async def _answer(self, api: Api | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request and hand its record to the sinks."""
        self._under_way += 1
        try:
            if self._keys is not None and SUMMARY_CALL not in scope and not scope[BACKGROUND]:
                await self._keys.admit(scope, Record.get(scope))
            if api is None:
                await self._serve_other(scope, receive, send)
            else:
                await self._serve(api, scope, receive, send)
        except RequestError as error:
            Record.get(scope).note_refusal(error)
            await _error_writer(api, scope).send_refusal(error, send)
        finally:
            self._metrics_sink.finish(scope)
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    def _serve(self, api: Api, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve a request to an endpoint of an API."""
        Record.get(scope).api = api.name
        if self._shared_paths:
            self._check_shared_endpoint(api, scope)
        check_endpoint(scope, api.path, self._open_paths)
        return self._serve_by_body(api, scope, receive, send)

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request to anything but an endpoint of an API."""
        path, asked_about = decoded_path(scope), api_of_preflight(scope)
        response_path = ResponsePath.parse(scope["method"], path)
        read_as = asked_about if response_path is None else RESPONSES
        if self._shared_paths and read_as is not None:
            self._check_shared_endpoint(read_as, scope)
        if response_path is not None and (
            await self._background.answer(response_path, scope, receive, send)
            or await self._stored_responses.answer(response_path, scope, receive, send)
        ):
            Record.get(scope).outcome = "stored"
            return
        if await self._serve_conversation(scope, receive, send):
            return
        if self._hides_raw and asked_about is None and not self._passes_unread(scope):
            raise RequestError(CLOSED_PATH, status=404, code="not_found")
        model = model_in_path(path)
        is_addressed = model is not None or response_path is not None
        if not is_addressed and self._is_routed_by_body(scope):
            await self._serve_by_body(None, scope, receive, send)
            return
        check_path(scope, model, is_stored_response=response_path is not None)
        self._choose_unread(scope, self._route_for(model if self._names_matter else None))
        await pass_on(self._unread_app, scope, receive, send)

    async def _serve_by_body(
        self, api: Api | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve a request as its body says."""
        with self._body_budget.reserving(CLIENT.get()) as reserve:
            buffered, body, request = await self._read(api, scope, receive, reserve)
            if request is not None:
                await self._dispatcher.dispatch(request, receive, send)
            else:
                await self._pass_on_unread(api, scope, buffered, body, send)

    async def _serve_conversation(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Serve a request about a conversation that is kept here; return False for any other."""
        path = ConversationPath.parse(scope["method"], decoded_path(scope))
        if path is None:
            return False
        passes = self._passes_unread(scope) or not (self._hides_raw or chooses_models(scope))
        shared = self._shared_paths.get(self._routes[0].upstream.name)
        is_open = passes and (
            shared is None or shared.include(scope["method"], *request_paths(scope))
        )
        if not self._conversations.takes(path, scope, is_open=is_open):
            return False
        await self._conversations.answer(path, scope, receive, send, is_open=is_open)
        return True

    async def _read(
        self, api: Api | None, scope: Scope, receive: Receive, reserve: ReserveMemory
    ) -> tuple[BufferedBody, bytes | None, ApiRequest | None]:
        """Read the body and, if it must be read, parse it. Return it as it came, without its
        content encoding if that is known, and the request."""
        limits = self.settings.limits
        buffered = await buffer_body(scope, receive, limits, reserve)
        body = buffered.data
        if body is None or must_decode(scope):
            body = await self._decoded_body(api, scope, buffered)
            if body is not buffered.data:
                reserve(len(body or b""))
        Record.get(scope).request_bytes = len(body or b"")
        if api is None or body is None or not await self._must_parse(api, scope, body):
            return buffered, body, None
        request = await self._parse(api, scope, buffered, body=body)
        if request is None:
            may_translate = self._translates or self._dispatcher.may_translate(api)
            if may_translate or self._hides_raw or self._shared_paths or must_read(scope):
                raise RequestError("The request body is not a JSON object.", code="invalid_json")
        elif chooses_models(scope):
            await request.work.run(check_body, scope, request.body)
        return buffered, body, request

    async def _parse(
        self, api: Api, scope: Scope, buffered: BufferedBody, *, body: bytes
    ) -> ApiRequest | None:
        return await ApiRequest.read(
            api,
            scope,
            buffered,
            body,
            work=Work(heavy=len(body) > LIGHT_BYTES),
            limits=self.settings.limits,
            choose_route=self._route_for,
        )

    async def _pass_on_unread(
        self, api: Api | None, scope: Scope, buffered: BufferedBody, body: bytes | None, send: Send
    ) -> None:
        """Pass on a request of which nothing is read but the model. `body` is without its content
        encoding; None if it is unknown."""
        model, work = None, LIGHT_WORK
        if self._names_matter or chooses_models(scope):
            work = Work()
            if body is not None:
                work.add(body)
                model = await read_model(body, work, self.settings.limits, buffered.reserve)
            await work.run(check_unread, scope, body)
        route = self._route_for(model)
        if api is not None:
            Record.get(scope).note_target(api.name, route.upstream.name, model)
        app = self._unread_app
        self._choose_unread(scope, route)
        if body is not None and model and route.renames:
            app, scope, renamed = await work.run(
                rename_unread,
                app,
                scope,
                body,
                model,
                limit=int(self.settings.limits.event),
                room=Room(buffered.reserve),
            )
            buffered = buffered if renamed is body else buffered.with_body(renamed)
        if api is None or body is None:
            await pass_on(app, scope, buffered, send)
        else:
            read = partial(self._parse, api, scope, body=body)
            await self._dispatcher.pass_unread(app, api, scope, buffered, send, read=read)
        if buffered.client_left:
            Record.get(scope).outcome = "left"

    def _choose_unread(self, scope: Scope, route: Route) -> None:
        """Choose the route of a request that is passed on unread. Raises RequestError where clients
        share a key, and its path is not one that they may reach."""
        if self._shared_paths and api_of_preflight(scope) is None:
            paths = self._shared_paths.get(route.upstream.name)
            if paths is not None and not paths.include(scope["method"], *request_paths(scope)):
                raise RequestError(SHARED_KEY_PATH, status=404, code="not_found")
        scope[ROUTE] = route

    def _check_shared_endpoint(self, api: Api, scope: Scope) -> None:
        """Raise RequestError where upstream might take the path of an API's endpoint for another
        one, which the key that all clients share would open."""
        method, paths = scope["method"], request_paths(scope)
        if not (
            self._open_paths.lead_to(api.path, *paths)
            or any(shared.include(method, *paths) for shared in self._shared_paths.values())
        ):
            raise RequestError(SHARED_KEY_PATH, status=404, code="not_found")

    def _passes_unread(self, scope: Scope) -> bool:
        """Return whether a request passes where reasoning is hidden and its answer is not read."""
        return self._open_paths.include(scope["method"], *request_paths(scope))

    def _route_for(self, model: str | None) -> Route:
        """Return the route to a model. Raises RequestError for a model that no upstream has, or
        with a name that none can have."""
        if model is not None:
            check_model_name(model)
        route = self._routes[0] if len(self._routes) == 1 else self.settings.find_route(model)
        if route is None:
            raise RequestError(
                f"The model '{model:.256}' does not exist.",
                status=404,
                param="model",
                code="model_not_found",
            )
        return route

    def _is_routed_by_body(self, scope: Scope) -> bool:
        """Return whether the upstream can only be chosen by the model named in the body, or that
        may have another name there."""
        content_type = get_header(scope["headers"], b"content-type")
        matters = self._names_matter or chooses_models(scope)
        return matters and content_type.startswith(b"application/json")

    async def _decoded_body(
        self, api: Api | None, scope: Scope, buffered: BufferedBody
    ) -> bytes | None:
        """Return the body without its content encoding; None if it is unknown and not needed."""
        limit = int(self.settings.limits.body)
        must_know = self._must_know_body(api, scope)
        if buffered.data is None:
            if must_know and not buffered.client_left:
                raise too_large("request body", limit)
            return None
        try:
            return await decode_body(scope, buffered.data, limit)
        except RequestError:
            if must_know:
                raise
            return None

    def _must_know_body(self, api: Api | None, scope: Scope) -> bool:
        """Return whether a body must be read, whatever it holds."""
        return (
            self._parses_all
            or must_read(scope)
            or (api is not None and self._dispatcher.may_translate(api))
        )

    async def _must_parse(self, api: Api, scope: Scope, body: bytes) -> bool:
        if self._must_know_body(api, scope) or get_header(scope["headers"], SUMMARY_HEADER):
            return True
        if api.counts_tokens_at or api.compaction is not None:  # it has other endpoints, too
            paths = request_paths(scope)
            if counts_tokens(*paths) or compacts(*paths):
                return True
        if len(body) <= LIGHT_BYTES:
            return self._may_concern(api, body, self._memory.holds_anything)
        holds_anything = self._memory.holds_anything()
        return await Work(heavy=True).run(self._may_concern, api, body, lambda: holds_anything)

    def _may_concern(self, api: Api, body: bytes, holds_anything: Callable[[], bool]) -> bool:
        """Return whether a body may hold anything that concerns Abridge, by a byte search alone."""
        return (
            self._memory.may_concern(body, holds_anything)  # first: often known at once
            or may_request_summary(body)
            or bool(api.wish_needle and api.wish_needle in body)
            or (api.compaction is not None and api.compaction.needle in body)
        )


def _error_writer(api: Api | None, scope: Scope) -> ErrorWriter:
    """Return what writes errors for a client: its headers tell its API where the path does not."""
    if api is None:
        api = MESSAGES if wants_anthropics_shape(scope["headers"]) else RESPONSES
    return ErrorWriter(api, Record.get(scope).id)
