"""Test the server's HTTP protocol over real sockets."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.types import Message, Receive, Scope, Send

from tests.sidecar.server.serving import served
from tests.support.clock import Clock
from tests.support.servers import connect, soon, stalled, until

SILENCE = 60.0

CHUNKED = (
    b"POST / HTTP/1.1\r\nhost: x\r\nx-user: alice\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"
)
TRAILERS = b"0\r\nx-user: bob\r\nauthorization: Bearer smuggled\r\n\r\n"


async def names(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the request's headers once its body is read."""
    while (await receive()).get("more_body"):
        pass
    body = b"\n".join(name + b"=" + value for name, value in scope["headers"])
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize("pause", [False, True])
async def test_trailers_do_not_become_headers(pause: bool) -> None:  # noqa: FBT001
    async with served(names) as url, connect(url) as client:
        for _ in range(2):  # nor a header of the next request
            await client.send(CHUNKED)
            if pause:
                await asyncio.sleep(0.05)
            await client.send(TRAILERS)
            answer = await soon(client.response())
            assert answer.body == b"host=x\nx-user=alice\ntransfer-encoding=chunked"


class Scripted:
    """An app that reads the request into `received`, then answers with `pieces`."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces
        self.received: list[Message] = []
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.sent = 0
        self.over = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.over.clear()
        more = True
        while more:
            await self.go_on.wait()
            self.received.append(await receive())
            more = self.received[-1].get("more_body", False)
        if self.left:
            self.over.set()
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            self.sent += 1
        await send({"type": "http.response.body", "body": b""})
        self.over.set()

    @property
    def left(self) -> bool:
        return self.received[-1]["type"] == "http.disconnect"


HEAD = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n"


class TestSilence:
    """Test idle timeouts with a clock advanced in steps of a tenth of the timeout."""

    async def pass_by(self, clock: Clock, seconds: float) -> None:
        for _ in range(round(seconds / SILENCE * 10)):
            await clock.advance(SILENCE / 10)

    async def test_a_stalled_request_body_gets_a_408(self, clock: Clock) -> None:
        app = Scripted()
        async with served(app, client=SILENCE) as url, connect(url) as client:
            await client.send(HEAD + b"a")
            await until(lambda: len(app.received) == 1)
            await self.pass_by(clock, 2 * SILENCE)
            answer = await soon(client.response())
            assert answer.lines[0] == b"HTTP/1.1 408 Request Timeout"
            assert json.loads(answer.body)["error"]["code"] == "request_timeout"
            await soon(client.left())
            await soon(app.over.wait())
            assert app.left

    async def test_a_slow_request_body_is_waited_for(self, clock: Clock) -> None:
        app = Scripted(b"ok")
        async with served(app, client=SILENCE, upload_rate=1) as url, connect(url) as client:
            await client.send(HEAD.replace(b": 3", b": 300"))
            for count in range(1, 4):
                await client.send(b"a" * 100)
                await until(lambda count=count: len(app.received) == count)  # type: ignore[misc]
                await self.pass_by(clock, SILENCE / 2)
            assert (await soon(client.response())).lines[0] == b"HTTP/1.1 200 OK"

    @pytest.mark.parametrize("data", [b"", b"POST / HT", HEAD[:-2]])
    async def test_a_client_without_a_request_is_disconnected(
        self, clock: Clock, data: bytes
    ) -> None:
        async with served(Scripted(), client=SILENCE) as url, connect(url) as client:
            await client.send(data)
            await asyncio.sleep(0.05)  # until it is there
            await self.pass_by(clock, 2 * SILENCE)
            assert await soon(client.reader.read()) == b""

    async def test_a_slow_response_is_waited_for(self, clock: Clock) -> None:
        app = Scripted(b"ok")
        app.go_on.clear()
        async with served(app, client=SILENCE) as url, connect(url) as client:
            await client.send(HEAD + b"abc")
            await self.pass_by(clock, 5 * SILENCE)
            app.go_on.set()
            assert (await soon(client.response())).body == b"ok"

    async def test_a_body_the_app_does_not_read_is_no_timeout(self, clock: Clock) -> None:
        size = 8 << 20
        app = Scripted(b"ok")
        app.go_on.clear()
        async with served(app, client=SILENCE) as url, connect(url) as client:
            await client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size)
            sending = asyncio.create_task(client.send(b"x" * size))
            await asyncio.sleep(0.05)
            await self.pass_by(clock, 5 * SILENCE)
            app.go_on.set()
            assert (await soon(client.response())).body == b"ok"
            await sending

    async def test_a_client_that_reads_nothing_counts_as_disconnected(self, clock: Clock) -> None:
        app = Scripted(*[b"x" * (1 << 20)] * 100)
        async with served(app, client=SILENCE) as url, connect(url) as client:
            await client.send(HEAD + b"abc")
            await until(lambda: bool(app.sent))
            assert await stalled(lambda: app.sent) < len(app.pieces)
            await self.pass_by(clock, 2 * SILENCE)
            await soon(app.over.wait())
            await soon(client.left())

    async def test_an_idle_connection_is_kept_for_its_own_time(self, clock: Clock) -> None:
        app = Scripted(b"ok")
        async with (
            served(app, client=SILENCE, keep_alive=5 * SILENCE) as url,
            connect(url) as client,
        ):
            for _ in range(2):
                await client.send(HEAD + b"abc")
                assert (await soon(client.response())).body == b"ok"
                await self.pass_by(clock, 4 * SILENCE)
            await self.pass_by(clock, 2 * SILENCE)
            assert await soon(client.reader.read()) == b""

    async def test_a_head_that_comes_late_has_as_much_time_as_any(self, clock: Clock) -> None:
        app = Scripted(b"ok")
        async with (
            served(app, client=SILENCE, keep_alive=5 * SILENCE) as url,
            connect(url) as client,
        ):
            await client.send(HEAD + b"abc")
            assert (await soon(client.response())).body == b"ok"
            await self.pass_by(clock, 3 * SILENCE)
            await client.send(HEAD[:9])
            await asyncio.sleep(0.05)  # until it is there
            await self.pass_by(clock, SILENCE / 2)
            await client.send(HEAD[9:] + b"abc")
            assert (await soon(client.response())).body == b"ok"
            await client.send(HEAD[:9])
            await asyncio.sleep(0.05)  # until it is there
            await self.pass_by(clock, 2 * SILENCE)
            assert await soon(client.reader.read()) == b""

    async def test_a_slow_reader_gets_the_whole_response(self, clock: Clock) -> None:
        app = Scripted(*[b"x" * (1 << 20)] * 100)
        async with served(app, client=SILENCE) as url, connect(url) as client:
            await client.send(HEAD + b"abc")
            await until(lambda: bool(app.sent))
            for _ in range(4):
                taken = await stalled(lambda: app.sent)
                await self.pass_by(clock, SILENCE / 2)
                while app.sent == taken:
                    await soon(client.reader.readexactly(1 << 20))
            while not app.over.is_set():
                await soon(client.reader.read(1 << 20))
            assert app.sent == len(app.pieces)
