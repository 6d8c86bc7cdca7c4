"""The response side: answer a request with everything that is due to its client."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import httpx
from starlette.types import ASGIApp, Receive, Send

from abridge.apis.api import Reader, Writer
from abridge.apis.display import Display, SealEnvelope
from abridge.apis.errors import translate_error
from abridge.attribution import ATTRIBUTING_WRITERS
from abridge.config.exposure import hides_raw, shows_summary
from abridge.config.settings import Route, Settings
from abridge.core.events import ResponseEnded
from abridge.core.styles import SummaryStyle
from abridge.core.usage import EXTRACTIVE
from abridge.observability.metrics import Metrics
from abridge.observability.metrics_sink import MetricsSink, summary_call_scope
from abridge.observability.record import TRACE, Record
from abridge.observability.recorder import ExchangeRecorder
from abridge.pipeline.exchange import Exchange
from abridge.pipeline.exchange_plan import (
    ExchangePlan,
    RememberTurn,
    build_display,
    build_summary_plan,
)
from abridge.pipeline.prepare import PreparedRequest, RequestPreparation
from abridge.pipeline.request import ApiRequest
from abridge.providers.profile import Profile
from abridge.summarizers.guard import GraceBackoff, Guard, Review
from abridge.summarizers.selection import SummarizerSelection
from abridge.summarizers.summarizer import Summarizer

if TYPE_CHECKING:
    from abridge.observability.tracing.spans import Tracing


@dataclass(slots=True, frozen=True)
class Endpoints:
    """The application and the client of one request."""

    app: ASGIApp
    receive: Receive
    send: Send


class Engagement:
    """Run engaged requests.

    `outer_app` leads to `app` through Abridge, for a summarizer that speaks its client's API where
    upstream does not.
    """

    def __init__(
        self,
        app: ASGIApp,
        outer_app: ASGIApp,
        settings: Settings,
        metrics_sink: MetricsSink,
        preparation: RequestPreparation,
        *,
        summarizer: Summarizer | None,
        review: Review | None,
        transport: httpx.AsyncBaseTransport | None,
        tracing: Tracing | None,
    ) -> None:
        self._app = app
        self._outer_app = outer_app
        self._settings = settings
        self._metrics_sink = metrics_sink
        self._preparation = preparation
        self._guards = _make_guards(settings, review, metrics_sink.metrics)
        self._backoff = GraceBackoff()
        self._summarizers = SummarizerSelection(
            settings.summarizer,
            settings.limits,
            override=summarizer,
            transport=transport,
            tracing=tracing,
        )

    async def aclose(self) -> None:
        await self._summarizers.aclose()

    async def engage(
        self, prepared: PreparedRequest, requested: SummaryStyle | None, endpoints: Endpoints
    ) -> None:
        request, route = prepared.request, prepared.turn_memory.route
        style = requested if shows_summary(route) else None
        summarizer = self._choose_summarizer(request, prepared.profile)
        plan = self._build_plan(prepared, requested, style, summarizer)
        recorder = self._start_recorder(request, style, summarizer)
        exchange = Exchange(plan, recorder, endpoints.receive, endpoints.send)
        try:
            await exchange.run(endpoints.app, request.scope, request.release_body())
        finally:
            self._update_backoff(route, exchange)

    def _choose_summarizer(self, request: ApiRequest, profile: Profile) -> Summarizer:
        app, scope = (
            (self._outer_app, request.client_scope)
            if request.upstream
            else (self._app, request.scope)
        )
        return self._summarizers.for_request(
            app, summary_call_scope(scope), request.model, request.api, profile
        )

    def _build_plan(
        self,
        prepared: PreparedRequest,
        requested: SummaryStyle | None,
        style: SummaryStyle | None,
        summarizer: Summarizer,
    ) -> ExchangePlan:
        request, turn_memory, limits = prepared.request, prepared.turn_memory, self._settings.limits
        route, upstream = turn_memory.route, request.upstream
        grace = self._backoff.grace(route.upstream.name, monotonic(), route.summary.grace)
        free = summarizer.name == EXTRACTIVE
        hide_unread = hides_raw(route) or upstream is not None
        display = build_display(
            route, request.api, style, self._settings.chat, request.usage_mode(route)
        )
        if (
            requested is None and not hide_unread
        ):  # nothing was requested: upstream's answer is unchanged
            display = replace(display, show_raw=True, show_summary=True)
        display = replace(display, seal=self._envelope_sealer(prepared, display))
        reader, writer = self._reader_and_writer(prepared, display)
        return ExchangePlan(
            reader=reader,
            writer=writer,
            summary_plan=build_summary_plan(route, style, limits, grace, free=free),
            hide_unread=hide_unread,
            translate_error=(
                partial(translate_error, upstream=upstream, api=request.api) if upstream else None
            ),
            guard=self._guards[route.upstream.name],
            summarizer=summarizer,
            summary_tracker=turn_memory.track_summaries(
                copied=free or route.summary.on_failure == "extract"
            ),
            remember=self._remember_turn(prepared, display, writer),
            event_limit=int(limits.event),
        )

    def _envelope_sealer(self, prepared: PreparedRequest, display: Display) -> SealEnvelope | None:
        """Return the function that makes envelopes, or None.

        Envelopes are made if the client asks for them; on an API where it cannot ask, if the
        settings allow them and something that it could return is altered.
        """
        request, turn_memory = prepared.request, prepared.turn_memory
        wanted = request.wants_opaque_state
        if wanted is None:
            altered = not display.show_raw or turn_memory.translated
            wanted = altered and self._settings.chat.envelope != "none"
        return (
            turn_memory.sealer.seal
            if wanted and turn_memory.can_seal and turn_memory.sealer is not None
            else None
        )

    def _reader_and_writer(
        self, prepared: PreparedRequest, display: Display
    ) -> tuple[Reader, Writer]:
        """Choose the Reader of upstream's API and the Writer of the client's."""
        request, profile, limits = prepared.request, prepared.profile, self._settings.limits
        api, max_chars = request.api, int(limits.reasoning)
        if request.upstream is None or request.echo is None:
            writer = self._with_attribution(prepared, display, api.writer(profile, display))
            return api.reader(profile, display, max_chars), writer
        translating_writer = api.translating_writer(
            profile, display, request.echo, int(limits.event)
        )
        writer = self._with_attribution(prepared, display, translating_writer)
        return request.upstream.translating_reader(profile, display, max_chars), writer

    def _with_attribution(
        self, prepared: PreparedRequest, display: Display, writer: Writer
    ) -> Writer:
        """Wrap the Writer to attribute calls if the settings say so.

        Otherwise, where raw reasoning is hidden, wrap it to remove attributions: upstream may be
        another Abridge, whose calls repeat raw reasoning.
        """
        make_writer = ATTRIBUTING_WRITERS[prepared.request.api.name]
        settings = self._settings
        if settings.attribution.enabled:
            return make_writer(writer, display, int(settings.limits.reasoning))
        return make_writer(writer, display, 0) if hides_raw(prepared.turn_memory.route) else writer

    def _remember_turn(
        self, prepared: PreparedRequest, display: Display, writer: Writer
    ) -> RememberTurn:
        async def remember(reader: Reader, ended: ResponseEnded) -> None:
            if ended.ok:
                await self._preparation.remember(prepared.turn_memory, display, reader, ended)
            if prepared.storage is not None and writer.final_response is not None:
                await self._preparation.store(
                    prepared.storage, writer.final_response, ended, display
                )

        return remember

    def _start_recorder(
        self, request: ApiRequest, style: SummaryStyle | None, summarizer: Summarizer
    ) -> ExchangeRecorder:
        record = Record.get(request.scope)
        record.style, record.summarizer = style or "off", summarizer.name
        record.overhead = monotonic() - request.read_at
        return ExchangeRecorder(
            self._metrics_sink.metrics_for(request.scope), record, request.scope.get(TRACE)
        )

    def _update_backoff(self, route: Route, exchange: Exchange) -> None:
        """Note whether the summarizer met the grace, for later answers of the route."""
        if exchange.missed_deadline:
            self._backoff.note_miss(route.upstream.name, monotonic())
        elif exchange.summarized:
            self._backoff.note_success(route.upstream.name)


def _make_guards(settings: Settings, review: Review | None, metrics: Metrics) -> dict[str, Guard]:
    """Make the guards by upstream: one for all, or one each where every upstream summarizes its own
    answers, since a broken upstream must not open the breaker of another."""

    def make_guard() -> Guard:
        return Guard(settings.summarizer, review=review, metrics=metrics)

    names = [route.upstream.name for route in settings.routes]
    if settings.summarizer.kind == "upstream":
        return {name: make_guard() for name in names}
    return dict.fromkeys(names, make_guard())
