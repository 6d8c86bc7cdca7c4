"""Abridge's own server on a socket, and a client that speaks the Responses API over WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp
from websockets.asyncio.client import ClientConnection, connect

from abridge.config.settings import Settings
from abridge.sidecar.app import create_app
from abridge.sidecar.server.browser_guard import BrowserGuard
from abridge.sidecar.server.serve import HttpServer, listen, listener_url
from tests.support.checker import ResponsesStream, check_responses
from tests.support.deployments import settings_for
from tests.support.servers import serve, soon
from tests.support.streams import frame
from tests.support.summarizers import Scripted

LAST = ("response.completed", "response.incomplete", "response.failed", "error")

ASK = {"model": "m", "input": "Hi", "reasoning": {"summary": "auto"}, "store": False}


@dataclass
class Client:
    """The client's end of a connection."""

    connection: ClientConnection

    async def create(self, **fields: Any) -> None:
        await self.send({"type": "response.create", **ASK, **fields})

    async def send(self, event: Any) -> None:
        data = event if isinstance(event, (str, bytes)) else json.dumps(event)
        await soon(self.connection.send(data))

    async def event(self) -> dict[str, Any]:
        received = await soon(self.connection.recv())
        assert isinstance(received, str)
        event = json.loads(received)
        assert isinstance(event, dict)
        return event

    async def answer(self) -> list[dict[str, Any]]:
        """Return the events of one answer, the last of which ends it."""
        events = [await self.event()]
        while events[-1]["type"] not in LAST:
            events.append(await self.event())
        return events

    async def ask(self, **fields: Any) -> ResponsesStream:
        """Return a complete answer, its order checked."""
        await self.create(**fields)
        return checked(await self.answer())

    async def error(self) -> dict[str, Any]:
        """Return the error of an event that has one, with its status."""
        event = await self.event()
        assert event["type"] == "error", event
        assert event["error"].keys() >= {"message", "type", "code", "param"}
        return {"status": event["status"], **event["error"]}

    async def close_code(self) -> int:
        """Wait until the connection is closed and return the code."""
        await soon(self.connection.wait_closed())
        assert self.connection.close_code is not None
        return self.connection.close_code


def checked(events: list[dict[str, Any]]) -> ResponsesStream:
    return check_responses(b"".join(frame(event, event["type"]) for event in events))


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[Client]:
    """Open a WebSocket to the Responses endpoint of a server."""
    address = f"{url.replace('http', 'ws', 1)}/v1/responses"
    async with connect(address, max_size=None, proxy=None, **options) as connection:
        yield Client(connection)


@dataclass
class Front:
    """A running sidecar."""

    url: str
    server: HttpServer
    settings: Settings
    registry: CollectorRegistry

    @property
    def open_websockets(self) -> float | None:
        return self.registry.get_sample_value("abridge_websockets_open")


@asynccontextmanager
async def serving(
    app: ASGIApp, settings: Settings, registry: CollectorRegistry
) -> AsyncIterator[Front]:
    """Serve an app with the sidecar's own server."""
    server = HttpServer(
        BrowserGuard(app, settings.server),
        limits=settings.limits,
        websockets=settings.server.websockets is not False,
    )
    listener = listen("127.0.0.1", 0)
    running = asyncio.create_task(server.serve([listener]))
    try:
        yield Front(listener_url(listener), server, settings, registry)
    finally:
        server.should_exit = True
        server.abort_connections()
        await soon(running)


@asynccontextmanager
async def front(
    upstream: ASGIApp, *, entry: Mapping[str, Any] | None = None, **tables: Any
) -> AsyncIterator[Front]:
    """Serve the sidecar in front of an upstream. `entry` are settings of that."""
    async with serve(upstream) as address:
        settings = settings_for(
            upstreams=[{"base_url": f"{address}/v1", **(entry or {})}],
            summarizer={"kind": "object"},
            **tables,
        )
        registry = CollectorRegistry()
        app = create_app(settings, summarizer=Scripted(), registry=registry)
        try:
            async with serving(app, settings, registry) as running:
                yield running
        finally:
            await app.aclose()
