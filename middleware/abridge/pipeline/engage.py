"""Engaged requests: run the application in an exchange, with everything that is due to its
client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Send

from abridge.config.settings import Route, Settings
from abridge.core.styles import SummaryStyle
from abridge.lasting import Lasting
from abridge.memory.registry import MemoryRegistry
from abridge.observability.metrics_sink import MetricsSink, summary_call_scope
from abridge.observability.record import TRACE, Record
from abridge.observability.recorder import ExchangeRecorder
from abridge.pipeline.answer_memory import AnswerMemory
from abridge.pipeline.body import Room
from abridge.pipeline.exchange import Exchange
from abridge.pipeline.exchange_plan import ExchangePlan, ExchangePlanner
from abridge.pipeline.prepare import PreparedRequest
from abridge.pipeline.renaming import RenamingApp
from abridge.summarizers.guard import Bulkhead, GraceBackoff, Guard
from abridge.summarizers.review import select_reviewer
from abridge.summarizers.selection import Overrides, SummarizerSelection
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
    """Runs engaged requests.

    `outer_app` leads to `app` through Abridge, for a summarizer that speaks its client's API where
    upstream does not.
    """

    def __init__(
        self,
        app: ASGIApp,
        outer_app: ASGIApp,
        settings: Settings,
        memory: MemoryRegistry,
        metrics_sink: MetricsSink,
        *,
        overrides: Overrides,
        tracing: Tracing | None,
        lasting: Lasting,
    ) -> None:
        self._app = app
        self._outer_app = outer_app
        self._metrics_sink = metrics_sink
        self._event_limit = int(settings.limits.event)
        self.answer_memory = AnswerMemory(settings, memory, metrics_sink, lasting)
        self._planner = ExchangePlanner(settings, self.answer_memory)
        self._reviewer = select_reviewer(settings, overrides.review, overrides.transport, tracing)
        self.summarizers = SummarizerSelection(
            settings.summarizer, settings.limits, overrides, tracing
        )
        kind = settings.summarizer.model_dump_json()
        self._backoff = lasting.get(("grace", kind), GraceBackoff)

        def make_guard(upstream: str) -> Guard:
            make = partial(Bulkhead, settings.summarizer)
            bulkhead = lasting.get(("summarizer", kind, upstream), make)
            return Guard(
                settings.summarizer,
                reviewer=self._reviewer,
                metrics=metrics_sink.metrics,
                bulkhead=bulkhead,
            )

        self._guards = _make_guards(settings, make_guard)

    async def aclose(self) -> None:
        await self.summarizers.aclose()
        if self._reviewer is not None:
            await self._reviewer.aclose()

    def take_effect(self) -> None:
        for guard in set(self._guards.values()):
            guard.take_effect()

    def retire(self) -> None:
        for guard in set(self._guards.values()):
            guard.retire()

    async def engage(
        self, prepared: PreparedRequest, requested: SummaryStyle | None, endpoints: Endpoints
    ) -> None:
        """Answer a request; `requested` is the style of summary that is due."""
        route = prepared.request.route
        upstream, summary = route.upstream.name, route.summary
        plan = self._planner.plan(
            prepared,
            requested,
            self._choose_summarizer(prepared),
            self._guards[upstream],
            summary.grace if self._backoff[upstream].admits else 0.0,
        )
        exchange = Exchange(
            plan, self._start_recorder(prepared, plan), endpoints.receive, endpoints.send
        )
        try:
            await exchange.run(endpoints.app, prepared.scope, prepared.body)
        finally:
            if not plan.summary_plan.in_turn:
                self._update_backoff(route, exchange)

    def _choose_summarizer(self, prepared: PreparedRequest) -> Summarizer:
        request = prepared.request
        app, scope, model = self._app, prepared.scope, prepared.model
        if prepared.translated:
            app, scope, model = self._outer_app, request.scope, request.model
        elif prepared.renamed:
            app = RenamingApp(
                app, prepared.renamed, self._event_limit, Room(request.buffered.reserve)
            )
        return self.summarizers.for_request(
            app, summary_call_scope(scope), model, request.api, prepared.profile
        )

    def _start_recorder(self, prepared: PreparedRequest, plan: ExchangePlan) -> ExchangeRecorder:
        scope = prepared.scope
        record = Record.get(scope)
        record.style, record.summarizer = plan.summary_plan.style or "off", plan.summarizer.name
        record.overhead = monotonic() - prepared.request.read_at
        return ExchangeRecorder(self._metrics_sink.metrics_for(scope), record, scope.get(TRACE))

    def _update_backoff(self, route: Route, exchange: Exchange) -> None:
        """Note whether the summarizer met the grace, for later answers of the route."""
        if exchange.missed_deadline or exchange.summarized:
            self._backoff.note(route.upstream.name, missed=exchange.missed_deadline)


def _make_guards(settings: Settings, make_guard: Callable[[str], Guard]) -> dict[str, Guard]:
    """Make the guards by upstream: one for all, or one each where every upstream summarizes its own
    answers, since a broken upstream must not open the breaker of another."""
    upstreams = [route.upstream for route in settings.routes]
    if settings.summarizer.kind == "upstream":
        return {upstream.name: make_guard(upstream.identity) for upstream in upstreams}
    return dict.fromkeys([upstream.name for upstream in upstreams], make_guard(""))
