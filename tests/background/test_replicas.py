"""Replicas that share a Redis: any of them answers for a response that another runs, or ran."""

from __future__ import annotations

import asyncio
import signal
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from openai import AsyncOpenAI
from starlette.types import ASGIApp

from abridge.background import elsewhere, run
from abridge.stored_responses import event_log
from abridge.stored_responses.leases import Lease
from tests.background.cases import begin_response, ended, events, paused, streamed
from tests.background.test_clients import poll
from tests.end_to_end.translation.test_translation import KEY, bridge
from tests.end_to_end.translation.turn import WORDS
from tests.stored_responses.conversations import NOT_FOUND, PATH, fetch, post, read_error
from tests.support.asgi import begin
from tests.support.checker import check_responses
from tests.support.redis_server import Server
from tests.support.servers import HANG, serve, until
from tests.support.sidecar import sidecar
from tests.support.upstream import Upstream

Json = dict[str, Any]
pytestmark = pytest.mark.usefixtures("patient")
SEAL_KEYS = f"a:{b64encode(bytes(32)).decode()}"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEAL_KEYS", SEAL_KEYS)
    monkeypatch.setattr(elsewhere, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(event_log, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(run, "SAVE_SECONDS", 0.02)
    monkeypatch.setattr(run, "LOOK_SECONDS", 0.02)


@asynccontextmanager
async def replicas(
    upstream: Upstream, server: Server, lease: float = 60.0
) -> AsyncIterator[tuple[ASGIApp, ASGIApp]]:
    history = {"store": server.url, "seal_keys_env": "SEAL_KEYS"}
    apps = [
        bridge(upstream, "chat", history=history, background={"lease": lease}) for _ in range(2)
    ]
    try:
        yield apps[0], apps[1]
    finally:
        for app in apps:
            await app.aclose()  # type: ignore[attr-defined]


async def test_another_replica_polls_and_continues(redis_server: Server) -> None:
    gate = asyncio.Event()
    upstream = Upstream(paused(gate))
    async with replicas(upstream, redis_server) as (one, other):
        begun = await begin_response(one)
        assert (await fetch(other, begun["id"])).json["status"] == "in_progress"
        gate.set()
        response = await ended(other, begun["id"])
        assert response == (await fetch(one, begun["id"])).json
        await post(other, "And?", previous_response_id=begun["id"])
    assert WORDS in upstream.requests[-1].body.decode()


async def test_another_replica_follows_a_running_stream(redis_server: Server) -> None:
    gate = asyncio.Event()
    async with replicas(Upstream(paused(gate)), redis_server) as (one, other):
        response_id = (await begin_response(one))["id"]
        follower = begin(
            *(other, f"{PATH}/{response_id}", b"", KEY), method="GET", query_string=b"stream=true"
        )
        await follower.until(b"reasoning_text.delta", 2)
        gate.set()
        await follower.finish()
        check_responses(follower.data)
        assert events((await streamed(one, response_id)).data) == events(follower.data)
        assert events((await streamed(other, response_id, 5)).data) == events(follower.data)[6:]


async def test_another_replica_cancels(redis_server: Server) -> None:
    upstream = Upstream(paused(asyncio.Event()))
    async with replicas(upstream, redis_server) as (one, other):
        client = begin(
            *(one, PATH, {"model": "m", "input": "Hi", "background": True, "stream": True}, KEY)
        )
        await client.until(b"reasoning_text.delta")
        response_id = events(client.data)[0]["response"]["id"]
        await until_stored(other, response_id)
        cancelled = await fetch(other, f"{response_id}/cancel", method="POST")
        assert cancelled.json["status"] == "cancelled"
        await client.finish()
        assert events(client.data)[-1]["response"]["status"] == "cancelled"
        assert (await fetch(other, response_id)).json["status"] == "cancelled"
    assert upstream.left == 1


async def test_another_replica_deletes(redis_server: Server) -> None:
    upstream = Upstream(paused(asyncio.Event()))
    async with replicas(upstream, redis_server) as (one, other):
        response_id = (await begin_response(one))["id"]
        assert (await fetch(other, response_id, method="DELETE")).json["deleted"] is True
        await until(lambda: upstream.left == 1)
        for app in (one, other):
            assert read_error(await fetch(app, response_id)) == NOT_FOUND


async def test_the_lease_is_renewed_for_as_long_as_it_runs(
    redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed: list[float] = []

    async def renew(_: Lease, seconds: float) -> bool:
        renewed.append(seconds)
        return True

    monkeypatch.setattr(Lease, "renew", renew)
    async with replicas(Upstream(paused(asyncio.Event())), redis_server, 0.1) as (one, _):
        await begin_response(one)
        await until(lambda: len(renewed) > 4)
    assert set(renewed) == {0.1}


async def test_a_response_without_a_lease_has_failed_for_good(redis_server: Server) -> None:
    """As that of a process that was stopped for longer than the lease, and then goes on."""
    upstream = Upstream(paused(asyncio.Event()))
    async with replicas(upstream, redis_server) as (one, other):
        response_id = (await begin_response(one))["id"]
        await until_stored(other, response_id)
        with redis_server.client() as client:
            leases = [key for key in client.keys("*") if 0 < client.ttl(key) <= 60]
            client.delete(*leases)
        failed = (await fetch(other, response_id)).json
        assert failed["status"] == "failed"
        assert "process" in failed["error"]["message"]
        await until(lambda: upstream.left == 1)
        assert (await ended(one, response_id))["error"] == failed["error"]
        check_responses((await streamed(other, response_id)).data)


async def test_while_the_store_is_down_nothing_fails_and_clients_are_to_try_again() -> None:
    gate = asyncio.Event()
    with Server() as server:
        async with replicas(Upstream(paused(gate)), server, lease=1.0) as (one, other):
            response_id = (await begin_response(one))["id"]
            await until_stored(other, response_id)
            server.kill()
            for path in (response_id, f"{response_id}/cancel"):
                method = "POST" if path.endswith("cancel") else "GET"
                answered = await fetch(other, path, method=method)
                assert answered.status == 503
                assert answered.json["error"]["code"] == "store_unavailable"
            gate.set()
            await until(lambda: not one._generation.middleware._serving.background._runs)  # type: ignore[attr-defined]


async def until_stored(app: ASGIApp, response_id: str) -> None:
    """Wait until some of a response's events are stored."""
    async with asyncio.timeout(HANG):
        follower = begin(
            *(app, f"{PATH}/{response_id}", b"", KEY), method="GET", query_string=b"stream=true"
        )
        await follower.until(b"reasoning_text.delta")
        await follower.leave()


@asynccontextmanager
async def two_processes(upstream: Upstream, **variables: str) -> AsyncIterator[tuple[Any, Any]]:
    with Server() as server:
        settings = {
            "ABRIDGE_HISTORY__STORE": server.url,
            "ABRIDGE_HISTORY__SEAL_KEYS_ENV": "SEAL_KEYS",
            "SEAL_KEYS": SEAL_KEYS,
            **variables,
        }
        async with serve(upstream) as address:
            flags = ("--upstream", f"{address}/v1", "--api", "chat")
            async with (
                sidecar(*flags, prefix=(), **settings) as one,
                sidecar(*flags, prefix=(), **settings) as two,
            ):
                yield one, two


class TestEnds:
    """A process ends while it runs a response; the other says so."""

    async def test_killed_it_has_failed_within_the_lease(self) -> None:
        upstream = Upstream(paused(asyncio.Event()))
        async with (
            two_processes(upstream, ABRIDGE_BACKGROUND__LEASE="2") as (one, two),
            client_of(one) as asking,
            client_of(two) as polling,
        ):
            begun = await asking.responses.create(model="m", input="Hi", background=True)
            following = asyncio.create_task(self._follow(polling, begun.id))
            await until(lambda: upstream.sent > 0)
            one.signal(signal.SIGKILL)
            response = await poll(polling, begun.id)
            assert response.status == "failed"
            assert "process" in response.error.message
            last = await following
            assert (last.type, last.response.status) == ("response.failed", "failed")
            assert (await polling.responses.retrieve(begun.id)).status == "failed"

    async def test_shut_down_it_has_failed_after_the_drain_time(self) -> None:
        upstream = Upstream(paused(asyncio.Event()))
        async with (
            two_processes(upstream, ABRIDGE_SERVER__DRAIN="0.2") as (one, two),
            client_of(one) as asking,
            client_of(two) as polling,
        ):
            begun = await asking.responses.create(model="m", input="Hi", background=True)
            await until(lambda: upstream.sent > 0)
            one.signal(signal.SIGTERM)
            response = await poll(polling, begun.id)
            assert response.status == "failed"
            assert "shut down" in response.error.message
            assert await one.end() == 0
            await until(lambda: upstream.left == 1)

    async def test_shut_down_it_ends_within_the_drain_time(self) -> None:
        gate = asyncio.Event()
        async with (
            two_processes(Upstream(paused(gate))) as (one, two),
            client_of(one) as asking,
            client_of(two) as polling,
        ):
            begun = await asking.responses.create(model="m", input="Hi", background=True)
            one.signal(signal.SIGTERM)
            await one.until("requests to finish")
            gate.set()
            assert await one.end() == 0
            assert (await polling.responses.retrieve(begun.id)).status == "completed"

    async def _follow(self, client: AsyncOpenAI, response_id: str) -> Any:
        stream = await client.responses.retrieve(response_id, stream=True)
        return [event async for event in stream][-1]


@asynccontextmanager
async def client_of(process: Any) -> AsyncIterator[AsyncOpenAI]:
    """Return a client that tries again while the store is slow, as on a busy machine."""
    address = f"{process.url}/v1"
    async with AsyncOpenAI(
        base_url=address, api_key="sk-anna-1234", timeout=HANG, max_retries=9
    ) as client:
        yield client
