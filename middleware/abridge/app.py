"""The sidecar as an ASGI app: the middleware over the proxy, with Abridge's own paths beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
from prometheus_client import CollectorRegistry
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from abridge.errors import SettingsError
from abridge.metrics import exposed
from abridge.middleware import AbridgeMiddleware
from abridge.own import Health, Own
from abridge.page import Page
from abridge.paths import path_of
from abridge.proxy import Proxy
from abridge.settings import Settings
from abridge.summarize import Summarizer
from abridge.summarize.guard import Review

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider


OWN = "/abridge"
"""Begins the paths that are Abridge's own."""


class Abridge:
    """What `create_app` makes. `health` is for whoever runs it, `admin` an app with metrics and
    health alone, for a port of its own. `aclose` closes what is open where no lifespan runs."""

    def __init__(
        self,
        settings: Settings,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        summarizer: Summarizer | None = None,
        review: Review | None = None,
        registry: CollectorRegistry | None = None,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        for place, upstream in enumerate(settings.upstreams or (None,)):
            if upstream is None or upstream.base_url is None:
                raise SettingsError(f"upstreams[{place}].base_url: a proxy needs one")
        self.health = Health()
        self._proxy = Proxy(settings, transport, registry)
        page = Page(settings.summarizer.kind) if settings.server.page else None
        self._middleware = AbridgeMiddleware(
            self._proxy,
            settings,
            summarizer=summarizer,
            review=review,
            transport=transport,
            registry=registry,
            tracer_provider=tracer_provider,
            sinks=() if page is None else (page.journal.take,),
        )
        figures = exposed(registry)
        self.admin = Own("", self.health, figures)
        own = [*Own(OWN, self.health, figures).routes, *(page.routes() if page else ())]
        self._router = Router(own, default=self._middleware, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan" and path_of(scope).startswith(OWN):
            await self._router(scope, receive, send)
        else:
            await self._middleware(scope, receive, send)

    async def aclose(self) -> None:
        await self._middleware.aclose()
        await self._proxy.aclose()


def create_app(
    settings: Settings,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    summarizer: Summarizer | None = None,
    review: Review | None = None,
    registry: CollectorRegistry | None = None,
    tracer_provider: TracerProvider | None = None,
) -> Abridge:
    """An ASGI app that forwards to the upstreams in `settings` and summarizes on the way.

    Run it, or mount it: `app.mount("/llm", create_app(settings))`. Raises SettingsError.
    """
    return Abridge(
        settings,
        transport=transport,
        summarizer=summarizer,
        review=review,
        registry=registry,
        tracer_provider=tracer_provider,
    )
