"""All metrics: each is a row of `Metrics`.

Collectors are created once per registry, so that two instances of Abridge in one process share them
and do not collide. No label value comes unchecked from a client: `api`, `style`, `outcome` and
`code` are closed sets, `upstream` and `summarizer` come from the settings, `key` from the file of
keys. A model has its own label if the settings name it, or once it has answered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, Literal, TypeVar
from weakref import WeakKeyDictionary

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.multiprocess import MultiProcessCollector

from abridge.caches import METRIC_LABELS

GaugeMode = Literal["livesum", "livemin", "livemax", "max"]
"""Combine a gauge of several processes: the sum, minimum or maximum of the live ones, or the
maximum of all."""

MULTIPROCESS_DIR_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with the folder in which several processes share their metrics."""

MAX_MODELS = 50
"""Models with a label of their own, besides those that the settings name."""

M = TypeVar("M", bound=MetricWrapperBase)

SECONDS_BUCKETS = tuple(0.01 * 2**step for step in range(14))
"""10 ms, doubling, to 82 s."""

HELD_BUCKETS = (*SECONDS_BUCKETS[:9], 5.0, *SECONDS_BUCKETS[9:])
"""The same plus the default grace, so that a full wait can be distinguished from a shorter one."""

OVERHEAD_BUCKETS = tuple(0.0001 * 2**step for step in range(14))
"""0.1 ms, doubling, to 0.8 s, for the small times that Abridge itself adds."""

CHUNK_BUCKETS = tuple(0.001 * 2**step for step in range(14))
"""1 ms, doubling, to 8 s, for the time between two chunks of an answer."""


BY_UPSTREAM = ("api", "upstream")

BY_MODEL = (*BY_UPSTREAM, "model")

BY_SUMMARY = (*BY_MODEL, "style", "summarizer")


def _cache_labels(metric: M) -> M:
    """Cache `labels`: the lookup takes longer than counting, and there are few children."""
    metric.labels = lru_cache(METRIC_LABELS)(metric.labels)  # type: ignore[method-assign]
    return metric


class _Row(Generic[M]):
    """A row of `Metrics`; `make` builds the collector, given its name and registry."""

    def __init__(self, make: Callable[[str, CollectorRegistry], M]) -> None:
        self._make = make

    def __set_name__(self, owner: type[Metrics], name: str) -> None:
        self._name = name

    def create(self, metrics: Metrics, registry: CollectorRegistry) -> None:
        """Create the collector, and put it where it is found before this row."""
        collector = _cache_labels(self._make(f"abridge_{self._name}", registry))
        vars(metrics)[self._name] = collector

    if TYPE_CHECKING:

        def __get__(self, metrics: Metrics, owner: type[Metrics]) -> M: ...


def _counter(text: str, *labels: str) -> _Row[Counter]:
    return _Row(lambda name, registry: Counter(name, text, labels, registry=registry))


def _histogram(
    text: str, *labels: str, buckets: tuple[float, ...] = SECONDS_BUCKETS
) -> _Row[Histogram]:
    return _Row(
        lambda name, registry: Histogram(name, text, labels, registry=registry, buckets=buckets)
    )


def _gauge(text: str, *labels: str, mode: GaugeMode = "livesum") -> _Row[Gauge]:
    return _Row(
        lambda name, registry: Gauge(name, text, labels, registry=registry, multiprocess_mode=mode)
    )


