"""The span of an upstream call, from the request to the end of the response."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from time import monotonic, time_ns

from opentelemetry.context import attach, detach
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.answering.counting import INNER
from abridge.errors import UpstreamBroken
from abridge.exchange.body import header
from abridge.settings import ROUTE, Route
from abridge.telemetry.record import RECORD, TRACE, Record
from abridge.telemetry.tracing.attributes import (
    METHODS,
    Attributes,
    Place,
    Value,
    named,
    of_way,
)
from abridge.telemetry.tracing.w3c import led_on


class Upstream:
    """Wraps an application so that each call gets a span.

    The span is the current one within the application, and in the headers it gets. For a summary
    call it is a plain HTTP span: the summarizer span around it names the model.
    """

    def __init__(self, app: ASGIApp, tracer: Tracer, places: Mapping[str, Place]) -> None:
        self._app = app
        self._tracer = tracer
        self._places = places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record, trace = scope.get(RECORD), scope.get(TRACE)
        span = self._begin(scope, record)
        asked = Asked(span, record, send)
        token = attach(set_span_in_context(span))
        try:
            own = {**scope, "headers": led_on(scope["headers"])}
            await self._app(own, receive, asked.send)
        except BaseException as error:
            asked.broke(error)
            raise
        finally:
            detach(token)
            asked.over()
            if trace is None:
                asked.end()
            else:
                trace.asked(asked)

    def _begin(self, scope: Scope, record: Record | None) -> Span:
        route: Route | None = scope.get(ROUTE)
        said: Attributes = dict(of_way(scope))
        name = scope["method"] if scope["method"] in METHODS else "HTTP"
        if route is not None:
            said["abridge.upstream"] = route.upstream.name
            place = self._places[route.upstream.name]
            if INNER in scope:
                said |= place.address
            elif record is not None and record.api is not None:
                name = named(record.model)
                said |= place.asked(record.model)
        return self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=said)


class Asked:
    """Observes a response on its way to the client.

    `status` is upstream's own; None if it did not answer and the status was chosen here.
    """

    def __init__(self, span: Span, record: Record | None, send: Send) -> None:
        self._span = span
        self._record = record
        self._send = send
        self._began = monotonic()
        self._streams = False
        self._first: float | None = None
        self._left = False
        self._error: str | None = None
        self._ended = 0
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begin(message)
        elif self._streams and self._first is None and message.get("body"):
            self._first = monotonic() - self._began
        try:
            await self._send(message)
        except OSError:
            self._left = True
            raise

    def broke(self, error: BaseException) -> None:
        """Note an exception of the application, unless the client has left."""
        if not self._left:
            self._error = _kind(error)

    def over(self) -> None:
        self._ended = time_ns()

    def end(self, more: Iterable[tuple[str, Value]] = ()) -> None:
        """Set the attributes known by now and end the span at the noted time."""
        span = self._span
        if span.is_recording():
            span.set_attributes(dict(more))
            if self.status is not None:
                span.set_attribute("http.response.status_code", self.status)
            if self._first is not None:
                span.set_attribute("gen_ai.response.time_to_first_chunk", self._first)
            if (error := self._error or self._refusal()) is not None:
                fail(span, error)
        span.end(self._ended)

    def _begin(self, start: Message) -> None:
        if self._record is None or self._record.cause is None:
            self.status = start["status"]
        kind = header(start.get("headers", ()), b"content-type")
        self._streams = kind.startswith(b"text/event-stream")

    def _refusal(self) -> str | None:
        """Return the error type of a failed response: its status or the cause on the record."""
        if self.status is not None:
            return str(self.status) if self.status >= 400 else None
        return self._record.cause if self._record is not None else None


def fail(span: Span, kind: str) -> None:
    """Mark a span as failed, without any message, which might hold private data."""
    span.set_status(StatusCode.ERROR)
    span.set_attribute("error.type", kind)


def _kind(error: BaseException) -> str:
    if isinstance(error, UpstreamBroken):
        return error.code
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return type(error).__qualname__
