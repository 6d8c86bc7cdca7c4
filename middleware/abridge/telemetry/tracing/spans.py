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
from abridge.settings import Settings
from abridge.summarize import Spent
from abridge.telemetry.record import TRACE, Record
from abridge.telemetry.tracing.attributes import (
    METHODS,
    Attributes,
    Place,
    bounded,
    named,
    of_answer,
    of_request,
    of_summary,
    of_way,
)
from abridge.telemetry.tracing.upstream import Asked, Upstream, fail
from abridge.telemetry.tracing.w3c import Leading, parent


class Tracing:
    """Creates spans with `provider` or else the application's global one."""

    def __init__(self, settings: Settings, provider: TracerProvider | None = None) -> None:
        self._tracer = get_tracer("abridge", __version__, provider)
        self._places = {route.upstream.name: Place.of(route.upstream) for route in settings.routes}
        self._summarizer = settings.summarizer

    @contextmanager
    def request(self, scope: Scope) -> Iterator[Scope]:
        """Trace a request; handle it with the scope that this yields."""
        record, here = Record.in_(scope), get_current()
        inside = get_current_span(here).get_span_context().is_valid
        context = here if inside else parent(scope["headers"], here)
        span = self._tracer.start_span(
            record.method if record.method in METHODS else "HTTP",
            context,
            SpanKind.INTERNAL if inside else SpanKind.SERVER,
            {**dict(of_way(scope)), "url.scheme": scope.get("scheme", "http")},
        )
        _note(record, span)
        context = set_span_in_context(span, context)
        trace = Trace(self, span, context)
        token = attach(context)
        try:
            yield {**scope, TRACE: trace}
        finally:
            detach(token)
            trace.finish(record)

    def upstream(self, app: ASGIApp) -> ASGIApp:
        """Wrap the application so that each call gets a span."""
        return Upstream(app, self._tracer, self._places)

    def leading(self, transport: httpx.AsyncBaseTransport) -> httpx.AsyncBaseTransport:
        """Wrap the transport to a summarizer model so that it sends the trace context."""
        return Leading(transport)

    def call(self, record: Record, part: int, context: Context) -> Span:
        """Start the span of a summarizer call, in a request's context."""
        name = record.summarizer or ""
        asks = name == self._summarizer.kind == "model"
        kind = SpanKind.CLIENT if asks else SpanKind.INTERNAL
        said: Attributes = {
            "abridge.part": part,
            "abridge.style": record.style,
            "abridge.summarizer": bounded(name),
            **self._asked(record, name),
        }
        return self._tracer.start_span(f"summarize {bounded(name)}", context, kind, said)

    def _asked(self, record: Record, name: str) -> Attributes:
        """Return the attributes of the model that is called, if any."""
        if name != self._summarizer.kind:
            return {}
        if name == "model":
            return Place.of(self._summarizer).asked(self._summarizer.model)
        if name == "upstream" and record.upstream is not None:
            return self._places[record.upstream].asked(record.model)
        return {}


class Trace:
    """The spans of one request. `context` holds `span`, their parent."""

    def __init__(self, tracing: Tracing, span: Span, context: Context) -> None:
        self._tracing = tracing
        self._span = span
        self._context = context
        self._calls: dict[int, Span] = {}
        self._asked: list[Asked] = []

    @contextmanager
    def call(self, record: Record, part: int) -> Iterator[None]:
        """Trace a summarizer call. It may outlast its part, until its cancellation completes."""
        span = self._calls[part] = self._tracing.call(record, part, self._context)
        token = attach(set_span_in_context(span, baggage.clear(self._context)))
        try:
            yield
        finally:
            detach(token)
            span.end()

    def called(self, part: int, outcome: str, spent: Spent) -> None:
        """Note the outcome of a call; one that was cancelled before it started has no span."""
        span = self._calls.pop(part, None)
        if span is not None and span.is_recording():
            span.set_attributes({"abridge.outcome": outcome, **dict(of_summary(spent))})
            if outcome not in ("ok", "cancelled"):
                fail(span, outcome)

    def asked(self, asked: Asked) -> None:
        """Keep an upstream call that has ended until the request ends."""
        self._asked.append(asked)

    def finish(self, record: Record) -> None:
        """End all spans at the end of the request."""
        status = record.status
        for asked in self._asked:
            last = asked is self._asked[-1]
            asked.end(of_answer(record) if last else ())
            status = status or asked.status
        if self._span.is_recording():
            self._tell(record, status or 0)
        self._span.end()

    def _tell(self, record: Record, status: int) -> None:
        span = self._span
        if record.api is not None:
            span.update_name(named(record.model))
        span.set_attributes(dict(of_request(record)))
        if status:
            span.set_attribute("http.response.status_code", status)
        if record.outcome == "failed" or status >= 500:
            fail(span, record.cause or (str(status) if status >= 500 else "_OTHER"))


def _note(record: Record, span: Span) -> None:
    """Store the ids of the request's trace in its record."""
    ids = span.get_span_context()
    if ids.is_valid:
        record.trace = format_trace_id(ids.trace_id)
        if ids.trace_flags.sampled:
            record.exemplar = {"trace_id": record.trace, "span_id": format_span_id(ids.span_id)}
