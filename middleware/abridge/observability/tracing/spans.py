"""The span of a request and those of its summarizer calls.

A span is started when its work starts, because it is the parent of spans within; its attributes are
set at its end, when they are known. Upstream spans are therefore kept until their request ends,
with the time at which they ended: the usage of a response may be known only after its summary.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from opentelemetry import baggage
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace import (
    Span,
    SpanKind,
    TracerProvider,
    format_span_id,
    format_trace_id,
    get_current_span,
    get_tracer,
    set_span_in_context,
)
from starlette.types import ASGIApp, Scope

from abridge import __version__
from abridge.config.settings import Settings
from abridge.core.usage import SummarizerUsage
from abridge.observability.record import TRACE, Record
from abridge.observability.tracing.attributes import (
    KNOWN_METHODS,
    Attributes,
    ModelServer,
    bounded_value,
    http_attributes,
    record_attributes,
    response_attributes,
    span_name,
    summary_attributes,
)
from abridge.observability.tracing.upstream import (
    TracedApp,
    TracingTransport,
    UpstreamCall,
    mark_failed,
    parent_context,
)


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
        self._upstream_calls: list[UpstreamCall] = []

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

    def add_upstream_call(self, call: UpstreamCall) -> None:
        """Keep an upstream call that has ended until the request ends."""
        self._upstream_calls.append(call)

    def finish(self, record: Record) -> None:
        """End all spans at the end of the request."""
        status = record.status
        for call in self._upstream_calls:
            last = call is self._upstream_calls[-1]
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
