"""The ASGI seam: take what the server hands over, and see each request through to its record.

The middleware is put together here, and outlives its requests; `serving.py` answers them.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import httpx
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.apis.api import Api
from abridge.apis.messages.api import MESSAGES
from abridge.apis.paths import OVERRIDING_HEADERS
from abridge.apis.registry import find_api
from abridge.apis.responses.api import RESPONSES
from abridge.client_shares import ClientShares, client_of
from abridge.config.client_key import CLIENT_KEY, LEDGER, client_key
from abridge.config.settings import ATTEMPT, Settings, check_settings
from abridge.config.warnings import unused_addresses
from abridge.errors import RequestError, SettingsError
from abridge.http.asgi import CLOSING, drop_headers, request_paths, run_lifespan
from abridge.lasting import Lasting
from abridge.memory.registry import MemoryRegistry
from abridge.observability.metrics import metrics_for
from abridge.observability.metrics_sink import SUMMARY_CALL, MetricsSink
from abridge.observability.record import BACKGROUND, RECORD, TRACE, WEBSOCKET, Record, Sink
from abridge.observability.tracing import create_tracing
from abridge.pipeline.answers.error_writer import ErrorWriter, refuse
from abridge.pipeline.closed_paths import SOCKET_CLOSED
from abridge.pipeline.early_head import EARLY_HEAD, EarlyHead
from abridge.pipeline.engage import Engagement
from abridge.pipeline.model_lists import wants_anthropics_shape
from abridge.serving import Serving
from abridge.summarizers.review import Review
from abridge.summarizers.selection import Overrides
from abridge.summarizers.summarizer import Summarizer
from abridge.waiting import Flag
from abridge.work import CLIENT

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from abridge.observability.tracing.spans import Tracing
    from abridge.sidecar.client_keys.door import ClientKeys
    from abridge.websocket.session import Session

NO_KEYS_HERE = (
    "works only in `abridge serve` and create_app(); around the middleware, your application "
    "authenticates clients"
)

NOT_YET = dict.fromkeys((TRACE, ATTEMPT, BACKGROUND, CLIENT_KEY, EARLY_HEAD))
"""The scope keys of Abridge's that a request has only later, if at all."""

_log = logging.getLogger(__name__)


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
        self.app, self._keys, self._entry = app, keys, entry
        is_alone, lasting = lasting is None, lasting or Lasting()
        self._lasting = lasting
        settings = self.settings = Settings() if settings is None else settings
        check_settings(settings)
        if keys is None and settings.server.keys_file is not None:
            raise SettingsError(f"server.keys_file: {NO_KEYS_HERE}")
        if not getattr(app, "calls_upstreams", False):
            for warning in unused_addresses(settings):
                _log.warning("%s", warning)
        self._under_way, self._idle = 0, Flag()
        self._new_session: partial[Session] | None = None
        tracing = self._tracing = create_tracing(settings, tracer_provider)
        app = app if tracing is None else tracing.wrap_app(app)
        sink = self._metrics_sink = MetricsSink(metrics_for(registry), settings, sinks, lasting)
        observe = sink.observe_store_operation
        memory = self._memory = MemoryRegistry(settings, observe, tenant, lasting)
        overrides = Overrides(summarizer, review, transport)
        engagement = self._engagement = Engagement(
            app, self, settings, memory, sink, overrides=overrides, tracing=tracing, lasting=lasting
        )
        self._serving = Serving(
            app, settings, memory, sink, engagement, answer=self._answer_alone, lasting=lasting
        )
        self._sends_heads_early = any(route.summary.early_head for route in settings.routes)
        if settings.server.websockets:
            self.load_sessions()
        if is_alone:
            self.take_effect()

    def take_effect(self) -> None:
        """Have the settings hold for what this one shares with others. Where it shares anything,
        nothing but this takes effect."""
        self._engagement.take_effect()
        self._serving.take_effect()
        self._metrics_sink.take_effect()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.call(scope, receive, send)

    def call(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Do what `__call__` does, without a coroutine of its own, for callers within Abridge.
        Servers call `__call__`: they know an ASGI application by its being `async`."""
        if scope["type"] != "http":
            return self._serve_beside(scope, receive, send)
        own = {RECORD: Record.start(scope), LEDGER: self._metrics_sink.ledger is not None}
        scope = {**scope, **NOT_YET, **own}  # no outer Abridge's
        if self._serving.paths.hides_raw:  # paths are closed, so a request may have no other one
            scope["headers"] = drop_headers(scope["headers"], OVERRIDING_HEADERS)
        return self._trace(scope, receive, send)

    async def _serve_beside(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve what is no HTTP request: the lifespan, or a WebSocket."""
        if scope["type"] == "lifespan":
            await run_lifespan(self.app, scope, receive, send, self._drain)
        elif self._takes_socket(scope):
            if self._keys is None or await self._admits_socket(self._keys, scope, receive, send):
                with self._metrics_sink.metrics.websockets_open.track_inprogress():
                    await self.load_sessions()(scope, receive, send).run()
        elif self._serving.paths.closes_socket(scope):
            error = RequestError(SOCKET_CLOSED, status=426, code="no_websocket")
            await refuse(error, RESPONSES, scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _takes_socket(self, scope: Scope) -> bool:
        """Return whether a WebSocket is one of the Responses API, which is served here: unless the
        settings say so, only on Abridge's own server."""
        wanted = self.settings.server.websockets
        is_served = CLOSING in scope if wanted is None else wanted
        return is_served and find_api(*request_paths(scope)) is RESPONSES

    def load_sessions(self) -> partial[Session]:
        """Return what makes the session of a WebSocket. It is loaded where the settings ask for it,
        or in the sidecar, and then before any traffic: streams would wait for it."""
        if self._new_session is None:
            # Mounted, they are seldom used.
            from abridge.websocket.conversations import REMEMBERED_BYTES  # noqa: PLC0415
            from abridge.websocket.session import Session  # noqa: PLC0415

            remembered = self._lasting.get("websockets", ClientShares)
            limits, budget = self.settings.limits, self._serving.budget
            remembered.resize(REMEMBERED_BYTES, int(REMEMBERED_BYTES * limits.client_share))
            self._new_session = partial(
                Session, self._entry or self, limits=limits, budget=budget, remembered=remembered
            )
        return self._new_session

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
        await self._serving.background.finish(seconds)

    async def aclose(self) -> None:
        """End background responses, write what waits for the ledger, and close the connections to
        summarizer models and stores; a later request opens new ones."""
        await self._serving.aclose()
        await self._engagement.aclose()
        await self._memory.stores.aclose()
        if self._metrics_sink.ledger is not None:
            await self._metrics_sink.ledger.aclose()

    async def retire(self) -> None:
        """Wait until the last request has ended, and take what nobody uses any more out of the
        metrics."""
        while self._under_way:
            self._idle.clear()
            await self._idle.wait()
        await self._serving.background.finish_own()
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
                await self._serving.serve_other(scope, receive, send)
            else:
                await self._serving.serve_endpoint(api, scope, receive, send)
        except RequestError as error:
            Record.get(scope).note_refusal(error)
            await _error_writer(api, scope).send_refusal(error, send)
        finally:
            self._metrics_sink.finish(scope)
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()


def _error_writer(api: Api | None, scope: Scope) -> ErrorWriter:
    """Return what writes errors for a client: its headers tell its API where the path does not."""
    if api is None:
        api = MESSAGES if wants_anthropics_shape(scope["headers"]) else RESPONSES
    return ErrorWriter(api, Record.get(scope).id)
