"""Abridge as a client finds it: over real sockets, before a scripted upstream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from openai import AsyncOpenAI
from prometheus_client import CollectorRegistry

from abridge.app import create_app
from tests.support.deployments import settings_for
from tests.support.servers import serve
from tests.support.summarizers import Scripted
from tests.support.upstream import Upstream

KEY = "sk-anna-1234"


@asynccontextmanager
async def front(
    upstream: Upstream, *, entry: Mapping[str, Any] | None = None, **tables: Any
) -> AsyncIterator[str]:
    """The address at which a client finds it. `entry` is the upstream's in the settings."""
    async with serve(upstream) as address:
        settings = settings_for(
            upstreams=[{"base_url": f"{address}/v1", **(entry or {})}],
            summarizer={"kind": "object"},
            **tables,
        )
        app = create_app(settings, summarizer=Scripted(), registry=CollectorRegistry())
        try:
            async with serve(app) as sidecar:
                yield f"{sidecar}/v1"
        finally:
            await app.aclose()


@asynccontextmanager
async def connect(upstream: Upstream, **tables: Any) -> AsyncIterator[AsyncOpenAI]:
    """The official client, in front of it."""
    async with (
        front(upstream, **tables) as address,
        AsyncOpenAI(base_url=address, api_key=KEY, max_retries=0) as client,
    ):
        yield client
