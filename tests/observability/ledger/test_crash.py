"""Test what a ledger has of a process that is killed while it serves."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from signal import SIGKILL, SIGTERM
from typing import Any

import httpx
import pytest

from abridge.config.settings import Settings
from abridge.observability.ledger import open_backend
from abridge.observability.ledger.redis_stream import STREAM
from tests.observability.ledger.cases import requests, usage_query
from tests.support.redis_server import Server
from tests.support.servers import until
from tests.support.sidecar import in_front_of
from tests.support.streams import completion
from tests.support.upstream import Answer, Upstream

COMPLETION = completion({"role": "assistant", "content": "Hello."})
PROMISED = 1.5
"""Seconds after which an entry outlives the process."""

CLIENTS = 8


@pytest.fixture(params=["redis_server", "postgres_server"])
async def url(request: pytest.FixtureRequest) -> str:
    server = request.getfixturevalue(request.param)
    if not isinstance(server, Server):
        return str(await server.new_database())
    with server.client() as client:
        client.delete(STREAM)
    return server.url


class Load:
    """Clients that ask one request after the other, each for a model of its own name."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client, self._url = client, url
        self._numbers = count()
        self.answered: list[str] = []

    async def run(self) -> None:
        with suppress(httpx.TransportError):
            while True:
                await self._ask(f"m-{next(self._numbers)}")

    async def _ask(self, model: str) -> None:
        body: Any = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
        answer = await self._client.post(f"{self._url}/v1/chat/completions", json=body)
        assert answer.json() == COMPLETION
        self.answered.append(model)


async def ledger_of(url: str) -> dict[str, int]:
    backend = open_backend(Settings(ledger={"url": url}))
    assert backend is not None
    try:
        return requests(await backend.read(usage_query("model")))
    finally:
        await backend.aclose()


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_process_that_is_killed_loses_its_last_moment_alone(url: str, workers: str) -> None:
    flags = ("--workers", workers)
    upstream = Upstream(Answer.json(COMPLETION))
    async with in_front_of(upstream, *flags, ABRIDGE_LEDGER__URL=url) as (running, client):
        load = Load(client, running.url)
        asking = [asyncio.create_task(load.run()) for _ in range(CLIENTS)]
        await until(lambda: len(load.answered) > 50)
        safe = list(load.answered)
        await asyncio.sleep(PROMISED)
        running.interrupt(SIGKILL)
        await asyncio.gather(*asking)
        found = await ledger_of(url)
    assert set(safe) <= found.keys()
    assert set(found.values()) == {1}
    assert len(load.answered) > len(safe)


async def test_a_process_that_is_told_to_end_loses_nothing(url: str) -> None:
    upstream = Upstream(Answer.json(COMPLETION))
    async with in_front_of(upstream, ABRIDGE_LEDGER__URL=url) as (running, client):
        load = Load(client, running.url)
        asking = [asyncio.create_task(load.run()) for _ in range(CLIENTS)]
        await until(lambda: len(load.answered) > 50)
        running.signal(SIGTERM)
        await running.end()
        await asyncio.gather(*asking)
        found = await ledger_of(url)
    assert set(load.answered) <= found.keys()
