"""Test that replicas tell each other about upstreams: real processes of `abridge serve`, which
share a real Redis."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from prometheus_client import CollectorRegistry

from abridge.apis.registry import UPSTREAM_APIS
from abridge.apis.responses.api import RESPONSES
from abridge.config.settings import Settings
from abridge.memory.stores.memory import MemoryStore
from abridge.observability.metrics import metrics_for
from abridge.pipeline.discovery import ApiDiscovery
from abridge.pipeline.findings import FOUND_TTL
from abridge.pipeline.health import UpstreamHealth
from abridge.pipeline.shared_findings import READ_SECONDS, SharedFindings
from tests.support.redis_server import Server
from tests.support.servers import serve, soon
from tests.support.sidecar import Sidecar, client, sidecar
from tests.support.streams import completion
from tests.support.upstream import Answer, ReceivedRequest, Upstream

HEARD_SECONDS = 3 * READ_SECONDS
"""Seconds after which each replica has read what the others found, also on a busy machine."""

CHAT, RESPONSES_PATH = "/v1/chat/completions", "/v1/responses"
MISSING = Answer.json({"detail": "Not Found"}, 404)
BUSY = Answer.json({"error": {"message": "busy"}}, 503)


REFUSAL = Answer.json({"error": {"message": "", "param": "reasoning_effort"}}, 400)


class ChatOnly(Upstream):
    """An upstream without `/responses` and `reasoning_effort`, which may be busy."""

    def __init__(self) -> None:
        super().__init__(Answer.json(completion({"content": "Hello."})))
        self.is_busy = False
        self.refused = 0

    def answer(self, request: ReceivedRequest) -> Answer:
        answer = super().answer(request)
        if self.is_busy:
            return BUSY
        if "reasoning_effort" in json.loads(request.body):
            self.refused += 1
            return REFUSAL
        return answer if request.path.endswith("chat/completions") else MISSING

    def asked(self, path: str) -> int:
        return sum(each.path == path for each in self.requests)


@dataclass
class Fleet:
    replicas: list[Sidecar]
    session: httpx.AsyncClient

    async def ask(self, number: int, path: str = CHAT, **more: Any) -> int:
        spoken = {"messages": [{"role": "user", "content": "Hi"}]} if path == CHAT else {}
        body = {"model": "m", **(spoken or {"input": "Hi"}), **more}
        return (await self.session.post(self.replicas[number].url + path, json=body)).status_code

    async def up(self, number: int) -> str:
        """Return the metric's value of upstream `first` in a replica."""
        text = (await self.session.get(self.replicas[number].metrics)).text
        (line,) = (line for line in text.splitlines() if line.startswith(UP))
        return line.removeprefix(UP)

    async def until_up_is(self, number: int, value: str) -> None:
        found = await self.up(number)
        while found != value:
            await asyncio.sleep(0.05)
            found = await self.up(number)


UP = 'abridge_upstream_up{upstream="first"} '


@asynccontextmanager
async def fleet(store: str, first: Upstream, **settings: Any) -> AsyncIterator[Fleet]:
    """Serve two replicas with `first`, which falls back to another upstream."""
    async with AsyncExitStack() as stack:
        urls = [
            await stack.enter_async_context(serve(upstream)) for upstream in (first, ChatOnly())
        ]
        upstreams = [
            {"name": "first", "base_url": f"{urls[0]}/v1", "fallback": "second", **settings},
            {"name": "second", "base_url": f"{urls[1]}/v1", "api": "chat"},
        ]
        environ = {
            "SEAL": f"a:{b64encode(bytes(32)).decode()}",
            "ABRIDGE_HISTORY__SEAL_KEYS_ENV": "SEAL",
            "ABRIDGE_HISTORY__STORE": store,
            "ABRIDGE_UPSTREAMS": json.dumps(upstreams),
        }
        replicas = [await stack.enter_async_context(sidecar(**environ)) for _ in range(2)]
        running = Fleet(replicas, await stack.enter_async_context(client()))
        for number in range(2):  # from its first request on, a replica hears the other
            assert await running.ask(number) == 200
        yield running


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 -- what changes it is the code under test
        await asyncio.sleep(0.05)


