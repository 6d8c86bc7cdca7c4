"""The life of a connection: limits, tenants, its end, and servers of other people."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import Response
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from abridge.middleware import AbridgeMiddleware
from abridge.websocket import call, session
from abridge.work import LIGHT_BYTES
from tests.support.deployments import ORIGIN, build_app, settings_for
from tests.support.servers import HANG, serve, soon, stalled, until
from tests.support.streams import (
    THOUGHT,
    chat_stream,
    chunk,
    message_item,
    reasoning_item,
    responses_stream,
    thinking,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, ReceivedRequest, Upstream
from tests.support.websockets import checked, front, opened

CHAT = chat_stream(THOUGHT, "Hello.")
RESPONSES = responses_stream([reasoning_item(0, THOUGHT), message_item(1, "Hello.")])
TRANSLATED = {"api": "chat"}


def key(name: str) -> dict[str, Any]:
    return {"additional_headers": {"authorization": f"Bearer {name}"}}


class Stuck(Upstream):
    """Answers once its gate is open; what is asked for in vain never ends."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    def answer(self, request: ReceivedRequest) -> Answer:
        gate = asyncio.Event() if b"in vain" in request.body else self.gate
        return Answer([*CHAT[:3], gate, *CHAT[3:]])


class TestLimits:
    async def test_requests_at_once_are_those_of_http(self) -> None:
        upstream = Stuck()
        limits = {"in_flight": 1, "client_share": 1}
        async with (
            front(upstream, entry=TRANSLATED, limits=limits) as running,
            opened(running.url) as client,
        ):
            await client.create(stream_id="a")
            await until(lambda: upstream.running == 1)
            await client.create(stream_id="b")
            while (event := await client.event()).get("stream_id") != "b":
                pass
            assert (event["status"], event["error"]["code"]) == (503, "overloaded")
            assert event["headers"] == {"retry-after": "1"}

    async def test_a_conversation_may_not_outgrow_a_request(self) -> None:
        upstream = Upstream(Answer(CHAT))
        async with (
            front(upstream, entry=TRANSLATED, limits={"body": 4000}) as running,
            opened(running.url) as client,
        ):
            first = await client.ask(input="x" * 2500)
            await client.create(previous_response_id=first.response["id"], input="y" * 2500)
            error = await client.error()
        assert (error["status"], error["code"]) == (413, "request_too_large")
        assert len(upstream.requests) == 1

    async def test_messages_that_wait_share_the_memory_of_bodies(self) -> None:
        upstream = Stuck()
        limits = {"body": 200_000, "bodies": 400_000, "client_share": 1}
        async with (
            front(upstream, entry=TRANSLATED, limits=limits) as running,
            opened(running.url) as client,
        ):
            await client.create()
            await until(lambda: upstream.running == 1)
            for _ in range(3):
                await client.create(input="x" * 150_000)
            while (event := await client.event())["type"] != "error":
                pass
            assert (event["status"], event["error"]["code"]) == (503, "overloaded")

    async def test_values_are_counted_before_they_are_read(self) -> None:
        upstream = Upstream(Answer(CHAT))
        async with (
            front(upstream, entry=TRANSLATED, limits={"values": 1000}) as running,
            opened(running.url) as client,
        ):
            await client.create(input=[[]] * 2000)
            assert (await client.error())["code"] == "too_many_values"
            assert upstream.requests == []


async def test_another_tenants_response_is_not_found() -> None:
    upstream = Upstream(Answer(CHAT))
    async with front(upstream, entry=TRANSLATED) as running:
        async with opened(running.url, **key("anna")) as anna:
            stored = (await anna.ask(store=True)).response["id"]
            await anna.ask(store=True, previous_response_id=stored)
        async with opened(running.url, **key("bert")) as bert:
            await bert.create(previous_response_id=stored)
            assert (await bert.error())["code"] == "previous_response_not_found"
    assert len(upstream.requests) == 2


@pytest.mark.parametrize("expose", ["summary", "none"])
@pytest.mark.parametrize("api", ["chat", "same"])
async def test_hidden_reasoning_is_in_no_message_and_whole_for_upstream(
    expose: str, api: str
) -> None:
    upstream = Upstream(Answer(RESPONSES if api == "same" else CHAT))
    async with (
        front(upstream, entry={"api": api}, reasoning={"expose": expose}) as running,
        opened(running.url, **key("anna")) as client,
    ):
        first = await client.ask()
        await client.ask(previous_response_id=first.response["id"], input="More")
    assert "odd numbers" not in json.dumps(first.events).replace("Working out", "")
    assert "odd numbers" in upstream.requests[1].body.decode()


async def test_upstream_waits_for_a_client_that_does_not_read() -> None:
    text = thinking(20_000)
    frames = [*[chunk({"content": text})] * 750, *chat_stream("", "")]
    upstream = Upstream(Answer(frames))
    async with (
        front(upstream, entry=TRANSLATED) as running,
        opened(running.url, max_queue=1) as client,
    ):
        await client.create(reasoning=None)
        sent = await stalled(lambda: upstream.sent)
        assert sent < sum(map(len, frames))
        assert checked(await client.answer()).text == text * 750


