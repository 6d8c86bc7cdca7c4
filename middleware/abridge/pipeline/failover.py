"""Move a request on to the fallbacks of its upstream.

A request moves on before anything was sent to the client, if upstream cannot be reached or is too
busy; at once, if upstream is known to be down. It is prepared anew, since a fallback may have
another API, profile and names. One that refers to what an upstream stores goes to that one: nobody
else has that.
"""

from __future__ import annotations

import logging
from itertools import groupby
from random import Random

from starlette.types import Message, Scope, Send

from abridge.apis.json import string
from abridge.apis.object_references import EVERYTHING, find_object_references, may_name_objects
from abridge.config.settings import ROUTE, Route, Settings
from abridge.errors import RequestError
from abridge.http.asgi import get_header
from abridge.memory.registry import MemoryRegistry
from abridge.observability.metrics_sink import MetricsSink
from abridge.pipeline.affinity import find_maker, find_owner
from abridge.pipeline.health import Attempt, UpstreamHealth
from abridge.pipeline.request import ApiRequest
from abridge.stored_responses.references import PREVIOUS_RESPONSE_ID

BUSY_OR_BROKEN = frozenset({429, 502, 503, 504, 529})
"""Statuses after which a client may try again."""

DOWN = "down"
"""Why a request moves on from an upstream that it did not try."""

_log = logging.getLogger(__name__)


class Failover:
    """The fallbacks of upstreams, and the count of their use. `random` draws among weights."""

    def __init__(
        self,
        settings: Settings,
        health: UpstreamHealth,
        memory: MemoryRegistry,
        metrics_sink: MetricsSink,
        random: Random | None = None,
    ) -> None:
        self._fallbacks = {
            route.upstream.name: settings.fallbacks_of(route) for route in settings.routes
        }
        self._health = health
        self._memory = memory
        self._metrics_sink = metrics_sink
        self._random = random or Random()  # noqa: S311 -- no secret

    async def attempts_for(self, request: ApiRequest) -> list[Attempt]:
        """Return the attempts to make at upstreams, in order, until one can answer. Those that are
        down are left out, but the request's own is then the last resort."""
        routes = [request.route]
        if not self._fallbacks[request.route.upstream.name]:
            pass
        elif await request.work.run(_stays, request):
            routes = [await self._find_home(request)]
        else:
            candidates = await self._draw_for(request)
            routes = [one for one in candidates if self._health.breaker(one.upstream).admits]
            if request.route not in routes:
                if routes:
                    self.note(request.scope, request.route, routes[0], DOWN)
                routes.append(request.route)
        own, last = request.route, routes[-1]
        return [
            Attempt(self._health, each, moves_on=each is not last, stands_in=each is not own)
            for each in routes
        ]

    async def _draw_for(self, request: ApiRequest) -> list[Route]:
        """Return the upstreams to try, in order: first the one that made state in the request, of
        those with the profile of the request's own."""
        own = request.route
        routes = [own, *self.draw(own.upstream.name)]
        alike = [each for each in routes if each.upstream.profile == own.upstream.profile]
        maker = await find_maker(request, alike, self._memory) if len(alike) > 1 else None
        return routes if maker is None else [maker, *(each for each in routes if each is not maker)]

    def draw(self, name: str) -> list[Route]:
        """Return the fallbacks of an upstream in the order to try: neighbours with weights by
        chance, so that each of them is the first as often as its weight says."""
        drawn: list[Route] = []
        for _, group in groupby(self._fallbacks[name], key=lambda each: each[1] is None):
            drawn += (route for route, _ in sorted(group, key=self._rank))
        return drawn

    def note(self, scope: Scope, failed: Route, fallback: Route, cause: str) -> None:
        """Count and log a request that moves on."""
        names = failed.upstream.name, fallback.upstream.name
        metrics = self._metrics_sink.metrics_for(scope)
        metrics.upstream_failovers.labels(*names, cause).inc()
        if cause != DOWN:
            _log.warning("upstream %s: %s; the request moves on to %s", names[0], cause, names[1])

    def note_refused_state(self, scope: Scope) -> None:
        """Count and log a request that is sent again without reasoning state."""
        name = scope[ROUTE].upstream.name
        self._metrics_sink.metrics_for(scope).state_refused.labels(name).inc()
        _log.warning("upstream %s: refused reasoning state; retrying without it", name)

    async def _find_home(self, request: ApiRequest) -> Route:
        """Return the route of the upstream that made the response which a request continues, if
        that is known and one of its fallbacks; else the request's own."""
        own = request.route
        candidates = (own, *(route for route, _ in self._fallbacks[own.upstream.name]))
        names = list(filter(None, [string(request.body.get(PREVIOUS_RESPONSE_ID))]))
        return await find_owner(names, request, candidates, self._memory) or own

    def _rank(self, fallback: tuple[Route, float | None]) -> float:
        """Draw when a fallback would come first if it came so often; 0 without a weight."""
        _, weight = fallback
        return 0.0 if weight is None else self._random.expovariate(weight)


def _stays(request: ApiRequest) -> bool:
    """Return whether a request concerns what upstream alone stores."""
    if request.background or request.body.get(PREVIOUS_RESPONSE_ID):
        return True
    return may_name_objects(request.decoded) and any(
        reference.path != EVERYTHING for reference in find_object_references(request.body)
    )


def cannot_move_on(refusal: RequestError) -> RequestError:
    """Return the error for a request that upstream cannot answer now, and that its fallback does
    not take: the client may try again as it is."""
    return RequestError(
        f"The upstream cannot answer now, and its fallback cannot handle this request: {refusal}",
        status=503,
        param=refusal.param,
        code="upstream_unavailable",
    )


def with_retry_after(value: bytes, send: Send) -> Send:
    """Return a `send` that adds an upstream's `retry-after` to an error that has none."""

    async def send_with_retry_after(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] in BUSY_OR_BROKEN:
            headers = list(message.get("headers") or ())
            if not get_header(headers, b"retry-after"):
                message = {**message, "headers": [*headers, (b"retry-after", value)]}
        await send(message)

    return send_with_retry_after if value else send
