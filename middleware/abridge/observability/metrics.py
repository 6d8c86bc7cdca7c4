"""All metrics.

Collectors are created once per registry, so that two instances of Abridge in one process share them
and do not collide. No label value comes unchecked from a client: `api`, `style`, `outcome` and
`code` are closed sets, `upstream` and `summarizer` come from the settings; for `model` see
`ModelLabels`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from typing import Literal, TypeVar
from weakref import WeakKeyDictionary

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.multiprocess import MultiProcessCollector

GaugeMode = Literal["livesum", "max"]
"""Combine a gauge of several processes as the sum over the live ones, or as the maximum."""

MULTIPROCESS_DIR_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with the folder in which several processes share their metrics."""

MAX_MODELS = 50

M = TypeVar("M", Counter, Gauge, Histogram)

SECONDS_BUCKETS = tuple(0.01 * 2**step for step in range(14))
"""10 ms, doubling, to 82 s."""

HELD_BUCKETS = (*SECONDS_BUCKETS[:9], 5.0, *SECONDS_BUCKETS[9:])
"""The same plus the default grace, so that a full wait can be distinguished from a shorter one."""

OVERHEAD_BUCKETS = tuple(0.0001 * 2**step for step in range(14))
"""0.1 ms, doubling, to 0.8 s, for the small times that Abridge itself adds."""

CHUNK_BUCKETS = tuple(0.001 * 2**step for step in range(14))
"""1 ms, doubling, to 8 s, for the time between two chunks of an answer."""


