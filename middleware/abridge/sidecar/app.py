"""The sidecar as an ASGI app: the middleware over the proxy, plus the admin endpoints and the
page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
from prometheus_client import CollectorRegistry
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from abridge.apis.responses.api import RESPONSES
from abridge.config.client_key import CLIENT_KEY, key_name
from abridge.config.settings import Settings, check_settings
from abridge.errors import RequestError, SettingsError
from abridge.http.asgi import decoded_path, run_lifespan
from abridge.middleware import AbridgeMiddleware, send_error
from abridge.observability.metrics import exposed_registry
from abridge.observability.record import new_request_id
from abridge.pipeline.answers.error_writer import ErrorWriter
from abridge.sidecar.admin import AdminEndpoints, Health
from abridge.sidecar.client_keys.door import ClientKeys, open_keys
from abridge.sidecar.page.page import Page
from abridge.sidecar.proxy.proxy import Proxy
from abridge.summarizers.review import Review
from abridge.summarizers.summarizer import Summarizer

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider


PATH_PREFIX = "/abridge"
"""Prefix of the paths that Abridge serves itself."""

OPEN_PATHS = frozenset(f"{PATH_PREFIX}/{name}" for name in ("healthz", "readyz", "metrics"))
"""Those that need no key."""


class Abridge:
    """An ASGI app that forwards to the upstreams in `settings` and adds summaries: run it, or mount
    it. Raises SettingsError.

    The server that runs it sets `health`. `admin` is an app with only the admin endpoints, for
    another port.
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
        check_settings(settings)
        for index, upstream in enumerate(settings.upstreams or (None,)):
            if upstream is None or upstream.base_url is None:
                raise SettingsError(f"upstreams[{index}].base_url: a proxy needs one")
        self.health = Health()
        self._proxy = Proxy(settings, transport, registry)
        server = settings.server
        keys = self._keys = open_keys(settings, registry)
        page = Page(settings.summarizer.kind, server.allowed_hosts or ()) if server.page else None
        self._middleware = AbridgeMiddleware(
            self._proxy,
            settings,
            summarizer=summarizer,
            review=review,
            transport=transport,
            registry=registry,
            tracer_provider=tracer_provider,
            tenant=None if keys is None else key_name,
            sinks=(
                *(() if page is None else (page.journal.add,)),
                *(() if keys is None else (keys.count,)),
            ),
            keys=keys,
        )
        if server.websockets is not False:
            self._middleware.load_sessions()
        exposed = exposed_registry(registry)
        self.admin = AdminEndpoints("", self.health, exposed)
        routes = [
            *AdminEndpoints(
                PATH_PREFIX, self.health, exposed, metrics_elsewhere=server.admin_port is not None
            ).routes,
            *(page.routes() if page else ()),
        ]
        self._router = Router(routes, default=self._middleware, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await run_lifespan(self._middleware, scope, receive, send, self._close_keys)
        elif not decoded_path(scope).startswith(PATH_PREFIX):
            await self._middleware(scope, receive, send)
        elif (
            self._keys is None
            or scope["type"] == "websocket"  # which the page has none of
            or decoded_path(scope) in OPEN_PATHS
        ):
            await self._router(scope, receive, send)
        else:
            await self._serve_page(self._keys, scope, receive, send)

    async def _serve_page(
        self, keys: ClientKeys, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve the page to who has a key, for which a browser asks."""
        try:
            key = await keys.authenticate(scope, from_browser=True)
        except RequestError as error:
            await send_error(error, send, ErrorWriter(RESPONSES, new_request_id()))
        else:
            await self._router({**scope, CLIENT_KEY: key}, receive, send)

    async def finish_background(self) -> None:
        """Wait for the background responses that run."""
        await self._middleware.finish_background()

    async def aclose(self) -> None:
        """Close all connections; needed only where no lifespan runs."""
        await self._middleware.aclose()
        await self._proxy.aclose()
        await self._close_keys()

    async def _close_keys(self) -> None:
        if self._keys is not None:
            await self._keys.aclose()


create_app = Abridge
"""Creates the app: `app.mount("/llm", create_app(settings))`."""
