"""WebSockets at the server's own door, over real sockets."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import Message, Receive, Scope, Send
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode

from abridge.config.settings import Settings
from tests.sidecar.server.serving import get, statuses
from tests.support.servers import Peer, connect, soon, stalled, until
from tests.support.websockets import Front, opened, serving

HANDSHAKE = (
    b"connection: Upgrade",
    b"upgrade: websocket",
    b"sec-websocket-version: 13",
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
)
PATH = b"/v1/responses"


class Echo:
    """Sends each message back, and notes all messages. It sends `flood` at first."""

    def __init__(self, *flood: str) -> None:
        self.flood = flood
        self.received: list[Message] = []
        self.sent = 0
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.requests: list[str] = []
        self.left: int | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.requests.append(scope["path"])
            await send({"type": "http.response.start", "status": 426, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await receive()
        await send({"type": "websocket.accept"})
        for text in self.flood:
            await send({"type": "websocket.send", "text": text})
            self.sent += 1
        while (message := await receive())["type"] == "websocket.receive":
            self.received.append(message)
            await self.go_on.wait()
            with suppress(OSError, RuntimeError):  # it is closed
                await send({**message, "type": "websocket.send"})
        self.left = message["code"]


@asynccontextmanager
async def door(app: Any, **tables: Any) -> AsyncIterator[Front]:
    async with serving(app, Settings.model_validate(tables), CollectorRegistry()) as front:
        yield front


@asynccontextmanager
async def upgraded(url: str) -> AsyncIterator[Peer]:
    """Open a WebSocket by hand."""
    async with connect(url) as peer:
        await peer.send(get(PATH, *HANDSHAKE))
        assert (await soon(peer.head()))[0] == b"HTTP/1.1 101 Switching Protocols"
        yield peer


def masked(opcode: Opcode, data: bytes = b"", *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


class TestUpgrade:
    async def test_what_follows_the_head_at_once_is_read(self) -> None:
        async with door(app := Echo()) as front, connect(front.url) as peer:
            await peer.send(get(PATH, *HANDSHAKE) + masked(Opcode.TEXT, b"early"))
            assert (await soon(peer.head()))[0].startswith(b"HTTP/1.1 101")
            assert await soon(peer.reader.readexactly(7)) == b"\x81\x05early"
            assert app.received[0]["text"] == "early"

    async def test_it_may_follow_other_requests_on_the_connection(self) -> None:
        async with door(Echo()) as front, connect(front.url) as peer:
            await peer.send(get(b"/v1/models"))
            assert (await soon(peer.response())).lines[0].startswith(b"HTTP/1.1 426")
            await peer.send(get(PATH, *HANDSHAKE))
            assert (await soon(peer.head()))[0].startswith(b"HTTP/1.1 101")

    @pytest.mark.parametrize(
        ("path", "websockets"),
        [(PATH, False), (b"/v1/realtime", True), (b"/v1/chat/completions", True)],
    )
    async def test_where_there_is_none_the_answer_is_one_of_http(
        self,
        path: bytes,
        websockets: bool,  # noqa: FBT001
    ) -> None:
        app = Echo()
        async with (
            door(app, server={"websockets": websockets}) as front,
            connect(front.url) as peer,
        ):
            await peer.send(get(path, *HANDSHAKE))
            assert (await soon(peer.response())).lines[0].startswith(b"HTTP/1.1 426")
        assert app.requests == [path.decode()]

    @pytest.mark.parametrize(
        "head",
        [
            get(PATH, *HANDSHAKE[:2]),
            get(PATH, *HANDSHAKE[:3]),
            get(PATH, *HANDSHAKE, *(b"x-%d: y" % number for number in range(200))),
            get(PATH, *HANDSHAKE, b"x: " + b"y" * 10_000),
        ],
        ids=["no version", "no key", "many headers", "a long header"],
    )
    async def test_one_that_is_wrong_is_refused(self, head: bytes) -> None:
        async with door(app := Echo()) as front, connect(front.url) as peer:
            await peer.send(head)
            received = await soon(peer.reader.read())
        assert statuses(received)[0] in (400, 426, 431)
        assert not app.received

    async def test_a_request_with_a_body_is_no_upgrade(self) -> None:
        async with door(app := Echo()) as front, connect(front.url) as peer:
            await peer.send(get(PATH, *HANDSHAKE, b"content-length: 3") + b"abc")
            assert (await soon(peer.response())).lines[0].startswith(b"HTTP/1.1 426")
        assert app.requests == ["/v1/responses"]

    async def test_it_keeps_its_place_among_the_connections_until_it_is_closed(self) -> None:
        limits = {"connections": 1, "client_share": 1}
        async with door(Echo(), limits=limits) as front:
            async with opened(front.url), connect(front.url) as peer:
                assert statuses(await soon(peer.reader.read())) == [503]
            async with opened(front.url) as client:  # the place is free again
                await client.send("hello")
                assert await soon(client.connection.recv()) == "hello"


class TestOrigin:
    """A browser opens a WebSocket for any page, without asking first, and lets it read."""

    @pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost:1", "null"])
    async def test_another_sites_page_is_kept_out(self, origin: str) -> None:
        async with door(app := Echo()) as front:
            with pytest.raises(InvalidStatus) as refused:
                async with opened(front.url, origin=origin):
                    pass
        assert refused.value.response.status_code == 403
        assert refused.value.response.body is not None
        assert json.loads(refused.value.response.body)["error"]["code"] == "cross_site_request"
        assert not app.received

    async def test_a_page_of_its_own_or_of_an_allowed_one_is_let_in(self) -> None:
        allowed = {"allowed_origins": ["https://app.example"]}
        async with door(Echo(), server=allowed) as front:
            for origin in (front.url, "https://app.example", None):
                async with opened(front.url, origin=origin) as client:
                    await client.send("hello")
                    assert await soon(client.connection.recv()) == "hello"

    async def test_a_name_that_is_not_the_servers_is_refused(self) -> None:
        async with door(Echo()) as front, connect(front.url) as peer:
            head = get(PATH, *HANDSHAKE).replace(b"host: localhost", b"host: evil.example")
            await peer.send(head)
            assert statuses(await soon(peer.reader.read())) == [421]


class TestCeilings:
    async def test_a_message_above_the_limit_closes_with_1009(self) -> None:
        async with (
            door(app := Echo(), limits={"body": 1000}) as front,
            opened(front.url) as client,
        ):
            await client.send("x" * 1001)
            assert await client.close_code() == 1009
            await until(lambda: app.left == 1009)

    async def test_a_client_that_is_still_sending_learns_why(self) -> None:
        """Closed at once, the connection would be reset under what comes, and the reason lost."""
        async with (
            door(Echo(), limits={"body": 1000}) as front,
            opened(front.url) as client,
        ):
            await client.send("x" * 20_000_000)
            assert await client.close_code() == 1009

    async def test_nor_may_it_come_in_pieces(self) -> None:
        async with door(app := Echo(), limits={"body": 1000}) as front:
            async with upgraded(front.url) as peer:
                await peer.send(masked(Opcode.TEXT, b"x" * 600, fin=False))
                await peer.send(masked(Opcode.CONT, b"x" * 600))
                assert b"\x03\xf1" in await soon(peer.reader.read(64))
            await until(lambda: app.left == 1009)

    async def test_a_message_of_many_frames_closes(self) -> None:
        async with door(app := Echo()) as front, upgraded(front.url) as peer:
            frames = [masked(Opcode.TEXT, fin=False), *[masked(Opcode.CONT, fin=False)] * 5000]
            await peer.send(b"".join(frames))
            assert b"\x03\xf1" in await soon(peer.reader.read(64))
            await until(lambda: app.left == 1009)

    async def test_many_small_messages_at_once_close(self) -> None:
        app = Echo()
        app.go_on.clear()
        async with door(app) as front, upgraded(front.url) as peer:
            await peer.send(masked(Opcode.TEXT, b"x") * 1000)
            assert b"\x03\xf0" in await soon(peer.reader.read(64))
            app.go_on.set()
            await until(lambda: app.left is not None)
        assert len(app.received) <= 66

    async def test_messages_that_are_not_whole_share_a_budget(self) -> None:
        limits = {"body": 200_000, "bodies": 250_000, "client_share": 1}
        async with door(Echo(), limits=limits) as front:
            async with upgraded(front.url) as first, upgraded(front.url) as second:
                begun = masked(Opcode.TEXT, b"x" * 190_000)[:-10]
                await first.send(begun)
                await asyncio.sleep(0.1)
                await second.send(begun)
                assert b"\x03\xf5" in await soon(second.reader.read(64))  # 1013, try again later
            async with upgraded(front.url) as third:  # the others' is free again
                await until(lambda: len(front.server.server_state.connections) == 1)
                await third.send(begun)
                await asyncio.sleep(0.1)
                await third.send(masked(Opcode.TEXT, b"x" * 190_000)[-10:])

    async def test_one_that_comes_too_slowly_closes(self) -> None:
        async with door(app := Echo(), limits={"upload": 0.5}) as front:
            async with upgraded(front.url) as peer:
                await peer.send(masked(Opcode.TEXT, b"x" * 100)[:50])
                assert b"\x03\xf0" in await soon(peer.reader.read(64))
            await until(lambda: app.left == 1008)

    async def test_a_quiet_connection_stays_open(self) -> None:
        async with (
            door(Echo(), limits={"upload": 0.3, "client": 0.3}) as front,
            opened(front.url) as client,
        ):
            await asyncio.sleep(1)
            await client.send("hello")
            assert await soon(client.connection.recv()) == "hello"


class TestSlowClients:
    async def test_the_application_waits_and_pings_pile_up_no_pongs(self) -> None:
        app = Echo(*["x" * 65536] * 1000)
        async with door(app) as front, upgraded(front.url) as peer:
            sent = await stalled(lambda: app.sent)
            assert sent < 500
            (connection,) = front.server.server_state.connections
            before = connection.transport.get_write_buffer_size()
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    while True:
                        await peer.send(masked(Opcode.PING, os.urandom(100)) * 100)
            assert connection.transport.get_write_buffer_size() <= before + (1 << 20)
            received = 0
            while received < 65_536_000:
                received += len(await soon(peer.reader.read(1 << 20)))
            assert app.sent == 1000

    async def test_one_that_never_reads_is_disconnected(self) -> None:
        app = Echo(*["x" * 65536] * 1000)
        async with door(app, limits={"client": 0.5}) as front:
            async with upgraded(front.url):
                await until(lambda: not front.server.server_state.connections)
            await until(lambda: not front.server.server_state.tasks)
        assert app.sent < 1000


async def test_pings_are_answered() -> None:
    async with door(Echo()) as front, opened(front.url) as client:
        seconds = await soon(await client.connection.ping())
        assert seconds >= 0


async def test_a_server_that_closes_leaves_it_to_the_application() -> None:
    """One that does not know of it goes on, until the server cancels it."""
    async with door(app := Echo()) as front, opened(front.url) as client:
        front.server.should_exit = True
        await asyncio.sleep(0.3)
        await client.send("still here")
        assert await soon(client.connection.recv()) == "still here"
        front.server.cancel_requests()
        await soon(client.connection.wait_closed())
        assert app.left is None
