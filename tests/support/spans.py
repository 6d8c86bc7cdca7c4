"""Record spans for inspection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult as Result
from opentelemetry.trace import SpanContext, format_span_id, format_trace_id

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@dataclass(frozen=True)
class SpanView:
    """A finished span, as a trace viewer shows it."""

    span: ReadableSpan

    @property
    def name(self) -> str:
        return self.span.name

    @property
    def kind(self) -> str:
        return self.span.kind.name

    @property
    def error(self) -> str | None:
        """The `error.type`, which is set if and only if the span failed."""
        failed = self.span.status.status_code.name == "ERROR"
        assert failed is ("error.type" in self)
        return str(self["error.type"]) if failed else None

    @property
    def context(self) -> SpanContext:
        context: SpanContext | None = self.span.context
        assert context is not None
        return context

    @property
    def id(self) -> str:
        return format_span_id(self.context.span_id)

    @property
    def trace(self) -> str:
        return format_trace_id(self.context.trace_id)

    @property
    def parent(self) -> str | None:
        return format_span_id(self.span.parent.span_id) if self.span.parent is not None else None

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace}-{self.id}-{self.context.trace_flags:02x}"

    @property
    def times(self) -> tuple[int, int]:
        assert self.span.start_time is not None
        assert self.span.end_time is not None
        return self.span.start_time, self.span.end_time

    def __getitem__(self, name: str) -> object:
        return (self.span.attributes or {})[name]

    def __contains__(self, name: str) -> bool:
        return name in (self.span.attributes or {})


class Spans(SpanExporter):
    """All spans of `provider`, in the order in which they ended."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self.all: list[SpanView] = []
        self.provider = provider or TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self))

    def export(self, spans: Sequence[ReadableSpan]) -> Result:
        self.all += map(SpanView, spans)
        return Result.SUCCESS

    @property
    def request(self) -> SpanView:
        """The span of the last request, which ends after its children."""
        return self.all[-1]

    def below(self, parent: SpanView) -> list[SpanView]:
        """Return a span's children in the order in which they began."""
        found = [span for span in self.all if span.parent == parent.id]
        return sorted(found, key=lambda span: span.times)

    def tree(self, top: SpanView | None = None) -> dict[str, object]:
        """Return names and kinds of all descendants."""
        top = top or self.request
        return {f"{span.name} {span.kind}": self.tree(span) for span in self.below(top)}

    def text(self) -> str:
        """Return all spans as JSON lines."""
        return "\n".join(map(partial(ReadableSpan.to_json, indent=None), self._spans()))

    def _spans(self) -> list[ReadableSpan]:
        return [view.span for view in self.all]
