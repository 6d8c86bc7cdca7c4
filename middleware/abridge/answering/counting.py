"""Count what happens in the metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from prometheus_client import CollectorRegistry
from starlette.types import Scope

from abridge.metrics import Metrics, Models, metrics_on
from abridge.settings import ROUTE, Route, Settings
from abridge.telemetry.record import RECORD, TRACE, Record, Sink
from abridge.turn.usage import Tokens
from abridge.wire.api import Api
from abridge.wire.profiles import PROFILES

INNER = "abridge.inner"
"""Scope key that marks a summarizer's own call when it passes through Abridge: no client made this
request, so it is not counted."""

_log = logging.getLogger(__name__)


def inner(scope: Scope) -> Scope:
    """Return the scope for a summarizer's own call, without its request's record and trace."""
    return {**{key: scope[key] for key in scope if key not in (RECORD, TRACE)}, INNER: True}


class Counting:
    """Count a finished request in the metrics, and pass its record to all `sinks`."""

    def __init__(self, metrics: Metrics, settings: Settings, sinks: tuple[Sink, ...]) -> None:
        self.metrics = metrics
        self._uncounted = metrics_on(CollectorRegistry())
        self._sinks = (self._enter, *sinks)
        names = {name for route in settings.routes for name in route.upstream.models}
        self._models = Models(name for name in names if not set(name) & set("*?["))
        for route in settings.routes:
            name, profile = route.upstream.name, route.upstream.profile
            metrics.upstream_info.labels(name, profile, _wish(route)).set(1)

    def of(self, scope: Scope) -> Metrics:
        """Return the metrics for a request; those of a summarizer's own call are discarded."""
        return self._uncounted if INNER in scope else self.metrics

    def finish(self, scope: Scope) -> None:
        """Complete a request's record and hand it to the sinks; their exceptions are logged
        only."""
        record: Record = scope[RECORD]
        record.seconds = record.now()
        if INNER in scope:
            return
        for sink in self._sinks:
            try:
                sink(record)
            except Exception:  # noqa: BLE001 -- a user's may raise anything
                _log.exception("a sink failed")

    def _enter(self, record: Record) -> None:
        """Count a request; without an API only its refusal counts."""
        if record.outcome == "refused":
            self.metrics.refusals.labels(record.cause or "invalid_request").inc()
        if record.api is None:
            return
        good = record.status is not None and 200 <= record.status < 300
        model = self._models.label(record.model, good=good)
        where = record.api, record.upstream or "none", model
        self.metrics.requests.labels(*where, record.outcome).inc()
        self._enter_past(record, where[:2])
        if record.engaged:
            self._enter_times(record, where)
            self._enter_reading(record, where[:2])
            self._enter_summary(record, where)
            for kind, count in _counts(_paid(record.used), ("input", "output", "reasoning")):
                self.metrics.upstream_tokens.labels(*where, kind).inc(count)

    def _enter_past(self, record: Record, where: tuple[str, str]) -> None:
        """Count the changes made to the request's history, and the fields dropped."""
        metrics = self.metrics
        if record.lost:
            metrics.dropped_fields.labels(record.api).inc(record.lost)
        for mended in record.mended:
            metrics.marks_removed.labels(record.api).inc(mended.removed)
            metrics.reasoning_missed.labels(*where).inc(mended.missed)
            for source, turns in mended.restored.items():
                metrics.reasoning_restored.labels(*where, source).inc(turns)
            for reason, turns in mended.dropped.items():
                metrics.reasoning_dropped.labels(*where, reason).inc(turns)

    def _enter_times(self, record: Record, where: tuple[str, str, str]) -> None:
        metrics, exemplar = self.metrics, record.exemplar
        metrics.request_seconds.labels(*where).observe(record.seconds, exemplar)
        metrics.overhead_seconds.labels(record.api).observe(record.overhead)
        if record.first_summary is not None:
            metrics.first_summary_seconds.labels(*where).observe(record.first_summary, exemplar)
        if record.answer is not None:
            first, last = record.answer
            metrics.first_answer_seconds.labels(*where).observe(first, exemplar)
            if record.stream and record.chunks > 1:
                metrics.chunk_seconds.labels(*where).observe((last - first) / (record.chunks - 1))

    def _enter_reading(self, record: Record, where: tuple[str, str]) -> None:
        self.metrics.reasoning_characters.labels(*where).inc(record.characters)
        self.metrics.dropped_fields.labels(record.api).inc(record.dropped)
        self.metrics.reader_faults.labels(*where).inc(record.faults)

    def _enter_summary(self, record: Record, where: tuple[str, str, str]) -> None:
        """Count summaries by outcome, what they cost and how long the answer waited."""
        if record.style == "off":
            return
        made = record.style, record.summarizer
        self.metrics.held_seconds.labels(*where, *made).observe(record.held, record.exemplar)
        for outcome, summaries in record.summaries.items():
            self.metrics.summaries.labels(*where, *made, outcome).inc(summaries)
        for kind, count in _counts(record.spent, ("input", "output")):
            self.metrics.summarizer_tokens.labels(*where[1:], *made, kind).inc(count)

    def refused(self, api: Api, scope: Scope) -> None:
        """Count a request refused because of a damaged envelope."""
        route: Route = scope[ROUTE]
        self.of(scope).blobs_refused.labels(api.name, route.upstream.name).inc()

    def store_operation(self, operation: str, result: str, seconds: float) -> None:
        """Count and time one operation of a store."""
        self.metrics.store_operations.labels(operation, result).inc()
        self.metrics.store_seconds.labels(operation).observe(seconds)

    def store(self, size: int) -> None:
        """Set the bytes of reasoning that are remembered."""
        self.metrics.store_bytes.set(size)


def _wish(route: Route) -> Literal["demanded", "wanted", "free"]:
    """Tell how much upstream wants its reasoning back; the Messages API demands it within tool
    rounds."""
    returns = PROFILES[route.upstream.profile].returns
    if returns.on_calls or route.upstream.api == "messages":
        return "demanded"
    return "wanted" if returns.wanted else "free"


def _paid(used: Tokens) -> Tokens:
    """Add reasoning to the output tokens, as it is billed.

    Some upstreams report it outside of them; then only the total has both.
    """
    if used.input is None or used.total is None:
        return used
    return replace(used, output=max(used.output or 0, used.total - used.input))


def _counts(tokens: Tokens, kinds: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    for kind in kinds:
        if (count := getattr(tokens, kind) or 0) > 0:
            yield kind, count
