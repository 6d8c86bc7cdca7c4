"""The spans of a request: its own, those of its calls to upstream, and those of its summarizer
calls.

A span is started when its work starts, because it is the parent of spans within; its attributes are
set at its end, when they are known. An upstream span lasts from the request to the end of the
response, and is kept until its own request ends, with the time at which it ended: the usage of a
response may be known only after its summary.

Names are those of OpenTelemetry's semantic conventions for generative AI and for HTTP; where these
have none, the name in the log line, prefixed with `abridge.`. `gen_ai.usage` is set once, on the
span of the call that used the tokens. The request's own span repeats the counts under Abridge's
names, so that summing a model's cost does not count them twice.

Of a trace context, only `traceparent` and `tracestate` are read from a request and sent with
outgoing ones, in particular no baggage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, time_ns
from typing import TypeAlias, TypeVar
from urllib.parse import urlsplit

import httpx
from opentelemetry import baggage
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace import (
    Span,
    SpanKind,
    StatusCode,
    Tracer,
    TracerProvider,
    format_span_id,
    format_trace_id,
    get_current_span,
    get_tracer,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge import __version__
from abridge.apis.credentials import Header
from abridge.config.settings import ROUTE, Route, Settings
from abridge.config.tables import SummarizerSettings
from abridge.config.upstreams import UpstreamSettings
from abridge.core.usage import EXTRACTIVE, NO_TOKENS, SummarizerUsage, Tokens
from abridge.errors import UpstreamBroken, UpstreamUnavailable
from abridge.http.asgi import drop_headers, get_header, with_header_list
from abridge.observability.logs import record_fields
from abridge.observability.metrics_sink import SUMMARY_CALL
from abridge.observability.record import RECORD, TRACE, Record, bounded_text
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import GOOGLES

Value: TypeAlias = str | bool | int | float

Attributes: TypeAlias = dict[str, Value]

CHAT_OPERATION = "chat"
"""The operation name on every API; the conventions have no other that fits."""

KNOWN_METHODS = frozenset(
    {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"}
)

ATTRIBUTE_NAMES: Mapping[str, str] = {
    "model": "gen_ai.request.model",
    "stream": "gen_ai.request.stream",
    "status": "http.response.status_code",
}

OMITTED_FIELDS = frozenset({"trace_id", "method", "path", "seconds"})
"""Fields of the log line that a span has anyway."""


@dataclass(slots=True, frozen=True)
class ModelServer:
    """An upstream or a summarizer that serves models."""

    provider: str
    address: Attributes

    @classmethod
    def from_settings(cls, settings: UpstreamSettings | SummarizerSettings) -> ModelServer:
        provider = _provider_name(settings)
        if settings.base_url is None:
            return cls(provider, {})
        url = urlsplit(settings.base_url)
        port = url.port or (443 if url.scheme == "https" else 80)
        return cls(provider, {"server.address": url.hostname or "", "server.port": port})

    def call_attributes(self, model: str | None) -> Attributes:
        """Return the attributes of a call that are known before it is made."""
        attributes: Attributes = {
            "gen_ai.operation.name": CHAT_OPERATION,
            "gen_ai.provider.name": self.provider,
        }
        if model:
            attributes["gen_ai.request.model"] = bounded_value(model)
        return attributes | self.address


def _provider_name(settings: UpstreamSettings | SummarizerSettings) -> str:
    profile = PROFILES[settings.profile]
    if profile.learns and settings.api in ("messages", *GOOGLES):  # whose first API it is
        first = GOOGLES[0] if settings.api in GOOGLES else settings.api
        profile = next(row for row in PROFILES.values() if row.apis[0] == first)
    return profile.telemetry_name or profile.name


def span_name(model: str | None) -> str:
    """Return the name of an inference span."""
    return f"{CHAT_OPERATION} {bounded_value(model)}" if model else CHAT_OPERATION


def http_attributes(scope: Scope) -> Iterator[tuple[str, Value]]:
    """Yield method and path, but not the query, which may hold a key."""
    method = scope["method"]
    yield "http.request.method", method if method in KNOWN_METHODS else "_OTHER"
    yield "url.path", bounded_value(scope["path"])


def record_attributes(record: Record) -> Iterator[tuple[str, Value]]:
    """Yield all fields of the log line."""
    if record.api is not None:
        yield "gen_ai.operation.name", CHAT_OPERATION
    for key, value in record_fields(record):
        if isinstance(value, dict):
            for kind, count in value.items():
                yield f"abridge.{key}.{kind}", count
        elif key not in OMITTED_FIELDS:
            yield ATTRIBUTE_NAMES.get(key, f"abridge.{key}"), bounded_value(value)


def response_attributes(record: Record) -> Iterator[tuple[str, Value]]:
    """Yield what upstream reported about its response."""
    yield from token_attributes(record.upstream_tokens)
    if record.response_id:
        yield "gen_ai.response.id", bounded_value(record.response_id)
    if record.response_model:
        yield "gen_ai.response.model", bounded_value(record.response_model)


def summary_attributes(spent: SummarizerUsage) -> Iterator[tuple[str, Value]]:
    """Yield the usage of a summarizer call, if a model was called."""
    if spent.model == EXTRACTIVE:
        return
    yield from token_attributes(spent.tokens or NO_TOKENS)
    if spent.model:
        yield "gen_ai.operation.name", CHAT_OPERATION
        yield "gen_ai.response.model", bounded_value(spent.model)


def token_attributes(tokens: Tokens) -> Iterator[tuple[str, Value]]:
    for name, count in (
        ("input_tokens", tokens.input),
        ("output_tokens", tokens.output),
        ("reasoning.output_tokens", tokens.reasoning),
        ("cache_read.input_tokens", tokens.cached),
        ("cache_creation.input_tokens", tokens.cache_written),
    ):
        if count is not None:
            yield f"gen_ai.usage.{name}", count


V = TypeVar("V", str, bool, int, float)


def bounded_value(value: V) -> V:
    return bounded_text(value) if isinstance(value, str) else value


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


@dataclass(slots=True, frozen=True, eq=False)
class TracedApp:
    """Wraps an application so that each call gets a span.

    The span is the current one within the application, and in the headers it gets. For a summary
    call it is a plain HTTP span: the summarizer span around it names the model.
    """

    app: ASGIApp
    tracer: Tracer
    servers: Mapping[str, ModelServer]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record, trace = scope.get(RECORD), scope.get(TRACE)
        span = self._start_span(scope, record)
        call = UpstreamCall(span, record, send)
        token = attach(set_span_in_context(span))
        try:
            inner_scope = {**scope, "headers": with_trace_headers(scope["headers"])}
            await self.app(inner_scope, receive, call.send)
        except BaseException as error:
            call.note_exception(error)
            raise
        finally:
            detach(token)
            call.ended_at = time_ns()
            if trace is None:
                call.end_span()
            else:
                trace.upstream_calls.append(call)  # until the request ends

    def _start_span(self, scope: Scope, record: Record | None) -> Span:
        route: Route | None = scope.get(ROUTE)
        attributes: Attributes = dict(http_attributes(scope))
        name = scope["method"] if scope["method"] in KNOWN_METHODS else "HTTP"
        if route is not None:
            attributes["abridge.upstream"] = route.upstream.name
            server = self.servers[route.upstream.name]
            if SUMMARY_CALL in scope:
                attributes |= server.address
            elif record is not None and record.api is not None:
                name = span_name(record.model)
                attributes |= server.call_attributes(record.model)
        return self.tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)


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
        self.ended_at = 0
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
        span.end(self.ended_at)

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


class Tracing:
    """Creates spans with `provider` or else the application's global one."""

    def __init__(self, settings: Settings, provider: TracerProvider | None = None) -> None:
        self._tracer = get_tracer("abridge", __version__, provider)
        self._servers = {
            route.upstream.name: ModelServer.from_settings(route.upstream)
            for route in settings.routes
        }
        self._summarizer = settings.summarizer

    @contextmanager
    def trace_request(self, scope: Scope) -> Iterator[Scope]:
        """Trace a request; handle it with the scope that this yields."""
        record, current = Record.get(scope), get_current()
        has_parent = get_current_span(current).get_span_context().is_valid
        context = current if has_parent else parent_context(scope["headers"], current)
        span = self._tracer.start_span(
            record.method if record.method in KNOWN_METHODS else "HTTP",
            context,
            SpanKind.INTERNAL if has_parent else SpanKind.SERVER,
            {**dict(http_attributes(scope)), "url.scheme": scope.get("scheme", "http")},
        )
        _note_trace_ids(record, span)
        context = set_span_in_context(span, context)
        trace = RequestTrace(self, span, context)
        token = attach(context)
        try:
            yield {**scope, TRACE: trace}
        finally:
            detach(token)
            trace.finish(record)

    def wrap_app(self, app: ASGIApp) -> ASGIApp:
        """Wrap the application so that each call gets a span."""
        return TracedApp(app, self._tracer, self._servers)

    def wrap_transport(self, transport: httpx.AsyncBaseTransport) -> httpx.AsyncBaseTransport:
        """Wrap the transport to a summarizer model so that it sends the trace context."""
        return TracingTransport(transport)

    def start_call(self, record: Record, part: int, context: Context) -> Span:
        """Start the span of a summarizer call, in a request's context."""
        name = record.summarizer or ""
        calls_model = name == self._summarizer.kind == "model"
        kind = SpanKind.CLIENT if calls_model else SpanKind.INTERNAL
        attributes: Attributes = {
            "abridge.part": part,
            "abridge.style": record.style,
            "abridge.summarizer": bounded_value(name),
            **self._model_attributes(record, name),
        }
        return self._tracer.start_span(
            f"summarize {bounded_value(name)}", context, kind, attributes
        )

    def _model_attributes(self, record: Record, name: str) -> Attributes:
        """Return the attributes of the model that is called, if any."""
        if name != self._summarizer.kind:
            return {}
        if name == "model":
            return ModelServer.from_settings(self._summarizer).call_attributes(
                self._summarizer.model
            )
        if name == "upstream" and record.upstream is not None:
            return self._servers[record.upstream].call_attributes(record.model)
        return {}


