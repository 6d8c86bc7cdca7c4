"""Test over real sockets what becomes of a connection whose client leaves or reads nothing."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Scope, Send

from abridge.sidecar.app import create_app
from abridge.sidecar.server.serve import SEND_BUFFER
from tests.sidecar.proxy.upstreams import ObservedApp
from tests.sidecar.server.serving import get, post, served
from tests.support.clock import Clock
from tests.support.deployments import settings_for
from tests.support.servers import Peer, connect, listen, serve, soon, stalled, until
from tests.support.sidecar import sidecar


class Waiting:
    """An app that waits for its client to leave, and answers all the same."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun += 1
        while (await receive())["type"] != "http.disconnect":
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"too late"})
        self.ended += 1


@pytest.mark.parametrize("waiting", [0, 1, 5])
@pytest.mark.parametrize("reset", [False, True])
async def test_every_request_of_a_client_that_leaves_is_told_and_none_is_begun(
    waiting: int,
    reset: bool,  # noqa: FBT001
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with served(app := Waiting()) as url:
        async with connect(url) as client:
            await client.send(get(b"/"))
            await until(lambda: app.begun == 1)
            await client.send(post(b"{}") * waiting)
            await asyncio.sleep(0.05)
            if reset:
                client.reset()
        await until(lambda: app.ended == 1)
        await asyncio.sleep(0.05)
    assert app.begun == 1
    assert not caplog.records


@pytest.mark.parametrize("summary", ["auto", None], ids=["engaged", "untouched"])
@pytest.mark.parametrize("reads", [True, False], ids=["thinking", "blocked"])
async def test_a_client_that_leaves_after_a_large_body_is_noticed(
    summary: str | None, *, reads: bool
) -> None:
    """While much of a body waits for the application reading pauses, at its end too."""
    content = "x" * (200_000 if reads else (1 << 24) - (1 << 16))
    body = json.dumps({"model": "m", "input": content, "reasoning": {"summary": summary}}).encode()
    asked, left = asyncio.Event(), asyncio.Event()

    async def think(peer: Peer) -> None:
        if reads:
            await peer.request()
        else:
            peer.writer.transport.pause_reading()
        asked.set()
        await left.wait()

    async with listen(think) as upstream:
        settings = settings_for(upstreams=[{"base_url": f"{upstream.url}/v1"}])
        app = create_app(settings, registry=CollectorRegistry())
        async with served(observed := ObservedApp(app)) as url:
            async with connect(url) as client:
                await client.send(post(body, path=b"/v1/responses"))
                await soon(asked.wait())
            await until(lambda: bool(observed.ends))
        left.set()
        await app.aclose()
    assert observed.ends == [None]


class Pouring:
    """An app that answers with more than any client will take; counts what it sent."""

    def __init__(self) -> None:
        self.sent = 0
        self.over = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.create_task(self.wait_for_departure(receive))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not leaving.done():
            await send({"type": "http.response.body", "body": b"x" * 4096, "more_body": True})
            self.sent += 4096
            await asyncio.sleep(0)
        await leaving
        self.over.set()

    async def wait_for_departure(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass


@asynccontextmanager
async def small_reader(url: str) -> AsyncIterator[Peer]:
    """Connect with a receive buffer that holds next to nothing."""
    connected = socket.socket()
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connected.setblocking(False)
    host, _, port = url.removeprefix("http://").partition(":")
    await asyncio.get_running_loop().sock_connect(connected, (host, int(port)))
    peer = Peer(*await asyncio.open_connection(sock=connected, limit=4096))
    try:
        yield peer
    finally:
        await peer.close()


async def test_little_is_sent_to_a_client_that_reads_nothing() -> None:
    async with served(app := Pouring()) as url, small_reader(url) as client:
        await client.send(get(b"/"))
        await until(lambda: bool(app.sent))
        assert await stalled(lambda: app.sent) < 6 * SEND_BUFFER


async def test_a_client_that_reads_nothing_is_reset_so_that_nothing_of_it_is_kept(
    clock: Clock,
) -> None:
    async with served(app := Pouring(), client=60.0) as url, small_reader(url) as client:
        await client.send(get(b"/"))
        await until(lambda: bool(app.sent))
        await stalled(lambda: app.sent)
        for _ in range(12):
            await clock.advance(6.0)
        await soon(app.over.wait())
        with pytest.raises(ConnectionResetError):
            await soon(client.reader.read())  # to the end


async def test_the_sidecar_asks_upstream_for_nothing_that_nobody_waits_for() -> None:
    upstream = Waiting()
    async with serve(upstream) as address, sidecar("--upstream", f"{address}/v1") as running:
        for reset in (False, True):
            async with connect(running.url) as client:
                await client.send(get(b"/v1/models") * 9)
                begun = upstream.begun
                await until(lambda: upstream.begun > begun)  # noqa: B023 -- awaited at once
                if reset:
                    client.reset()
            await until(lambda: upstream.ended == upstream.begun)
        async with connect(running.url) as client:
            await client.send(get(b"/abridge/healthz"))
            assert (await soon(client.response())).body == b"ok\n"
    assert upstream.begun == 2
    assert "Traceback" not in running.output


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux has this option")
async def test_an_answer_that_is_never_read_is_dropped_even_after_the_connection_was_closed() -> (
    None
):
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * SEND_BUFFER})

    limits = {"ABRIDGE_LIMITS__CLIENT": "1"}
    async with (
        serve(app) as upstream,
        sidecar("--upstream", f"{upstream}/v1", **limits) as running,
        small_reader(running.url) as client,
    ):
        await client.send(get(b"/v1/models", b"connection: close"))
        port = int(running.url.rpartition(":")[2])
        await until(lambda: bool(unsent(port)))
        await until(lambda: not unsent(port))
        assert not unsent(port)


def unsent(port: int) -> list[int]:
    """Return the bytes that the kernel holds for each client of a port, if there are any."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    queues = [int(row[4].partition(":")[0], 16) for row in rows if row[1].endswith(f":{port:04X}")]
    return [queue for queue in queues if queue]
