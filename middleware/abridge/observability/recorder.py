"""Record what happens in one engaged request.

Gauges of what is under way are updated at once, everything else when the request is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from abridge.apis.protocols import Reader
from abridge.core.events import (
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    ItemSummary,
    ReasoningDelta,
    RefusalDelta,
    ResponseEnded,
    ResponseStarted,
    SummaryPartAdded,
    SummaryPartDone,
    ToolCallDelta,
    UsageReported,
    said_text,
)
from abridge.core.sequencer import Sequencer
from abridge.core.usage import EXTRACTIVE, SummarizerUsage
from abridge.observability.metrics import Metrics
from abridge.observability.record import Record, ShownPart, SummarizerCall

if TYPE_CHECKING:
    from abridge.observability.tracing.spans import RequestTrace

NAMED_OUTCOMES = frozenset({"empty", "timeout", "deadline", "shed", "withheld"})
"""Error codes of a summary that are outcomes by their own name; any other is `failed`."""


class ExchangeRecorder:
    """Fill in one request's record while it runs; `trace` draws its spans."""

    def __init__(self, metrics: Metrics, record: Record, trace: RequestTrace | None = None) -> None:
        self.record = record
        self._trace = trace
        self.outcome = "failed"  # by how the answer itself ended
        self.error: ErrorDetail | None = None  # the first of the answer
        self._metrics = metrics
        self._streams = metrics.streams_open.labels(record.api)
        self._summaries: Iterable[ItemSummary] = ()
        self._calls: dict[int, SummarizerCall] = {}
        self._parts: dict[tuple[int | None, int, int], ShownPart] = {}
        self._held_bytes = 0
        self._streams.inc()

    def note(self, events: Iterable[Event]) -> None:
        """Take events that are being sent to the client."""
        now = self.record.clock() - self.record.began
        for event in events:
            if (take := self._TAKERS.get(type(event))) is not None:
                take(self, event, now)

    def call_started(self, part: int) -> None:
        """Record that a summarizer was called for a part."""
        call = self._calls[part] = SummarizerCall(part, self.record.elapsed())
        self.record.calls.append(call)

    def call_span(self, part: int) -> AbstractContextManager[None]:
        """Return a context manager to run the call in: its span. A call may outlast its part."""
        return nullcontext() if self._trace is None else self._trace.trace_call(self.record, part)

    def call_ended(self, part: int, outcome: str, seconds: float, spent: SummarizerUsage) -> None:
        """Record the end of a call. `seconds` excludes the time in which a send to the client was
        under way."""
        call = self._calls.pop(part)
        call.ended, call.outcome = self.record.elapsed(), outcome
        self._metrics.summarizer_seconds.labels(self.record.summarizer, outcome).observe(seconds)
        if self._trace is not None:
            self._trace.note_outcome(part, outcome, spent)

    def note_held(self, held_bytes: int) -> None:
        """Update the gauge of the bytes of the answer that wait."""
        if held_bytes != self._held_bytes:
            self._metrics.held_bytes.inc(held_bytes - self._held_bytes)
            self._held_bytes = held_bytes

    def abandon(self) -> None:
        """Release the gauges without recording a result: the request is sent again."""
        self.note_held(0)
        self._streams.dec()

    def close(self, sequencer: Sequencer, reader: Reader) -> None:
        """Complete the record: the exchange is over."""
        self.abandon()
        record = self.record
        record.outcome, record.engaged = self.outcome, True
        record.held_seconds, record.summarizer_tokens = sequencer.held_seconds, sequencer.spent
        record.dropped_response_fields, record.reader_faults = reader.dropped, reader.faults
        record.final_text_mismatches = reader.mismatches
        if record.style != "off":
            record.summaries = Counter(map(summary_outcome, self._summaries))
            codes = (each.error.code for each in self._summaries if each.error is not None)
            record.summary_error = next(codes, None)

    def _take_reasoning(self, event: ReasoningDelta, now: float) -> None:
        if event.text:
            self.record.characters += len(event.text)
            self.record.thinking = (self.record.thinking or (now,))[0], now

    def _take_piece(self, event: ContentDelta, now: float) -> None:
        """Count a piece of the answer. Of what passes in a frame only text counts: what else is in
        there, not every reader says."""
        record, span = self.record, self.record.answer
        record.answer = (now if span is None else span[0], now)
        record.chunks += 1 if event.run is None else len(event.run.texts)
        if event.frame is None or type(event) is ContentDelta:
            record.answer_characters += len(event.text or said_text(event))

    def _take_part_added(self, event: SummaryPartAdded, now: float) -> None:
        part = self._parts[event.lane, event.item, event.index] = ShownPart(now)
        self.record.parts.append(part)
        self.record.first_summary = self.record.parts[0].began  # it begins with text

    def _take_part_done(self, event: SummaryPartDone, now: float) -> None:
        self._parts[event.lane, event.item, event.index].ended = now

    def _take_start(self, event: ResponseStarted, _now: float) -> None:
        self.record.response_id, self.record.response_model = event.id, event.model

    def _take_usage(self, event: UsageReported, _now: float) -> None:
        self.record.upstream_tokens = event.usage

    def _take_error(self, event: ErrorReported | ResponseEnded, _now: float) -> None:
        if event.error is not None:
            self.error = self.error or event.error
            self.record.note_error(event.error.code)

    def _take_end(self, event: ResponseEnded, now: float) -> None:
        self.record.upstream_tokens = event.usage or self.record.upstream_tokens
        self._summaries, self.record.is_whole = event.summaries.values(), event.ok
        self.outcome = "ok" if event.ok and event.error is None else "failed"
        self._take_error(event, now)

    _TAKERS: ClassVar[Mapping[type[Event], Callable[[ExchangeRecorder, Any, float], None]]] = {
        ReasoningDelta: _take_reasoning,
        **dict.fromkeys((ContentDelta, RefusalDelta, ToolCallDelta), _take_piece),
        SummaryPartAdded: _take_part_added,
        SummaryPartDone: _take_part_done,
        ResponseStarted: _take_start,
        UsageReported: _take_usage,
        ErrorReported: _take_error,
        ResponseEnded: _take_end,
    }
    """What takes an event of a type, with the time."""


def summary_outcome(summary: ItemSummary) -> str:
    """Return the outcome of one item's summary, as in the metrics."""
    if summary.native:
        return "native"
    if summary.error is None:
        return "ok" if summary.parts else "skipped"
    if summary.parts:
        return "partial"
    code = summary.error.code
    return code if code in NAMED_OUTCOMES else "failed"


def summary_source(summaries: Collection[ItemSummary], summarizer: str) -> str:
    """Return what made an answer's summaries, for a header. `summarizer` is its name."""
    outcomes = {summary_outcome(summary) for summary in summaries} - {"skipped"}
    if not outcomes:
        return "none"
    if outcomes == {"native"}:
        return "native"
    parts = sum(len(summary.parts) for summary in summaries)
    extracted = sum(summary.extracted for summary in summaries)
    if parts and (extracted == parts or summarizer == EXTRACTIVE):
        return "extractive"
    if outcomes <= {"ok", "native"}:
        return "model"
    if parts:
        return "partial"
    return "withheld" if outcomes == {"withheld"} else "failed"
