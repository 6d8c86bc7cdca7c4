"""The span of an upstream call, and the trace context that is sent with it.

The span lasts from the request to the end of the response. Of a context, only `traceparent` and
`tracestate` are read from a request and sent with outgoing ones, in particular no baggage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from time import monotonic, time_ns

import httpx
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.apis.credentials import Header
from abridge.config.settings import ROUTE, Route
from abridge.errors import UpstreamBroken, UpstreamUnavailable
from abridge.http.asgi import drop_headers, get_header, with_header_list
from abridge.observability.metrics_sink import SUMMARY_CALL
from abridge.observability.record import RECORD, TRACE, Record
from abridge.observability.tracing.attributes import (
    KNOWN_METHODS,
    Attributes,
    ModelServer,
    Value,
    http_attributes,
    span_name,
)

TRACE_HEADERS = frozenset({b"traceparent", b"tracestate"})

_propagator = TraceContextTextMapPropagator()


def parent_context(headers: Iterable[Header], current: Context) -> Context:
    """Return the trace context of the caller."""
    carrier: dict[str, list[str]] = {}
    for name, value in headers:
        if name in TRACE_HEADERS:
            carrier.setdefault(name.decode(), []).append(value.decode("latin-1"))
    return _propagator.extract(carrier, current) if carrier else current


def with_trace_headers(headers: Iterable[Header]) -> list[Header]:
    """Replace the trace headers with those of the current span, if there is one."""
    trace_headers = _current_trace_headers()
    others = drop_headers(headers, TRACE_HEADERS if trace_headers else ())
    return [*others, *((name.encode(), value.encode()) for name, value in trace_headers.items())]


def _current_trace_headers() -> dict[str, str]:
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier


class TracingTransport(httpx.AsyncBaseTransport):
    """A transport that sends the trace context with each request."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.headers.update(_current_trace_headers())
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        await self._transport.aclose()


class TracedApp:
    """Wraps an application so that each call gets a span.

    The span is the current one within the application, and in the headers it gets. For a summary
    call it is a plain HTTP span: the summarizer span around it names the model.
    """

    def __init__(self, app: ASGIApp, tracer: Tracer, servers: Mapping[str, ModelServer]) -> None:
        self._app = app
        self._tracer = tracer
        self._servers = servers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record, trace = scope.get(RECORD), scope.get(TRACE)
        span = self._start_span(scope, record)
        call = UpstreamCall(span, record, send)
        token = attach(set_span_in_context(span))
        try:
            inner_scope = {**scope, "headers": with_trace_headers(scope["headers"])}
            await self._app(inner_scope, receive, call.send)
        except BaseException as error:
            call.note_exception(error)
            raise
        finally:
            detach(token)
            call.note_end()
            if trace is None:
                call.end_span()
            else:
                trace.add_upstream_call(call)

    def _start_span(self, scope: Scope, record: Record | None) -> Span:
        route: Route | None = scope.get(ROUTE)
        attributes: Attributes = dict(http_attributes(scope))
        name = scope["method"] if scope["method"] in KNOWN_METHODS else "HTTP"
        if route is not None:
            attributes["abridge.upstream"] = route.upstream.name
            server = self._servers[route.upstream.name]
            if SUMMARY_CALL in scope:
                attributes |= server.address
            elif record is not None and record.api is not None:
                name = span_name(record.model)
                attributes |= server.call_attributes(record.model)
        return self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)


class UpstreamCall:
    """Observes a response on its way to the client.

    `status` is upstream's own; None if it did not answer and the status was chosen here.
    """

    def __init__(self, span: Span, record: Record | None, send: Send) -> None:
        self._span = span
        self._record = record
        self._send = send
        self._started_at = monotonic()
        self._is_stream = False
        self._first_chunk_seconds: float | None = None
        self._client_left = False
        self._error: str | None = None
        self._ended_at = 0
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = with_header_list(message)
            self._note_start(message)
        elif self._is_stream and self._first_chunk_seconds is None and message.get("body"):
            self._first_chunk_seconds = monotonic() - self._started_at
        try:
            await self._send(message)
        except OSError:
            self._client_left = True
            raise

    def note_exception(self, error: BaseException) -> None:
        """Note an exception of the application, unless the client has left."""
        if not self._client_left:
            self._error = _error_type(error)

    def note_end(self) -> None:
        self._ended_at = time_ns()

    def end_span(self, attributes: Iterable[tuple[str, Value]] = ()) -> None:
        """Set the attributes known by now and end the span at the noted time."""
        span = self._span
        if span.is_recording():
            span.set_attributes(dict(attributes))
            if self.status is not None:
                span.set_attribute("http.response.status_code", self.status)
            if self._first_chunk_seconds is not None:
                span.set_attribute("gen_ai.response.time_to_first_chunk", self._first_chunk_seconds)
            if (error := self._error or self._response_error()) is not None:
                mark_failed(span, error)
        span.end(self._ended_at)

    def _note_start(self, start: Message) -> None:
        if self._record is None or self._record.cause is None:
            self.status = start["status"]
        content_type = get_header(start["headers"], b"content-type")
        self._is_stream = content_type.startswith(b"text/event-stream")

    def _response_error(self) -> str | None:
        """Return the error type of a failed response: its status or the cause on the record."""
        if self.status is not None:
            return str(self.status) if self.status >= 400 else None
        return self._record.cause if self._record is not None else None


def mark_failed(span: Span, error_type: str) -> None:
    """Mark a span as failed, without any message, which might hold private data."""
    span.set_status(StatusCode.ERROR)
    span.set_attribute("error.type", error_type)


def _error_type(error: BaseException) -> str:
    if isinstance(error, UpstreamBroken):
        return error.code
    if isinstance(error, UpstreamUnavailable):
        return error.cause
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return type(error).__qualname__
