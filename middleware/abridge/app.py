"""The sidecar as an ASGI app: the middleware over the proxy, plus the admin endpoints and the
page."""

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
"""Prefix of the paths that Abridge serves itself."""


class Abridge:
    """The app that `create_app` makes.

    `health` is set by the server that runs it. `admin` is an app with the admin endpoints alone, to
    be served on another port.
    """

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
        """Close all connections; needed only where no lifespan runs."""
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
    """Create an ASGI app that forwards to the upstreams in `settings` and adds summaries.

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
