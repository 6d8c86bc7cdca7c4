"""The sidecar as an ASGI app: the middleware over the proxy, plus the admin endpoints and the
page."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import httpx
from prometheus_client import CollectorRegistry
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from abridge.apis.responses.api import RESPONSES
from abridge.config.client_key import CLIENT_KEY, key_name
from abridge.config.effective import settings_hash
from abridge.config.reloading import keep_until_restart
from abridge.config.settings import Settings, check_settings
from abridge.errors import RequestError, SettingsError
from abridge.http.asgi import decoded_path, run_lifespan
from abridge.lasting import Lasting
from abridge.middleware import AbridgeMiddleware
from abridge.observability.metrics import exposed_registry, metrics_for
from abridge.observability.spending import Prices
from abridge.pipeline.answers.error_writer import refuse
from abridge.sidecar.admin import AdminEndpoints, Health
from abridge.sidecar.client_keys.door import ClientKeys, check_with_keys, open_keys
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


@dataclass(slots=True, frozen=True)
class Generation:
    """What answers requests from one change of the settings to the next."""

    settings: Settings
    proxy: Proxy
    middleware: AbridgeMiddleware

    def take_effect(self) -> None:
        """Have the settings hold for what generations share."""
        self.proxy.take_effect()
        self.middleware.take_effect()


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
        self.health = Health()
        server = settings.server
        self._metrics = metrics_for(registry)
        keys = self._keys = open_keys(settings, registry)
        page = Page(settings.summarizer.kind, server.allowed_hosts or ()) if server.page else None
        self._page = page
        lasting = Lasting()
        self._owns_transports = transport is None
        self._make_proxy = partial(Proxy, transport=transport, registry=registry, lasting=lasting)
        self._make_middleware = partial(
            AbridgeMiddleware,
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
            lasting=lasting,
            entry=self._answer,
        )
        self._generation = self._generate(settings)
        self._generation.take_effect()
        self._retiring: dict[asyncio.Task[None], Generation] = {}
        self._metrics.settings_hash.set(settings_hash(settings))
        exposed = exposed_registry(registry)
        self.admin = AdminEndpoints("", self.health, exposed)
        routes = [
            *AdminEndpoints(
                PATH_PREFIX, self.health, exposed, metrics_elsewhere=server.admin_port is not None
            ).routes,
            *(page.routes() if page else ()),
        ]
        self._router = Router(routes, default=self._answer, redirect_slashes=False)

    @property
    def settings(self) -> Settings:
        """Those in force for new requests."""
        return self._generation.settings

    async def reload(self, settings: Settings) -> list[str]:
        """Answer new requests as other settings say; those under way end as they began. Requests of
        a WebSocket are new ones.

        Return the keys that stay as they were, since they need a restart. Raises SettingsError if
        the settings cannot be used; then all stays as it was.
        """
        check_settings(settings)
        settings, kept = keep_until_restart(self.settings, settings)
        # in a thread: it may import what was not needed before, and read files
        generation = await asyncio.to_thread(self._generate, settings)
        before, self._generation = self._generation, generation
        self._metrics.settings_hash.set(settings_hash(settings))
        generation.take_effect()
        task = asyncio.create_task(self._retire(before))
        self._retiring[task] = before
        task.add_done_callback(self._retiring.pop)
        if self._keys is not None:
            self._keys.prices = Prices(settings)
        if self._page is not None:
            self._page.summarizer = settings.summarizer.kind
        return kept

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.call(scope, receive, send)

    def call(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Do what `__call__` does, without a coroutine of its own, for callers within Abridge.
        Servers call `__call__`: they know an ASGI application by its being `async`."""
        if scope["type"] == "lifespan":
            return run_lifespan(self._generation.proxy, scope, receive, send, self._drain)
        if not decoded_path(scope).startswith(PATH_PREFIX):
            return self._answer(scope, receive, send)
        if (
            self._keys is None
            or scope["type"] == "websocket"  # which the page has none of
            or decoded_path(scope) in OPEN_PATHS
        ):
            return self._router(scope, receive, send)
        return self._serve_page(self._keys, scope, receive, send)

    def _answer(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return self._generation.middleware.call(scope, receive, send)

    async def _serve_page(
        self, keys: ClientKeys, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve the page to who has a key, for which a browser asks."""
        try:
            key = await keys.authenticate(scope, from_browser=True)
        except RequestError as error:
            await refuse(error, RESPONSES, scope, receive, send)
        else:
            await self._router({**scope, CLIENT_KEY: key}, receive, send)

    def _generate(self, settings: Settings) -> Generation:
        """Raises SettingsError."""
        for index, upstream in enumerate(settings.upstreams or (None,)):
            if upstream is None or upstream.base_url is None:
                raise SettingsError(f"upstreams[{index}].base_url: must be set: requests go there")
        check_with_keys(settings)
        proxy = self._make_proxy(settings)
        middleware = self._make_middleware(proxy, settings)
        if settings.server.websockets is not False:
            middleware.load_sessions()
        return Generation(settings, proxy, middleware)

    async def _retire(self, generation: Generation) -> None:
        """Close a generation's own connections once its last request has ended."""
        await generation.middleware.retire()
        if self._owns_transports:
            await generation.middleware.close_calls()
            await generation.proxy.aclose()

    async def finish_background(self, seconds: float | None = None) -> None:
        """Wait for the background responses that run, so many seconds at most."""
        await self._generation.middleware.finish_background(seconds)

    async def _drain(self) -> None:
        await self.finish_background(self.settings.server.drain)
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections; needed only where no lifespan runs."""
        retiring = dict(self._retiring)
        for task in retiring:
            task.cancel()
        await asyncio.gather(*retiring, return_exceptions=True)
        for generation in (*retiring.values(), self._generation):
            await generation.middleware.aclose()
            await generation.proxy.aclose()
        if self._keys is not None:
            await self._keys.aclose()


create_app = Abridge
"""Creates the app: `app.mount("/llm", create_app(settings))`."""