class TestEnd:
    async def test_a_server_that_cancels_tells_the_client_why(self) -> None:
        upstream = Stuck()
        async with (
            front(upstream, entry=TRANSLATED) as running,
            opened(running.url) as client,
        ):
            await client.create(input="in vain")
            await until(lambda: upstream.running == 1)
            running.server.should_exit = True
            await asyncio.sleep(0.2)
            running.server.cancel_requests()
            last = (await client.answer())[-1]
            assert last["type"] == "response.failed"
            assert last["response"]["error"]["code"] == "server_error"
            assert await client.close_code() == 1012
            await until(lambda: upstream.running == 0)

    async def test_what_waits_when_the_server_closes_is_not_begun(self) -> None:
        upstream = Stuck()
        async with front(upstream, entry=TRANSLATED) as running, opened(running.url) as client:
            await client.create()
            await client.create()
            await until(lambda: upstream.running == 1)
            running.server.should_exit = True
            await asyncio.sleep(0.2)
            upstream.gate.set()
            checked(await client.answer())
            assert await client.close_code() == 1012
        assert len(upstream.requests) == 1

    async def test_it_is_served_for_an_hour(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(session, "MAX_SECONDS", 0.5)
        upstream = Stuck()
        async with front(upstream, entry=TRANSLATED) as running, opened(running.url) as client:
            await client.create()
            await asyncio.sleep(0.7)
            upstream.gate.set()
            checked(await client.answer())
            assert (await client.error())["code"] == "websocket_connection_limit_reached"
            assert await client.close_code() == 1001

    async def test_an_upstream_that_lingers_does_not_hold_up_the_next_request(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(call, "LINGER_SECONDS", 0.2)
        upstream = Upstream(Answer([*RESPONSES, asyncio.Event()]))
        async with front(upstream) as running, opened(running.url) as client:
            for _ in range(2):
                assert (await client.ask(reasoning=None)).text == "Hello."
        await until(lambda: upstream.left == 2)

    async def test_a_client_that_vanishes_stops_upstream(self) -> None:
        upstream = Stuck()
        async with front(upstream, entry=TRANSLATED) as running:
            async with opened(running.url) as client:
                await client.create(input="in vain")
                await until(lambda: upstream.running == 1)
                client.connection.transport.abort()
                await until(lambda: upstream.left == 1)
            await until(lambda: running.open_websockets == 0)
        assert (upstream.left, upstream.running) == (1, 0)


async def test_a_client_that_vanishes_while_its_request_is_read_asks_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has_begun, has_left, read = threading.Event(), threading.Event(), session.with_input
    listen = session.Session._read

    def read_later(*given: Any) -> Any:
        has_begun.set()
        has_left.wait(HANG)
        return read(*given)

    async def listen_and_tell(self: session.Session) -> None:
        await listen(self)
        has_left.set()

    monkeypatch.setattr(session, "with_input", read_later)
    monkeypatch.setattr(session.Session, "_read", listen_and_tell)
    upstream = Upstream(Answer(CHAT))
    async with front(upstream, entry=TRANSLATED) as running:
        async with opened(running.url) as client:
            await client.create(input="x" * LIGHT_BYTES)
            await until(has_begun.is_set)
            client.connection.transport.abort()
        await until(lambda: running.open_websockets == 0)
    assert has_left.is_set()
    assert not upstream.requests


async def test_its_requests_are_counted_as_those_of_http() -> None:
    upstream = Upstream(Answer(CHAT))
    async with front(upstream, entry=TRANSLATED) as running, opened(running.url) as client:
        await client.ask()
        await client.ask()
        await soon(asyncio.sleep(0))
        labels = {"api": "responses", "upstream": "default", "model": "m", "outcome": "ok"}

        def counted() -> float | None:
            return running.registry.get_sample_value("abridge_requests_total", labels)

        await until(lambda: (counted() or 0) >= 2)
        assert counted() == 2


class TestOtherServers:
    """Mounted in an application that runs under a server of its own."""

    async def test_it_is_served_there_as_well(self) -> None:
        upstream = Upstream(Answer(CHAT))
        app = AbridgeMiddleware(
            upstream,
            settings_for(
                upstreams=[TRANSLATED],
                summarizer={"kind": "object"},
                server={"websockets": True},
            ),
            summarizer=Scripted(),
            registry=CollectorRegistry(),
        )
        async with serve(app, ws="websockets-sansio") as url, opened(url) as client:
            first = await client.ask()
            assert first.summary
            await client.ask(previous_response_id=first.response["id"], input="More")
            await client.create(input="x" * 10, stream_id="a b")
            assert (await client.error())["code"] == "invalid_stream_id"
        assert len(upstream.requests[1].json["messages"]) == 3

    @pytest.mark.parametrize(("server", "is_served"), [({}, False), ({"websockets": True}, True)])
    async def test_it_serves_none_unasked(self, server: dict[str, Any], *, is_served: bool) -> None:
        """What admits requests around it may see HTTP alone, as this does."""

        async def refuse(*_: Any) -> Response:
            return Response(status_code=401)

        upstream = Upstream(Answer(CHAT))
        entry = {"base_url": f"{ORIGIN}/v1", **TRANSLATED}
        app = build_app("sidecar", upstream, writer=Scripted(), upstreams=[entry], server=server)
        async with serve(BaseHTTPMiddleware(app, refuse), ws="websockets-sansio") as url:
            if is_served:
                async with opened(url) as client:
                    await client.ask()
            else:
                with pytest.raises(InvalidStatus) as refused:
                    await soon(connect(f"{url.replace('http', 'ws', 1)}/v1/responses"))
                assert refused.value.response.status_code == 426
        assert bool(upstream.requests) is is_served
