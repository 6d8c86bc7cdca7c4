"""Every metric, in one place.

Collectors live on the registry they are given, made once for each, so that two instances of Abridge
in one process share them and do not collide. No label's value comes unchecked from a client: `api`,
`style`, `outcome` and `code` are closed sets, `upstream` and `summarizer` come from settings, for
`model` see `Models`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from typing import Literal, TypeVar
from weakref import WeakKeyDictionary

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.multiprocess import MultiProcessCollector

Mode = Literal["livesum", "max"]
"""What becomes of a gauge's values where several processes have one each: the living ones' are
added, or the highest of all is taken."""

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder in which several processes keep what they count."""

MOST_MODELS = 50

M = TypeVar("M", Counter, Gauge, Histogram)

SECONDS = tuple(0.01 * 2**step for step in range(14))
"""10 ms, doubling, to 82 s."""

HELD = (*SECONDS[:9], 5.0, *SECONDS[9:])
"""The same, and the grace that holds unless set otherwise, so that it can be told from less."""

OVERHEAD = tuple(0.0001 * 2**step for step in range(14))
"""0.1 ms, doubling, to 0.8 s: what Abridge itself adds is small."""

PACE = tuple(0.001 * 2**step for step in range(14))
"""1 ms, doubling, to 8 s: between two pieces of an answer."""


class Metrics:
    """The collectors. Tokens, seconds and characters are what their names say."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return _quick(Counter(f"abridge_{name}", text, labels, registry=registry))

        def histogram(
            name: str, text: str, *labels: str, buckets: tuple[float, ...] = SECONDS
        ) -> Histogram:
            name = f"abridge_{name}"
            return _quick(Histogram(name, text, labels, registry=registry, buckets=buckets))

        def gauge(name: str, text: str, *labels: str, mode: Mode = "livesum") -> Gauge:
            name = f"abridge_{name}"
            return _quick(Gauge(name, text, labels, registry=registry, multiprocess_mode=mode))

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
            buckets=HELD,
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
            buckets=PACE,
        )
        self.overhead_seconds = histogram(
            "overhead_seconds",
            "What Abridge itself added before the response began.",
            "api",
            buckets=OVERHEAD,
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
            "store_seconds", "How long a store took.", "operation", buckets=OVERHEAD
        )
        self.store_bytes = gauge("store_bytes", "Bytes of reasoning remembered.")
        self.workers = gauge("workers", "Processes that serve.")
        self.build_info = gauge("build_info", "Always 1, by its version.", "version", mode="max")
        self.memory_bytes = gauge("memory_bytes", "Bytes of memory in use.")
        self.cpu_seconds = counter("cpu_seconds", "CPU time taken.")
        self.loop_lag_seconds = histogram(
            "loop_lag_seconds", "How late the event loop was.", buckets=OVERHEAD
        )


def _quick(metric: M) -> M:
    """To look a child up by its labels takes longer than to count by it, and there are few."""
    metric.labels = cache(metric.labels)  # type: ignore[method-assign]
    return metric


_made: WeakKeyDictionary[CollectorRegistry, Metrics] = WeakKeyDictionary()


def metrics_on(registry: CollectorRegistry | None = None) -> Metrics:
    """The collectors on a registry, the default one where none is given."""
    chosen = REGISTRY if registry is None else registry
    if chosen not in _made:
        _made[chosen] = Metrics(chosen)
    return _made[chosen]


def exposed(registry: CollectorRegistry | None = None) -> CollectorRegistry:
    """What `/metrics` tells: a registry's, else this process's, or that of all the processes which
    count together."""
    if registry is None and (folder := os.environ.get(FOLDER)):
        registry = CollectorRegistry()
        MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
    return REGISTRY if registry is None else registry


class Models:
    """Which models are told apart: those that are configured by name, and the first so many that
    brought a good answer; any other is `other`."""

    def __init__(self, configured: Iterable[str] = ()) -> None:
        self._known = set(configured)
        self._most = len(self._known) + MOST_MODELS

    def label(self, model: str | None, *, good: bool) -> str:
        if not model:
            return "unknown"
        if good and len(self._known) < self._most:
            self._known.add(model)
        return model if model in self._known else "other"
