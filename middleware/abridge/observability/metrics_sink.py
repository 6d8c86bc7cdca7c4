"""Count what happens in the metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import cache, partial
from inspect import iscoroutinefunction
from typing import Literal

from prometheus_client import CollectorRegistry
from starlette.types import Scope

from abridge.apis.api import Api
from abridge.apis.registry import UPSTREAM_APIS
from abridge.config.settings import ATTEMPT, ROUTE, Route, Settings
from abridge.core.usage import Tokens
from abridge.errors import SettingsError
from abridge.lasting import Lasting
from abridge.observability.ledger import open_ledger
from abridge.observability.logs import log_request
from abridge.observability.metrics import MAX_MODELS, Metrics, NameLabels, metrics_for
from abridge.observability.record import RECORD, TRACE, CompactionRecord, Record, Sink
from abridge.observability.spending import Prices
from abridge.providers.catalog import PROFILES

SUMMARY_CALL = "abridge.inner"
"""Scope key that marks a summarizer's own call when it passes through Abridge: no client made this
request, so it is not counted."""

COMPACTION_STYLE = "compaction"
"""What stands in the label `style` for a compaction."""

_log = logging.getLogger(__name__)


class UpstreamRows(set[tuple[str, str, str]]):
    """The labels of `upstream_info` that were set."""


@cache
def _discarded_metrics() -> Metrics:
    return metrics_for(CollectorRegistry())


def summary_call_scope(scope: Scope) -> Scope:
    """Return the scope for a summarizer's own call, without its request's record and trace. It
    does not fail over."""
    return {**scope, **dict.fromkeys((RECORD, TRACE, ATTEMPT)), SUMMARY_CALL: True}


class MetricsSink:
    """Hand the record of a finished request to the metrics, the log, the ledger and all `sinks`."""

    def __init__(
        self, metrics: Metrics, settings: Settings, sinks: Sequence[Sink], lasting: Lasting
    ) -> None:
        if callable(sinks) or any(map(iscoroutinefunction, sinks)):
            raise SettingsError("sinks: must be a list of functions of a record, none is async")
        self.metrics = metrics
        self.ledger = lasting.get("ledger", partial(open_ledger, settings, metrics))
        if self.ledger is not None:
            sinks = (partial(self.ledger.add, prices=Prices(settings)), *sinks)
        self._routes = settings.routes
        self._discarded = _discarded_metrics()
        self._sinks = (self._count_request, log_request, *sinks)
        self._models = lasting.get("models", partial(NameLabels, MAX_MODELS))
        self._known_upstreams = lasting.get("upstreams", UpstreamRows)

    def take_effect(self) -> None:
        """Have the metrics show the upstreams of the settings, and those alone."""
        names = {name for route in self._routes for name in route.upstream.models}
        self._models.expect(name for name in names if not set(name) & set("*?["))
        rows = {
            (route.upstream.name, route.upstream.profile, _reasoning_need(route))
            for route in self._routes
        }
        for row in self._known_upstreams | rows:
            self.metrics.upstream_info.labels(*row).set(row in rows)
        self._known_upstreams |= rows

    def metrics_for(self, scope: Scope) -> Metrics:
        """Return the metrics for a request; those of a summarizer's own call are discarded."""
        return self._discarded if SUMMARY_CALL in scope else self.metrics

    def finish(self, scope: Scope) -> None:
        """Complete a request's record and hand it to the sinks; their exceptions are logged
        only."""
        record: Record = scope[RECORD]
        record.seconds = record.elapsed()
        if SUMMARY_CALL in scope:
            return
        for sink in self._sinks:
            try:
                sink(record)
            except Exception:  # noqa: BLE001 -- a user's may raise anything
                _log.exception("a sink failed")

    def _count_request(self, record: Record) -> None:
        """Count a request; without an API only its refusal counts."""
        if record.outcome == "refused":
            self.metrics.refusals.labels(record.cause or "invalid_request").inc()
        if record.hidden:
            for hidden, pieces in record.hidden.items():
                self.metrics.hidden.labels(record.profile or "none", hidden).inc(pieces)
        if record.api is None:
            if dropped := record.dropped_response_fields:
                self.metrics.dropped_fields.labels(record.rebuilt_as).inc(dropped)
            return
        good = record.status is not None and 200 <= record.status < 300
        model = self._models.label(record.model, may_add=good)
        labels = record.api, record.upstream or "none", model
        self.metrics.requests.labels(*labels, record.outcome).inc()
        if record.history_changes or record.dropped_request_fields:
            self._count_history(record, labels[:2])
        if record.compaction is not None:
            self._count_compaction(record.compaction, labels)
        if record.engaged:
            self._observe_times(record, labels)
            self._count_reading(record, labels[:2])
            self._count_summary(record, labels)
            for kind, count in _positive_counts(
                record.upstream_tokens.as_billed(), ("input", "output", "reasoning")
            ):
                self.metrics.upstream_tokens.labels(*labels, kind).inc(count)

    def _count_history(self, record: Record, labels: tuple[str, str]) -> None:
        """Count the changes made to the request's history, and the fields dropped."""
        metrics = self.metrics
        if record.dropped_request_fields:
            metrics.dropped_fields.labels(record.api).inc(record.dropped_request_fields)
        for changes in record.history_changes:
            metrics.marks_removed.labels(record.api).inc(changes.removed)
            metrics.reasoning_missed.labels(*labels).inc(changes.missed)
            for source, turns in changes.restored.items():
                metrics.reasoning_restored.labels(*labels, source).inc(turns)
            for reason, turns in changes.dropped.items():
                metrics.reasoning_dropped.labels(*labels, reason).inc(turns)

    def _count_compaction(self, made: CompactionRecord, labels: tuple[str, str, str]) -> None:
        """Count a compaction as a summary of a style of its own, and what it cost."""
        kind = COMPACTION_STYLE, made.summarizer
        self.metrics.summaries.labels(*labels, *kind, made.outcome).inc()
        for token_type, count in _positive_counts(made.tokens, ("input", "output")):
            self.metrics.summarizer_tokens.labels(*labels[1:], *kind, token_type).inc(count)

    def _observe_times(self, record: Record, labels: tuple[str, str, str]) -> None:
        metrics, exemplar = self.metrics, record.exemplar
        metrics.request_seconds.labels(*labels).observe(record.seconds, exemplar)
        metrics.overhead_seconds.labels(record.api).observe(record.overhead)
        if record.first_summary is not None:
            metrics.first_part_seconds.labels(*labels).observe(record.first_summary, exemplar)
        if record.answer is not None:
            first, last = record.answer
            metrics.first_answer_seconds.labels(*labels).observe(first, exemplar)
            if record.stream and record.chunks > 1:
                metrics.chunk_seconds.labels(*labels).observe((last - first) / (record.chunks - 1))

    def _count_reading(self, record: Record, labels: tuple[str, str]) -> None:
        self.metrics.reasoning_characters.labels(*labels).inc(record.characters)
        self.metrics.dropped_fields.labels(record.api).inc(record.dropped_response_fields)
        self.metrics.reader_faults.labels(*labels).inc(record.reader_faults)
        self.metrics.final_text_mismatches.labels(*labels).inc(record.final_text_mismatches)

    def _count_summary(self, record: Record, labels: tuple[str, str, str]) -> None:
        """Count summaries by outcome, what they cost and how long the answer waited."""
        if record.style == "off":
            return
        summary_labels = record.style, record.summarizer
        self.metrics.held_seconds.labels(*labels, *summary_labels).observe(
            record.held_seconds, record.exemplar
        )
        for outcome, summaries in record.summaries.items():
            self.metrics.summaries.labels(*labels, *summary_labels, outcome).inc(summaries)
        for kind, count in _positive_counts(record.summarizer_tokens, ("input", "output")):
            self.metrics.summarizer_tokens.labels(*labels[1:], *summary_labels, kind).inc(count)

    def count_refused_envelope(self, api: Api, scope: Scope) -> None:
        """Count a request refused because of a damaged envelope."""
        route: Route = scope[ROUTE]
        self.metrics_for(scope).blobs_refused.labels(api.name, route.upstream.name).inc()

    def observe_store_operation(self, operation: str, result: str, seconds: float) -> None:
        """Count and time one operation of a store."""
        self.metrics.store_operations.labels(operation, result).inc()
        self.metrics.store_seconds.labels(operation).observe(seconds)


def _reasoning_need(route: Route) -> Literal["demanded", "wanted", "free"]:
    """Tell how much upstream wants its reasoning back."""
    returns = PROFILES[route.upstream.profile].returns
    api = UPSTREAM_APIS.get(route.upstream.api)
    if returns.required_on_calls or (api is not None and api.requires_reasoning):
        return "demanded"
    return "wanted" if returns.wanted else "free"


def _positive_counts(tokens: Tokens, kinds: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    for kind in kinds:
        if (count := getattr(tokens, kind) or 0) > 0:
            yield kind, count
