"""The sidecar as an ASGI app: the middleware over the proxy, with Abridge's own paths beside it."""

from __future__ import annotations

import httpx
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from abridge.errors import SettingsError
from abridge.middleware import AbridgeMiddleware
from abridge.page import Page
from abridge.proxy import Proxy
from abridge.settings import Settings
from abridge.summarize import Summarizer
from abridge.summarize.guard import Review


class Health:
    """Whether the server wants more requests: `ready` is false while it drains."""

    def __init__(self) -> None:
        self.ready = True


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
    ) -> None:
        for place, upstream in enumerate(settings.upstreams or (None,)):
            if upstream is None or upstream.base_url is None:
                raise SettingsError(f"upstreams[{place}].base_url: a proxy needs one")
        self.health = Health()
        self._registry = registry or REGISTRY
        self._proxy = Proxy(settings, transport, registry)
        page = Page(settings.summarizer.kind) if settings.server.page else None
        self._middleware = AbridgeMiddleware(
            self._proxy,
            settings,
            summarizer=summarizer,
            review=review,
            transport=transport,
            registry=registry,
            sinks=() if page is None else (page.journal.take,),
        )
        self.admin = Router(self._own_paths(""))
        self._router = Router(
            [*self._own_paths("/abridge"), *(page.routes() if page is not None else ())],
            default=self._middleware,
            redirect_slashes=False,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._middleware(scope, receive, send)
        else:
            await self._router(scope, receive, send)

    async def aclose(self) -> None:
        await self._middleware.aclose()
        await self._proxy.aclose()

    def _own_paths(self, prefix: str) -> list[Route]:
        return [
            Route(f"{prefix}/healthz", self._healthz),
            Route(f"{prefix}/readyz", self._readyz),
            Route(f"{prefix}/metrics", self._metrics),
        ]

    async def _healthz(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _readyz(self, _: Request) -> Response:
        if self.health.ready:
            return PlainTextResponse("ready\n")
        return PlainTextResponse("draining\n", status_code=503)

    async def _metrics(self, request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(self._registry), media_type=content_type)


def create_app(
    settings: Settings,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    summarizer: Summarizer | None = None,
    review: Review | None = None,
    registry: CollectorRegistry | None = None,
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
    )
