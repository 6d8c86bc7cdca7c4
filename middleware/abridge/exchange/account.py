"""Record what happens in one engaged request.

Gauges of what is under way are updated at once, everything else when the request is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from abridge.metrics import Metrics
from abridge.summarize import Spent
from abridge.telemetry.record import Call, Record, Shown
from abridge.turn.events import (
    Began,
    Billed,
    Ended,
    Event,
    Failed,
    PartClosed,
    PartOpened,
    PartSaid,
    Raw,
    Said,
    Summary,
)
from abridge.turn.weave import Weaver
from abridge.wire.api import Reader

if TYPE_CHECKING:
    from abridge.telemetry.tracing.spans import Trace

TELLING = frozenset({"empty", "timeout", "deadline", "shed"})
"""Error codes of a summary that are outcomes by their own name; any other is `failed`."""


class Account:
    """Fill in one request's record while it runs; `trace` draws its spans."""

    def __init__(self, metrics: Metrics, record: Record, trace: Trace | None = None) -> None:
        self.record = record
        self._trace = trace
        self.outcome = "failed"  # by how the answer itself ended
        self._metrics = metrics
        self._streams = metrics.streams_open.labels(record.api)
        self._summaries: Iterable[Summary] = ()
        self._calls: dict[int, Call] = {}
        self._parts: dict[tuple[int | None, int, int], Shown] = {}
        self._held = 0
        self._streams.inc()

    def note(self, event: Event) -> None:
        """Take an event that is being sent to the client."""
        match event:
            case Raw():
                self._think(event.text)
            case Said():
                self._say()
            case PartOpened() | PartSaid() | PartClosed():
                self._show(event)
            case Billed():
                self.record.used = event.usage or self.record.used
            case Failed():
                self.record.fail(event.trouble.code)
            case Ended():
                self._end(event)
            case Began():
                self.record.response_id, self.record.response_model = event.id, event.model

    def asked(self, part: int) -> None:
        """Record that a summarizer was called for a part."""
        call = self._calls[part] = Call(part, self.record.now())
        self.record.calls.append(call)

    def writing(self, part: int) -> AbstractContextManager[None]:
        """Return a context manager to run the call in: its span."""
        return nullcontext() if self._trace is None else self._trace.call(self.record, part)

    def ended(self, part: int, outcome: str, seconds: float, spent: Spent) -> None:
        """Record the end of a call. `seconds` excludes the time in which a send to the client was
        under way."""
        call = self._calls.pop(part)
        call.ended, call.outcome = self.record.now(), outcome
        self._metrics.summarizer_seconds.labels(self.record.summarizer, outcome).observe(seconds)
        if self._trace is not None:
            self._trace.called(part, outcome, spent)

    def note_held(self, held: int) -> None:
        """Update the gauge of the bytes of the answer that wait."""
        if held != self._held:
            self._metrics.held_bytes.inc(held - self._held)
            self._held = held

    def abandon(self) -> None:
        """Release the gauges without recording a result: the request is sent again to another
        API."""
        self.note_held(0)
        self._streams.dec()

    def close(self, weaver: Weaver, reader: Reader) -> None:
        """Complete the record: the exchange is over."""
        self.abandon()
        record = self.record
        record.outcome, record.engaged = self.outcome, True
        record.held, record.spent = weaver.held_for, weaver.spent
        record.dropped, record.faults = reader.dropped, reader.faults
        if record.style != "off":
            record.summaries = Counter(
                outcome_of(summary, pressed=weaver.pressed) for summary in self._summaries
            )

    def _think(self, text: str) -> None:
        if text:
            self.record.characters += len(text)
            self.record.thinking = _until(self.record.now(), self.record.thinking)

    def _say(self) -> None:
        self.record.chunks += 1
        self.record.answer = _until(self.record.now(), self.record.answer)

    def _show(self, event: PartOpened | PartSaid | PartClosed) -> None:
        record, place = self.record, (event.lane, event.item, event.index)
        if isinstance(event, PartOpened):
            shown = self._parts[place] = Shown(record.now())
            record.parts.append(shown)
        elif isinstance(event, PartClosed):
            self._parts[place].ended = record.now()
        elif record.first_summary is None:
            record.first_summary = record.now()

    def _end(self, event: Ended) -> None:
        self.record.used = event.usage or self.record.used
        self._summaries = event.summaries.values()
        self.outcome = "ok" if event.ok and event.trouble is None else "failed"
        if event.trouble is not None:
            self.record.fail(event.trouble.code)


def _until(now: float, span: tuple[float, float] | None) -> tuple[float, float]:
    """Extend a time span to `now`, or start one."""
    return (now if span is None else span[0], now)


def outcome_of(summary: Summary, *, pressed: bool = False) -> str:
    """Return the outcome of one item's summary, as in the metrics."""
    if summary.native:
        return "native"
    if summary.trouble is None:
        return "ok" if summary.parts else "skipped"
    if summary.parts:
        return "partial"
    code = summary.trouble.code
    if code == "deadline" and pressed:
        return "pressed"
    return code if code in TELLING else "failed"
