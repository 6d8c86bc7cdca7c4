"""Read `traceparent` and `tracestate` from a request and send them with outgoing ones.

Nothing else of a context is sent on, in particular no baggage.
"""

from __future__ import annotations

from collections.abc import Iterable

import httpx
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from abridge.exchange.body import without
from abridge.wire.credential import Header

NAMES = frozenset({b"traceparent", b"tracestate"})

_w3c = TraceContextTextMapPropagator()


def parent(headers: Iterable[Header], here: Context) -> Context:
    """Return the trace context of the caller."""
    said: dict[str, list[str]] = {}
    for name, value in headers:
        if name in NAMES:
            said.setdefault(name.decode(), []).append(value.decode("latin-1"))
    return _w3c.extract(said, here) if said else here


def led_on(headers: Iterable[Header]) -> list[Header]:
    """Replace the trace headers with those of the current span, if there is one."""
    ours = _current()
    kept = without(headers, NAMES if ours else ())
    return [*kept, *((name.encode(), value.encode()) for name, value in ours.items())]


def _current() -> dict[str, str]:
    said: dict[str, str] = {}
    _w3c.inject(said)
    return said


class Leading(httpx.AsyncBaseTransport):
    """A transport that sends the trace context with each request."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.headers.update(_current())
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        await self._transport.aclose()