class Metrics:
    """The collectors on one registry. The units are in the names."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return _cache_labels(Counter(f"abridge_{name}", text, labels, registry=registry))

        def histogram(
            name: str, text: str, *labels: str, buckets: tuple[float, ...] = SECONDS_BUCKETS
        ) -> Histogram:
            name = f"abridge_{name}"
            return _cache_labels(Histogram(name, text, labels, registry=registry, buckets=buckets))

        def gauge(name: str, text: str, *labels: str, mode: GaugeMode = "livesum") -> Gauge:
            name = f"abridge_{name}"
            return _cache_labels(
                Gauge(name, text, labels, registry=registry, multiprocess_mode=mode)
            )

        self.requests = counter(
            "requests",
            "Requests to an API, by how they ended.",
            "api",
            "upstream",
            "model",
            "outcome",
        )
        self.request_seconds = histogram(
            "request_seconds", "How long a request took, to its end.", "api", "upstream", "model"
        )
        self.refusals = counter("refusals", "Requests that Abridge itself refused.", "code")
        self.requests_in_flight = gauge(
            "requests_in_flight", "Requests that are being forwarded.", "upstream"
        )
        self.requests_in_flight_limit = gauge(
            "requests_in_flight_limit", "How many may be forwarded at once."
        )
        self.upstream_info = gauge(
            "upstream_info",
            "Always 1, by its profile, and whether that demands its reasoning back, or wants it.",
            "upstream",
            "profile",
            "reasoning",
            mode="max",
        )
        self.upstream_responses = counter(
            "upstream_responses", "What upstreams answered, by its status.", "upstream", "status"
        )
        self.upstream_failures = counter(
            "upstream_failures", "Requests that an upstream did not answer.", "upstream", "cause"
        )
        self.upstream_seconds = histogram(
            "upstream_seconds", "How long an upstream took until its headers.", "upstream"
        )
        self.summaries = counter(
            "summaries",
            "Reasoning items for which a summary was due, by what came of it.",
            "api",
            "upstream",
            "model",
            "style",
            "summarizer",
            "outcome",
        )
        self.summarizer_tokens = counter(
            "summarizer_tokens",
            "Tokens that summarizers reported.",
            "upstream",
            "model",
            "style",
            "summarizer",
            "type",
        )
        self.upstream_tokens = counter(
            "upstream_tokens",
            "Tokens that upstreams reported, reasoning within the output.",
            "api",
            "upstream",
            "model",
            "type",
        )
        self.summarizer_in_flight = gauge(
            "summarizer_in_flight", "Calls for a part that are under way."
        )
        self.summarizer_in_flight_limit = gauge(
            "summarizer_in_flight_limit", "How many may be under way at once."
        )
        self.breaker_open = gauge("breaker_open", "Summarizers that are left alone for a while.")
        self.summarizer_seconds = histogram(
            "summarizer_seconds", "How long a call for one part took.", "summarizer", "outcome"
        )
        self.held_seconds = histogram(
            "held_seconds",
            "How long an answer waited for its summary.",
            "api",
            "upstream",
            "model",
            "style",
            "summarizer",
            buckets=HELD_BUCKETS,
        )
        self.first_summary_seconds = histogram(
            "first_summary_seconds",
            "From the request to the first text of its summary.",
            "api",
            "upstream",
            "model",
        )
        self.first_answer_seconds = histogram(
            "first_answer_seconds",
            "From the request to the first piece of its answer.",
            "api",
            "upstream",
            "model",
        )
        self.chunk_seconds = histogram(
            "chunk_seconds",
            "Between two pieces of a streamed answer, on average.",
            "api",
            "upstream",
            "model",
            buckets=CHUNK_BUCKETS,
        )
        self.overhead_seconds = histogram(
            "overhead_seconds",
            "What Abridge itself added before the response began.",
            "api",
            buckets=OVERHEAD_BUCKETS,
        )
        self.reasoning_characters = counter(
            "reasoning_characters", "Characters of raw reasoning read.", "api", "upstream"
        )
        self.marks_removed = counter(
            "marks_removed", "What Abridge had added and took out of a later request.", "api"
        )
        self.reasoning_restored = counter(
            "reasoning_restored",
            "Turns of a later request whose reasoning upstream got, by where it came from.",
            "api",
            "upstream",
            "source",
        )
        self.reasoning_missed = counter(
            "reasoning_missed",
            "Turns of a later request whose reasoning was wanted and not found.",
            "api",
            "upstream",
        )
        self.reasoning_dropped = counter(
            "reasoning_dropped",
            "Turns of a later request whose reasoning was left out, by why.",
            "api",
            "upstream",
            "reason",
        )
        self.blobs_refused = counter(
            "blobs_refused",
            "Requests refused because of a damaged encrypted_content of ours.",
            "api",
            "upstream",
        )
        self.dropped_fields = counter(
            "dropped_fields", "Unknown fields dropped together with hidden reasoning.", "api"
        )
        self.reader_faults = counter(
            "reader_faults", "What upstream said out of order, and was dropped.", "api", "upstream"
        )
        self.streams_open = gauge("streams_open", "Engaged responses under way.", "api")
        self.held_bytes = gauge("held_bytes", "Bytes of answers that wait for a summary.")
        self.store_operations = counter(
            "store_operations",
            "What was asked of a store, by what came of it.",
            "operation",
            "result",
        )
        self.store_seconds = histogram(
            "store_seconds", "How long a store took.", "operation", buckets=OVERHEAD_BUCKETS
        )
        self.store_bytes = gauge("store_bytes", "Bytes of reasoning remembered.")
        self.workers = gauge("workers", "Processes that serve.")
        self.build_info = gauge("build_info", "Always 1, by its version.", "version", mode="max")
        self.memory_bytes = gauge("memory_bytes", "Bytes of memory in use.")
        self.cpu_seconds = counter("cpu_seconds", "CPU time taken.")
        self.loop_lag_seconds = histogram(
            "loop_lag_seconds", "How late the event loop was.", buckets=OVERHEAD_BUCKETS
        )


def _cache_labels(metric: M) -> M:
    """Cache `labels`: the lookup takes longer than counting, and there are few children."""
    metric.labels = cache(metric.labels)  # type: ignore[method-assign]
    return metric


_metrics_by_registry: WeakKeyDictionary[CollectorRegistry, Metrics] = WeakKeyDictionary()


def metrics_for(registry: CollectorRegistry | None = None) -> Metrics:
    """Return the collectors on a registry, by default the global one."""
    chosen = REGISTRY if registry is None else registry
    if chosen not in _metrics_by_registry:
        _metrics_by_registry[chosen] = Metrics(chosen)
    return _metrics_by_registry[chosen]


def exposed_registry(registry: CollectorRegistry | None = None) -> CollectorRegistry:
    """Return the registry to expose on `/metrics`.

    By default this is the global one, or a new one that combines all processes if they share their
    metrics in a folder.
    """
    if registry is None and (folder := os.environ.get(MULTIPROCESS_DIR_VARIABLE)):
        registry = CollectorRegistry()
        MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
    return REGISTRY if registry is None else registry


class ModelLabels:
    """Bounds the values of the `model` label.

    Models configured by name keep their name, and so do the first `MAX_MODELS` others that were
    seen in a successful response; all others become `other`.
    """

    def __init__(self, configured: Iterable[str] = ()) -> None:
        self._known = set(configured)
        self._limit = len(self._known) + MAX_MODELS

    def label(self, model: str | None, *, succeeded: bool) -> str:
        if not model:
            return "unknown"
        if succeeded and len(self._known) < self._limit:
            self._known.add(model)
        return model if model in self._known else "other"
