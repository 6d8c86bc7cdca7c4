"""Abridge over real sockets, in front of a scripted upstream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from openai import AsyncOpenAI
from prometheus_client import CollectorRegistry

from abridge.sidecar.app import create_app
from tests.support.deployments import settings_for
from tests.support.servers import serve
from tests.support.summarizers import Scripted
from tests.support.upstream import Upstream

KEY = "sk-anna-1234"


@asynccontextmanager
async def serve_abridge(
    upstream: Upstream, *, entry: Mapping[str, Any] | None = None, **tables: Any
) -> AsyncIterator[str]:
    """Serve Abridge and yield its base URL. `entry` are settings of the upstream."""
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
    """Serve Abridge and yield the official client."""
    async with (
        serve_abridge(upstream, **tables) as address,
        AsyncOpenAI(base_url=address, api_key=KEY, max_retries=0) as client,
    ):
        yield client
