"""`traceparent` and `tracestate`: read off a request, and written on those to which it leads.

Nothing else is passed on of what a context holds, its baggage least of all.
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
    """The context in which who asked was."""
    said: dict[str, list[str]] = {}
    for name, value in headers:
        if name in NAMES:
            said.setdefault(name.decode(), []).append(value.decode("latin-1"))
    return _w3c.extract(said, here) if said else here


def led_on(headers: Iterable[Header]) -> list[Header]:
    """The headers with the current span in them, if there is one, in place of another."""
    ours = _current()
    kept = without(headers, NAMES if ours else ())
    return [*kept, *((name.encode(), value.encode()) for name, value in ours.items())]


def _current() -> dict[str, str]:
    said: dict[str, str] = {}
    _w3c.inject(said)
    return said


class Leading(httpx.AsyncBaseTransport):
    """A transport whose requests tell of the current span."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.headers.update(_current())
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        await self._transport.aclose()