class RequestTrace:
    """The spans of one request. `context` holds `span`, their parent."""

    def __init__(self, tracing: Tracing, span: Span, context: Context) -> None:
        self._tracing = tracing
        self._span = span
        self._context = context
        self._calls: dict[int, Span] = {}
        self.upstream_calls: list[UpstreamCall] = []  # that have ended

    @contextmanager
    def trace_call(self, record: Record, part: int) -> Iterator[None]:
        """Trace a summarizer call. It may outlast its part, until its cancellation completes."""
        span = self._calls[part] = self._tracing.start_call(record, part, self._context)
        token = attach(set_span_in_context(span, baggage.clear(self._context)))
        try:
            yield
        finally:
            detach(token)
            span.end()

    def note_outcome(self, part: int, outcome: str, usage: SummarizerUsage) -> None:
        """Note the outcome of a call; one that was cancelled before it started has no span."""
        span = self._calls.pop(part, None)
        if span is not None and span.is_recording():
            span.set_attributes({"abridge.outcome": outcome, **dict(summary_attributes(usage))})
            if outcome not in ("ok", "cancelled", "withheld"):
                mark_failed(span, outcome)

    def finish(self, record: Record) -> None:
        """End all spans at the end of the request."""
        status = record.status
        for call in self.upstream_calls:
            last = call is self.upstream_calls[-1]
            call.end_span(response_attributes(record) if last else ())
            status = status or call.status
        if self._span.is_recording():
            self._set_attributes(record, status or 0)
        self._span.end()

    def _set_attributes(self, record: Record, status: int) -> None:
        span = self._span
        if record.api is not None:
            span.update_name(span_name(record.model))
        span.set_attributes(dict(record_attributes(record)))
        if status:
            span.set_attribute("http.response.status_code", status)
        if record.outcome == "failed" or status >= 500:
            mark_failed(span, record.cause or (str(status) if status >= 500 else "_OTHER"))


def _note_trace_ids(record: Record, span: Span) -> None:
    """Store the ids of the request's trace in its record."""
    ids = span.get_span_context()
    if ids.is_valid:
        record.trace_id = format_trace_id(ids.trace_id)
        if ids.trace_flags.sampled:
            record.exemplar = {"trace_id": record.trace_id, "span_id": format_span_id(ids.span_id)}