async def test_an_api_that_one_replica_missed_another_does_not_ask_for(
    redis_server: Server,
) -> None:
    first = ChatOnly()
    async with fleet(redis_server.url, first) as replicas:
        assert await replicas.ask(0, RESPONSES_PATH) == 200
        assert first.asked(RESPONSES_PATH) == 1
        await asyncio.sleep(HEARD_SECONDS)
        assert await replicas.ask(1, RESPONSES_PATH) == 200
        assert first.asked(RESPONSES_PATH) == 1
        assert await replicas.ask(1, RESPONSES_PATH, model="another") == 200
        assert first.asked(RESPONSES_PATH) == 2


async def test_a_field_that_one_replica_saw_refused_another_does_not_add(
    redis_server: Server,
) -> None:
    first = ChatOnly()
    async with fleet(redis_server.url, first, effort="low") as replicas:
        await asyncio.sleep(HEARD_SECONDS)
        refused = first.refused
        assert refused in (1, 2)  # the replicas may have seen it at once
        assert [await replicas.ask(number, model="x") for number in (0, 0)] == [200, 200]
        assert first.refused == refused + 1
        await asyncio.sleep(HEARD_SECONDS)
        assert await replicas.ask(1, model="x") == 200
        assert first.refused == refused + 1


async def test_an_upstream_that_one_replica_found_down_another_skips_until_it_is_up(
    redis_server: Server,
) -> None:
    first = ChatOnly()
    rules = {"api": "chat", "breaker_failures": 2, "breaker_seconds": 4}
    async with fleet(redis_server.url, first, **rules) as replicas:
        first.is_busy = True
        assert [await replicas.ask(0) for _ in range(2)] == [200, 200]
        await soon(replicas.until_up_is(1, "0.0"))
        asked = len(first.requests)
        assert await replicas.ask(1) == 200
        assert len(first.requests) == asked
        first.is_busy = False

        async def is_asked_by_the_other() -> None:
            while len(first.requests) == asked:
                assert await replicas.ask(0) == 200
                await asyncio.sleep(0.05)

        await soon(is_asked_by_the_other())
        await soon(replicas.until_up_is(1, "1.0"))


async def test_replicas_answer_while_their_redis_is_away() -> None:
    first = ChatOnly()
    with Server() as server:
        async with fleet(server.url, first, breaker_failures=1) as replicas:
            server.kill()
            first.is_busy = True
            assert [await replicas.ask(number) for number in (0, 0, 1, 1)] == [200] * 4
            assert (await replicas.up(0), await replicas.up(1)) == ("0.0", "0.0")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def replica(store: MemoryStore, *names: str) -> tuple[Settings, UpstreamHealth, ApiDiscovery, Any]:
    upstreams = [{"name": name, "base_url": f"http://{name}.test/v1"} for name in names]
    settings = Settings(upstreams=upstreams)
    health = UpstreamHealth(metrics_for(CollectorRegistry()))
    discovery = ApiDiscovery()
    findings = SharedFindings(store, health, {b"apis": discovery})
    for each in (health, findings):
        each.watch(settings.upstreams)
    return settings, health, discovery, findings


async def test_what_was_found_of_one_upstream_is_not_said_of_another() -> None:
    store = MemoryStore(1 << 20, 600)
    settings, health, discovery, one = replica(store, "a")
    others, their_health, their_discovery, other = replica(store, "b", "a")
    one.start()
    other.start()
    for route in settings.routes:
        discovery.note_found(route, RESPONSES, "m", UPSTREAM_APIS["chat"])
        for _ in range(5):
            health.note(route.upstream, is_up=False)
    b, a = others.routes
    await soon(until(lambda: their_health.breaker(a.upstream).is_open))
    first = [their_discovery.candidates(route, RESPONSES, "m")[0].name for route in (a, b)]
    assert first == ["chat", "responses"]
    assert not their_health.breaker(b.upstream).is_open
    await one.aclose()
    await other.aclose()


def test_what_another_replica_found_expires_when_it_would_there() -> None:
    clock = Clock()
    settings, *_ = replica(MemoryStore(1 << 20, 600), "a")
    (route,) = settings.routes
    discovery = ApiDiscovery(clock)
    names = ("responses", "m", "chat")
    discovery.take_over(route.upstream, names, 10.0)
    assert list(discovery.known(route.upstream)) == [(names, 10.0)]
    clock.now = 10.0
    assert discovery.candidates(route, RESPONSES, "m")[0].name == "responses"
    discovery.take_over(route.upstream, names, -1.0)
    assert list(discovery.known(route.upstream)) == []
    discovery.take_over(route.upstream, names, 1e9)
    assert list(discovery.known(route.upstream)) == [(names, FOUND_TTL)]
