"""Admin endpoints: liveness, readiness and metrics."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from time import monotonic

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import choose_encoder
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router

SCRAPES_NOTED = 5

LEAST_SCRAPES = 3
"""Fewer do not tell an interval: somebody has had a look."""

SHORTEST_WAIT = 10.0
"""Seconds after a scrape before the next is overdue, however short the interval."""


class Health:
    """Readiness of the server."""

    def __init__(self, *, ready: bool = True) -> None:
        self.ready = ready  # false before the server accepts requests, and while it drains


class AdminEndpoints(Router):
    """An app with the admin endpoints alone.

    It remembers the counters of the last scrape and when the last few came, so that a shutdown can
    wait until all that was counted has been scraped.
    """

    def __init__(
        self,
        prefix: str,
        health: Health,
        registry: CollectorRegistry,
        *,
        metrics_elsewhere: bool = False,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """With `metrics_elsewhere`, the path of the metrics says that another port has them."""
        self._health = health
        self._registry = registry
        self._encode: Callable[[CollectorRegistry], bytes] = generate_latest
        self._last_counters: frozenset[bytes] | None = None
        self._scraped = asyncio.Event()
        self._clock = clock
        self._scraped_at: deque[float] = deque(maxlen=SCRAPES_NOTED)
        super().__init__(
            [
                Route(f"{prefix}/healthz", self._healthz),
                Route(f"{prefix}/readyz", self._readyz),
                Route(
                    f"{prefix}/metrics",
                    self._metrics_elsewhere if metrics_elsewhere else self._metrics,
                ),
            ]
        )

    @property
    def all_scraped(self) -> bool:
        """True if no request was counted since the last scrape, or if there never was a scrape."""
        return self._last_counters is None or self._last_counters == _parse_counters(
            self._encode(self._registry)
        )

    @property
    def scrape_due_in(self) -> float | None:
        """Seconds within which another scrape should come. None if none did at an interval, or not
        for long."""
        due_in = scrape_due_at(self._scraped_at) - self._clock()
        return due_in if due_in > 0 else None

    async def wait_for_scrape(self) -> None:
        """Wait for the next scrape."""
        self._scraped.clear()
        await self._scraped.wait()

    async def _healthz(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _readyz(self, _: Request) -> Response:
        if self._health.ready:
            return PlainTextResponse("ready\n")
        return PlainTextResponse("not ready\n", status_code=503)

    async def _metrics_elsewhere(self, _: Request) -> Response:
        return PlainTextResponse("The metrics are on the admin port.\n", status_code=404)

    async def _metrics(self, request: Request) -> Response:
        self._encode, content_type = choose_encoder(request.headers.get("accept", ""))
        # in a thread: it can take long enough to delay streams
        exposition = await asyncio.to_thread(self._encode, self._registry)
        scraped = BackgroundTask(self._note_scrape, exposition)
        return Response(exposition, media_type=content_type, background=scraped)

    async def _note_scrape(self, exposition: bytes) -> None:
        """Note what was scraped once it was sent: a shutdown may end all else then."""
        self._last_counters = await asyncio.to_thread(_parse_counters, exposition)
        self._scraped_at.append(self._clock())
        self._scraped.set()


def scrape_due_at(times: Sequence[float]) -> float:
    """Return the time until which the next of some scrapes should come: twice the longest pause
    between them, after the last. 0 if they are too few to tell."""
    if len(times) < LEAST_SCRAPES:
        return 0
    longest = max(later - earlier for earlier, later in pairwise(times))
    return times[-1] + max(2 * longest, SHORTEST_WAIT)


def _parse_counters(exposition: bytes) -> frozenset[bytes]:
    """Extract the counters of requests: unlike those of the process, they have labels."""
    return frozenset(
        line
        for line in exposition.splitlines()
        if line.startswith(b"abridge_") and b"_total{" in line
    )
