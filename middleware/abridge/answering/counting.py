"""Where what happens is counted."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from starlette.types import Scope

from abridge.history.policy import Mended
from abridge.metrics import Metrics, metrics_on
from abridge.settings import ROUTE, Route
from abridge.wire.api import Api

INNER = "abridge.inner"
"""The scope's key by which a summary's own call is known where it comes back here: no client asked
it, so that it is not counted."""


class Counting:
    """Chooses the collectors for a request."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._uncounted = metrics_on(CollectorRegistry())

    def of(self, scope: Scope) -> Metrics:
        return self._uncounted if INNER in scope else self._metrics

    def count(self, api: Api | None, scope: Scope, outcome: str) -> None:
        """A request to an API has ended."""
        if api is not None:
            route: Route | None = scope.get(ROUTE)
            name = route.upstream.name if route is not None else "none"
            self.of(scope).requests.labels(api.name, name, outcome).inc()

    def drop(self, api: Api, scope: Scope, fields: int) -> None:
        """So many fields of a request were left out."""
        self.of(scope).dropped_fields.labels(api.name).inc(fields)

    def mended(self, api: Api, scope: Scope, mended: Mended) -> None:
        """What was done to a request's history."""
        metrics, route = self.of(scope), scope[ROUTE]
        where = api.name, route.upstream.name
        metrics.marks_removed.labels(api.name).inc(mended.removed)
        metrics.reasoning_missed.labels(*where).inc(mended.missed)
        for source, turns in mended.restored.items():
            metrics.reasoning_restored.labels(*where, source).inc(turns)
        for reason, turns in mended.dropped.items():
            metrics.reasoning_dropped.labels(*where, reason).inc(turns)

    def refused(self, api: Api, scope: Scope) -> None:
        """A blob was refused, and its request with it."""
        route: Route = scope[ROUTE]
        self.of(scope).blobs_refused.labels(api.name, route.upstream.name).inc()

    def store_operation(self, operation: str, result: str, seconds: float) -> None:
        """A store was asked for something, or given it."""
        self._metrics.store_operations.labels(operation, result).inc()
        self._metrics.store_seconds.labels(operation).observe(seconds)

    def store(self, size: int) -> None:
        """So many bytes of reasoning are remembered now."""
        self._metrics.store_bytes.set(size)
