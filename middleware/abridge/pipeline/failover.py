"""Move a request on to the fallback of its upstream.

A request moves on once at most, before anything was sent to the client, if upstream cannot be
reached or is too busy. It is prepared anew, since the fallback may have another API, profile and
names. One that refers to what upstream stores stays with it: nobody else has that.
"""

from __future__ import annotations

import logging

from starlette.types import Message, Scope, Send

from abridge.apis.object_references import EVERYTHING, find_object_references, may_name_objects
from abridge.config.settings import ROUTE, Route, Settings
from abridge.errors import RequestError, UpstreamUnavailable
from abridge.http.asgi import get_header
from abridge.observability.metrics_sink import MetricsSink
from abridge.pipeline.request import ApiRequest
from abridge.stored_responses.references import PREVIOUS_RESPONSE_ID

BUSY_OR_BROKEN = frozenset({429, 502, 503, 504, 529})
"""Statuses after which a client may try again."""

_log = logging.getLogger(__name__)


class Failover:
    """The fallbacks of upstreams, and the count of their use."""

    def __init__(self, settings: Settings, metrics_sink: MetricsSink) -> None:
        self._fallbacks = {
            route.upstream.name: settings.fallback_of(route) for route in settings.routes
        }
        self._metrics_sink = metrics_sink

    async def fallback_for(self, request: ApiRequest) -> Route | None:
        """Return the route on which a request may move on, if any."""
        fallback = self._fallbacks[request.route.upstream.name]
        if fallback is None or await request.work.run(_stays, request):
            return None
        return fallback

    def note(self, scope: Scope, fallback: Route, failure: UpstreamUnavailable) -> None:
        """Count and log a request that moves on."""
        failed: Route = scope[ROUTE]
        names = failed.upstream.name, fallback.upstream.name
        metrics = self._metrics_sink.metrics_for(scope)
        metrics.upstream_failovers.labels(*names, failure.cause).inc()
        _log.warning(
            "upstream %s: %s; the request moves on to %s", names[0], failure.cause, names[1]
        )

    def note_refused_state(self, scope: Scope) -> None:
        """Count and log a request that is sent again without reasoning state."""
        route: Route = scope[ROUTE]
        self._metrics_sink.metrics_for(scope).state_refused.labels(route.upstream.name).inc()
        _log.warning(
            "upstream %s: refused reasoning state; retrying without it",
            route.upstream.name,
        )


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
        kind="server_error",
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
