"""Proxies under test and their recording upstreams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.config.settings import Settings
from abridge.http.transport import Transport
from abridge.sidecar.proxy.proxy import Proxy
from abridge.sidecar.server.http_protocol import protocol_factory
from tests.http.requests import connections_in_use, unread_bytes
from tests.support.servers import Listener, Script, listen, serve, until


def settings(*upstreams: str | dict[str, Any], **tables: Any) -> Settings:
    """Return settings for upstreams, each given by its base_url or its table."""
    entries = [entry if isinstance(entry, dict) else {"base_url": entry} for entry in upstreams]
    return Settings.model_validate({"upstreams": entries, **tables})


class FakeUpstream:
    """A transport that answers every request alike and records it."""

    def __init__(self, answer: httpx.Response | Exception | None = None) -> None:
        self.requests: list[httpx.Request] = []
        self.answer = answer if answer is not None else httpx.Response(200, text="ok")
        self.transport = httpx.MockTransport(self)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    @property
    def request(self) -> httpx.Request:
        (request,) = self.requests
        return request

    @property
    def target(self) -> bytes:
        return bytes(self.request.extensions["target"])


def proxy_for(*upstreams: str | dict[str, Any], **tables: Any) -> tuple[Proxy, FakeUpstream]:
    upstream = FakeUpstream()
    chosen = upstreams or ("http://upstream.test/v1",)
    return Proxy(settings(*chosen, **tables), upstream.transport), upstream


class ObservedApp:
    """An app that records how each of its requests ended."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.ends: list[BaseException | None] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        end: BaseException | None = None
        try:
            await self.app(scope, receive, send)
        except BaseException as error:
            end = error
            raise
        finally:
            task = asyncio.current_task()
            assert task is not None
            assert not task.cancelling()  # a task of the server's
            self.ends.append(end)


@dataclass(frozen=True)
class ServedProxy:
    """`ends` holds, for each request, what the proxy raised or None."""

    url: str
    upstream: Listener
    ends: list[BaseException | None]
    transport: Transport

    @property
    def upload_is_blocked(self) -> bool:
        """True while upstream does not read a request's body."""
        return any(link._writable is not None for link in connections_in_use(self.transport))

    @property
    def unread_bytes(self) -> int:
        """Bytes of responses that wait for slow clients."""
        return sum(map(unread_bytes, connections_in_use(self.transport)))

    async def ended(self) -> BaseException | None:
        await until(lambda: bool(self.ends))
        (end,) = self.ends
        return end


@asynccontextmanager
async def serve_proxy(
    *scripts: Script, path: str = "/v1", own_server: bool = False, **tables: Any
) -> AsyncIterator[ServedProxy]:
    """Serve a proxy before an upstream that plays `scripts`: by uvicorn's protocol, or our own."""
    async with listen(*scripts) as upstream:
        chosen = settings(upstream.url + path, **tables)
        transport = Transport(
            connect=chosen.limits.connect, headers=chosen.limits.headers, idle=chosen.limits.idle
        )
        proxy = Proxy(chosen, transport)
        observed = ObservedApp(proxy)
        try:
            options = {"http": protocol_factory(chosen.limits)} if own_server else {}
            async with serve(observed, **options) as url:
                yield ServedProxy(url, upstream, observed.ends, transport)
        finally:
            await proxy.aclose()
