"""Call upstreams, and count responses and failures."""

from __future__ import annotations

from time import monotonic

import httpx
from starlette.types import Scope

from abridge.metrics import Metrics
from abridge.proxy.failures import FAILURES, Failure, failure_of
from abridge.proxy.place import Place


class Asking:
    """Sends requests by the transport it owns, and records metrics."""

    def __init__(self, transport: httpx.AsyncBaseTransport, metrics: Metrics) -> None:
        self._transport = transport
        self._metrics = metrics

    async def ask(
        self, place: Place, scope: Scope, body: bytes | httpx.AsyncByteStream
    ) -> httpx.Response:
        """Return the response as soon as its headers are in. Raises one of `TRANSPORT_ERRORS`."""
        began = monotonic()
        try:
            request = place.request(scope, body)
            response = await self._transport.handle_async_request(request)
        except FAILURES as error:
            self.failed(place, failure_of(error))
            raise
        self._metrics.upstream_seconds.labels(place.name).observe(monotonic() - began)
        self._metrics.upstream_responses.labels(place.name, response.status_code).inc()
        return response

    def failed(self, place: Place, failure: Failure) -> None:
        """Count a missing or incomplete response."""
        self._metrics.upstream_failures.labels(place.name, failure.cause).inc()

    async def aclose(self) -> None:
        await self._transport.aclose()
