"""The response side: answer a request with everything that is due to its client."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

import httpx
from starlette.types import ASGIApp, Receive, Send

from abridge.answering.counting import Counting, inner
from abridge.answering.preparing import Prepared, Preparing
from abridge.exchange import Exchange, Keep, Terms
from abridge.exchange.account import Account
from abridge.exchange.request import Request
from abridge.exchange.terms import display, hides, plan, shows_summary
from abridge.metrics import Metrics
from abridge.settings import Route, Settings
from abridge.summarize import Summarizer
from abridge.summarize.chosen import Chosen
from abridge.summarize.guard import Guard, Review
from abridge.summarize.patience import Patience
from abridge.telemetry.record import TRACE, Record
from abridge.turn.events import Ended
from abridge.turn.part import Style
from abridge.turn.usage import EXTRACTIVE
from abridge.wire.api import Reader, Writer
from abridge.wire.display import Display
from abridge.wire.envelope import Seal
from abridge.wire.profiles import Profile

if TYPE_CHECKING:
    from abridge.telemetry.tracing.spans import Tracing


@dataclass(slots=True, frozen=True)
class Ends:
    """The application and the client of one request."""

    app: ASGIApp
    receive: Receive
    send: Send


class Engaging:
    """Run engaged requests.

    `outer_app` leads to `app` through Abridge, for a summarizer that speaks its client's API where
    upstream does not.
    """

    def __init__(
        self,
        app: ASGIApp,
        again: ASGIApp,
        settings: Settings,
        counting: Counting,
        preparing: Preparing,
        *,
        summarizer: Summarizer | None,
        review: Review | None,
        transport: httpx.AsyncBaseTransport | None,
        tracing: Tracing | None,
    ) -> None:
        self._app = app
        self._again = again
        self._settings = settings
        self._counting = counting
        self._preparing = preparing
        self._guards = _guards(settings, review, counting.metrics)
        self._patience = Patience()
        self._summarizers = Chosen(
            settings.summarizer,
            settings.limits,
            given=summarizer,
            transport=transport,
            tracing=tracing,
        )

    async def aclose(self) -> None:
        await self._summarizers.aclose()

    async def engage(self, prepared: Prepared, asked: Style | None, ends: Ends) -> None:
        request, route = prepared.request, prepared.visit.route
        style = asked if shows_summary(route) else None
        summarizer = self._summarizer(request, prepared.profile)
        terms = self._terms(prepared, asked, style, summarizer)
        account = self._account(request, style, summarizer)
        exchange = Exchange(terms, account, ends.receive, ends.send)
        try:
            await exchange.run(ends.app, request.scope, request.let_go())
        finally:
            self._learn(route, exchange)

    def _summarizer(self, request: Request, profile: Profile) -> Summarizer:
        app, at = (self._again, request.came) if request.upstream else (self._app, request.scope)
        return self._summarizers.for_request(app, inner(at), request.model, request.api, profile)

    def _terms(
        self,
        prepared: Prepared,
        asked: Style | None,
        style: Style | None,
        summarizer: Summarizer,
    ) -> Terms:
        request, visit, limits = prepared.request, prepared.visit, self._settings.limits
        route, upstream = visit.route, request.upstream
        grace = self._patience.grace(route.upstream.name, monotonic(), route.summary.grace)
        free = summarizer.name == EXTRACTIVE
        opaque = hides(route) or upstream is not None
        shown = display(route, request.api, style, self._settings.chat, request.count(route))
        if asked is None and not opaque:  # nothing was requested: upstream's answer is unchanged
            shown = replace(shown, raw=True, summary=True)
        shown = replace(shown, seal=self._seal(prepared, shown))
        reader, writer = self._ways(prepared, shown)
        return Terms(
            reader=reader,
            writer=writer,
            plan=plan(route, style, limits, grace, free=free),
            opaque=opaque,
            problem=upstream.problem if upstream is not None else None,
            guard=self._guards[route.upstream.name],
            summarizer=summarizer,
            showing=visit.showing(copied=free or route.summary.on_failure == "extract"),
            keep=self._keeping(prepared, shown, writer),
            event_limit=int(limits.event),
        )

    def _seal(self, prepared: Prepared, shown: Display) -> Seal | None:
        """Return the function that makes envelopes, or None.

        Envelopes are made if the client asks for them; on an API where it cannot ask, if the
        settings allow them and something that it could return is altered.
        """
        request, visit = prepared.request, prepared.visit
        asked = request.asks_sealed
        if asked is None:
            altered = not shown.raw or visit.crossed
            asked = altered and self._settings.chat.envelope != "none"
        return visit.sealer.seal if asked and visit.seals and visit.sealer is not None else None

    def _ways(self, prepared: Prepared, shown: Display) -> tuple[Reader, Writer]:
        """Choose the Reader of upstream's API and the Writer of the client's."""
        request, profile, limits = prepared.request, prepared.profile, self._settings.limits
        api, kept = request.api, int(limits.reasoning)
        if request.upstream is None or request.asked is None:
            writer = self._attributing(prepared, shown, api.writer(profile, shown))
            return api.reader(profile, shown, kept), writer
        composer = api.composer(profile, shown, request.asked, int(limits.event))
        writer = self._attributing(prepared, shown, composer)
        return request.upstream.teller(profile, shown, kept), writer

    def _attributing(self, prepared: Prepared, shown: Display, writer: Writer) -> Writer:
        """Wrap the Writer to attribute calls if the settings say so.

        Otherwise, where raw reasoning is hidden, wrap it to remove attributions: upstream may be
        another Abridge, whose calls repeat raw reasoning.
        """
        api, settings = prepared.request.api, self._settings
        if settings.attribution.enabled:
            return api.attributing(writer, shown, int(settings.limits.reasoning))
        return api.attributing(writer, shown, 0) if hides(prepared.visit.route) else writer

    def _keeping(self, prepared: Prepared, shown: Display, writer: Writer) -> Keep:
        async def keep(reader: Reader, ended: Ended) -> None:
            if ended.ok:
                await self._preparing.keep(prepared.visit, shown, reader, ended)
            if prepared.storing is not None and writer.shown is not None:
                await self._preparing.store(prepared.storing, writer.shown, ended, shown)

        return keep

    def _account(self, request: Request, style: Style | None, summarizer: Summarizer) -> Account:
        record = Record.in_(request.scope)
        record.style, record.summarizer = style or "off", summarizer.name
        record.overhead = monotonic() - request.began
        return Account(self._counting.of(request.scope), record, request.scope.get(TRACE))

    def _learn(self, route: Route, exchange: Exchange) -> None:
        """Note whether the summarizer met the grace, for later answers of the route."""
        if exchange.missed:
            self._patience.missed(route.upstream.name, monotonic())
        elif exchange.summarized:
            self._patience.met(route.upstream.name)


def _guards(settings: Settings, review: Review | None, metrics: Metrics) -> dict[str, Guard]:
    """Make the guards by upstream: one for all, or one each where every upstream summarizes its own
    answers, since a broken upstream must not open the breaker of another."""

    def guard() -> Guard:
        return Guard(settings.summarizer, review=review, metrics=metrics)

    names = [route.upstream.name for route in settings.routes]
    if settings.summarizer.kind == "upstream":
        return {name: guard() for name in names}
    return dict.fromkeys(names, guard())
