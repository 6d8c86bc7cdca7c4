"""Abridge's own paths: whether it lives, whether it wants requests, what it has counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router


class Health:
    """Whether the server wants more requests: `ready` is false before it serves, and while it
    drains."""

    def __init__(self, *, ready: bool = True) -> None:
        self.ready = ready


class Own(Router):
    """An app with these paths alone. It remembers what was told last, so that whoever collects the
    figures can be waited for."""

    def __init__(self, prefix: str, health: Health, registry: CollectorRegistry) -> None:
        self._health = health
        self._registry = registry
        self._encode: Callable[[CollectorRegistry], bytes] = generate_latest
        self._told: frozenset[bytes] | None = None
        self._asked = asyncio.Event()
        super().__init__(
            [
                Route(f"{prefix}/healthz", self._healthz),
                Route(f"{prefix}/readyz", self._readyz),
                Route(f"{prefix}/metrics", self._metrics),
            ]
        )

    @property
    def all_told(self) -> bool:
        """Whether nothing was counted since the figures were asked for, if they ever were."""
        return self._told is None or self._told == _counters(self._encode(self._registry))

    async def asked(self) -> None:
        """Wait until the figures are asked for again."""
        self._asked.clear()
        await self._asked.wait()

    async def _healthz(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _readyz(self, _: Request) -> Response:
        if self._health.ready:
            return PlainTextResponse("ready\n")
        return PlainTextResponse("not ready\n", status_code=503)

    async def _metrics(self, request: Request) -> Response:
        self._encode, content_type = choose_encoder(request.headers.get("accept", ""))
        figures = await asyncio.to_thread(self._encode, self._registry)  # or streams would wait
        self._told = _counters(figures)
        self._asked.set()
        return Response(figures, media_type=content_type)


def _counters(figures: bytes) -> frozenset[bytes]:
    """What requests have counted: the counters that have labels, unlike those of the process."""
    return frozenset(
        line for line in figures.splitlines() if line.startswith(b"abridge_") and b"_total{" in line
    )