class Metrics:
    """The collectors on one registry: a new metric is a new row.

    A row is the text and the labels; the attribute's name, after `abridge_`, is the metric's, with
    its unit. On an instance, the attribute is the collector itself.
    """

    requests = _counter("Requests to an API, by outcome.", *BY_MODEL, "outcome")
    request_seconds = _histogram("Time from a request's arrival to its end.", *BY_MODEL)
    refusals = _counter("Requests that Abridge itself refused, by error code.", "code")
    key_requests = _counter(
        "Requests by key of server.keys_file, and by outcome.", "key", "outcome"
    )
    key_tokens = _counter("Tokens used, by key, including those of summaries.", "key")
    key_cost = _counter("Money spent, by key, as far as the models have prices.", "key", "currency")
    team_requests = _counter("Requests by the key's team, and by outcome.", "team", "outcome")
    team_tokens = _counter("Tokens used, by team, including those of summaries.", "team")
    team_cost = _counter(
        "Money spent, by team, as far as the models have prices.", "team", "currency"
    )
    limit_refusals = _counter(
        "Requests refused because of a limit, by its holder (key or team) and its name.",
        "holder",
        "limit",
    )
    limit_rounds = _counter(
        "Round trips that report how much of the limits is used, by result.", "result"
    )
    limits_alone = _gauge("Processes that count limits alone, each with its share.")
    requests_in_flight = _gauge("Requests being forwarded.", "upstream")
    websockets_open = _gauge("Open WebSockets of clients.")
    background_running = _gauge("Background responses that Abridge runs.")
    background_responses = _counter(
        "Background responses that Abridge ran, by their final status.", "status"
    )
    requests_in_flight_limit = _gauge("Maximum number of requests being forwarded.")
    upstream_info = _gauge(
        "1, or 0 once a change of settings has removed it; labelled with the profile, and with "
        "whether it needs earlier reasoning back.",
        "upstream",
        "profile",
        "reasoning",
        mode="livemax",
    )
    upstream_up = _gauge(
        "1 if an upstream answers; 0 if it failed several times in a row, as far as each process "
        "knows.",
        "upstream",
        mode="livemin",
    )
    upstream_responses = _counter("Responses of upstreams, by status.", "upstream", "status")
    upstream_failures = _counter(
        "Requests without a complete response from upstream, by cause.", "upstream", "cause"
    )
    upstream_failovers = _counter(
        "Requests that moved on to an upstream's fallback, by cause.",
        "upstream",
        "fallback",
        "cause",
    )
    state_refused = _counter(
        "Requests sent again without reasoning state, which upstream had refused.", "upstream"
    )
    upstream_seconds = _histogram("Time until an upstream's response headers.", "upstream")
    summaries = _counter(
        "Reasoning items for which a summary was due, by outcome.", *BY_SUMMARY, "outcome"
    )
    summarizer_tokens = _counter(
        "Tokens reported by summarizers.", "upstream", "model", "style", "summarizer", "type"
    )
    upstream_tokens = _counter(
        "Tokens reported by upstreams; reasoning is part of the output.", *BY_MODEL, "type"
    )
    summarizer_in_flight = _gauge("Summarizer calls in progress.")
    summarizer_in_flight_limit = _gauge("Maximum number of summarizer calls in progress.")
    breaker_open = _gauge("Summarizers whose circuit breaker is open.")
    summarizer_seconds = _histogram(
        "Time that a summarizer call took, one for each part.", "summarizer", "outcome"
    )
    review_seconds = _histogram("Time that the review of a part took.", "outcome")
    held_seconds = _histogram(
        "Time that an answer waited for its summary.", *BY_SUMMARY, buckets=HELD_BUCKETS
    )
    first_part_seconds = _histogram(
        "Time from a request to the first text of its summary.", *BY_MODEL
    )
    first_answer_seconds = _histogram(
        "Time from a request to the first piece of its answer.", *BY_MODEL
    )
    chunk_seconds = _histogram(
        "Average time between two pieces of a streamed answer.", *BY_MODEL, buckets=CHUNK_BUCKETS
    )
    overhead_seconds = _histogram(
        "Time that Abridge itself added before upstream was called.",
        "api",
        buckets=OVERHEAD_BUCKETS,
    )
    reasoning_characters = _counter("Characters of raw reasoning.", "api", "upstream")
    marks_removed = _counter(
        "Pieces of data that Abridge had added to a response and removed from a later request.",
        "api",
    )
    reasoning_restored = _counter(
        "Turns of a later request whose reasoning was sent upstream again, by where it came from.",
        *BY_UPSTREAM,
        "source",
    )
    reasoning_missed = _counter(
        "Turns of a later request whose reasoning should have been restored and was not found.",
        *BY_UPSTREAM,
    )
    reasoning_dropped = _counter(
        "Turns of a later request whose reasoning was left out, by reason.", *BY_UPSTREAM, "reason"
    )
    blobs_refused = _counter(
        "Requests refused because of a damaged encrypted_content made by Abridge.", *BY_UPSTREAM
    )
    hidden = _counter(
        "Pieces of answers left out where reasoning is hidden, by reason.", "profile", "kind"
    )
    dropped_fields = _counter("Unknown fields dropped where reasoning is hidden.", "api")
    reader_faults = _counter(
        "Events from upstream that were out of order, and ends of answers without a reason.",
        *BY_UPSTREAM,
    )
    final_text_mismatches = _counter(
        "Texts and arguments from upstream that are not the sum of their deltas.", *BY_UPSTREAM
    )
    streams_open = _gauge("Responses in progress that Abridge works on.", "api")
    held_bytes = _gauge("Bytes of answers waiting for a summary.")
    store_operations = _counter("Operations on a store, by result.", "operation", "result")
    store_seconds = _histogram(
        "Time that an operation on a store took.", "operation", buckets=OVERHEAD_BUCKETS
    )
    store_bytes = _gauge("Bytes of reasoning in the store.")
    ledger_waiting = _gauge("Entries that wait to be written to the ledger.")
    ledger_failures = _counter("Attempts to write to the ledger that failed.")
    ledger_lost = _counter("Entries that were not written to the ledger and are lost.")
    workers = _gauge("Processes that serve requests.")
    worker_start_failures = _counter("Attempts to replace a worker that failed.")
    reloads = _counter("Changes of the settings, by outcome.", "outcome")
    settings_hash = _gauge("Hash of the settings in force, without secrets.", mode="livemax")
    settings_refused = _gauge(
        "1 if the latest settings could not be used, and others are in force.", mode="livemax"
    )
    build_info = _gauge("Always 1; the label says which version runs.", "version", mode="max")
    start_time_seconds = _gauge(
        "When the newest process began, in seconds since the epoch.", mode="max"
    )
    memory_bytes = _gauge("Resident memory.")
    cpu_seconds = _counter("CPU time used.")
    loop_lag_seconds = _histogram("Delay of the event loop.", buckets=OVERHEAD_BUCKETS)

    def __init__(self, registry: CollectorRegistry) -> None:
        for row in vars(Metrics).values():
            if isinstance(row, _Row):
                row.create(self, registry)


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


class NameLabels:
    """Bounds the values of a label that is a name: the first `limit` names keep theirs, and so do
    those that are expected; all others become `other`."""

    def __init__(self, limit: int) -> None:
        self._known: set[str] = set()
        self._limit = limit

    def expect(self, names: Iterable[str]) -> None:
        """Let names be kept from now on."""
        known = len(self._known)
        self._known.update(names)
        self._limit += len(self._known) - known

    def label(self, name: str | None, *, may_add: bool = True) -> str:
        if not name:
            return "unknown"
        if may_add and len(self._known) < self._limit:
            self._known.add(name)
        return name if name in self._known else "other"
