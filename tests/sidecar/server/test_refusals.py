"""Test over real sockets what the server refuses, and what becomes of the connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from starlette.types import Receive, Scope, Send

from abridge.sidecar.server.http_protocol import MAX_TURNED_AWAY, MAX_WAITING
from abridge.sidecar.server.refusals import MAX_HEAD
from tests.sidecar.server.serving import Requests, get, post, rest, served, statuses
from tests.support.clock import Clock
from tests.support.messages_checker import check_error
from tests.support.servers import HANG, Peer, chunk, connect, soon, until

HIDDEN = get(b"/hidden")
"""What an attacker hides in the body of another request."""

HEAD = b"POST /first HTTP/1.1\r\nhost: x\r\n"

CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


class TestAmbiguousRequests:
    @pytest.mark.parametrize("protocol", [b"foo", b"h2c", b"websocket", b"TLS/1.0, HTTP/1.1"])
    @pytest.mark.parametrize("connection", [b"Upgrade", b"upgrade, HTTP2-Settings", b"x,UPGRADE"])
    @pytest.mark.parametrize("chunked", [False, True])
    async def test_the_body_of_a_request_to_upgrade_is_its_body(
        self,
        protocol: bytes,
        connection: bytes,
        chunked: bool,  # noqa: FBT001
    ) -> None:
        framing = b"transfer-encoding: chunked" if chunked else b"content-length: %d" % len(HIDDEN)
        upgrade = b"connection: %b\r\nupgrade: %b\r\n" % (connection, protocol)
        body = chunk(HIDDEN) + chunk(b"") if chunked else HIDDEN
        async with served(app := Requests()) as url, connect(url) as client:
            await client.send(HEAD + upgrade + framing + b"\r\n\r\n")
            await until(lambda: app.begun == 1)
            await client.send(body)
            assert (await soon(client.response())).body == HIDDEN
            await client.send(get(b"/second"))
            await soon(client.response())
            assert app.seen == [("POST", "/first", HIDDEN), ("GET", "/second", b"")]

    async def test_it_is_its_body_however_the_bytes_are_split(self) -> None:
        request = post(HIDDEN, b"connection: Upgrade", b"upgrade: h2c")
        async with served(app := Requests()) as url, connect(url) as client:
            for byte in request:
                await client.send(bytes([byte]))
                await asyncio.sleep(0)
            assert (await soon(client.response())).body == HIDDEN
            assert app.paths == ["/first"]

    async def test_the_application_sees_what_was_asked_for(self) -> None:
        seen: list[tuple[bytes, bytes]] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            seen.extend(scope["headers"])
            await Requests()(scope, receive, send)

        async with served(app) as url, connect(url) as client:
            await client.send(get(b"/", b"connection: upgrade", b"upgrade: websocket", b"x: y"))
            await soon(client.response())
        assert sorted(seen) == [
            (b"connection", b"upgrade"),
            (b"host", b"localhost"),
            (b"upgrade", b"websocket"),
            (b"x", b"y"),
        ]

    @pytest.mark.parametrize(
        "request_head",
        [
            b"POST /first HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}",
            HEAD + b"host: x\r\ncontent-length: 2\r\n\r\n{}",
            b"POST /first HTTP/1.1\r\nhost: u@x\r\ncontent-length: 2\r\n\r\n{}",
            b"POST /first HTTP/1.1\r\nhost: x y\r\ncontent-length: 2\r\n\r\n{}",
            b"POST /first HTTP/1.1\r\nhost: x:99999\r\ncontent-length: 2\r\n\r\n{}",
            b"POST http://y/first HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}",
            b"POST /first#x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}",
            b"POST /first\xe9 HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}",
            b"CONNECT /first HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}",
            b"CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n",
            HEAD + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            HEAD + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n",
            HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
            HEAD + b"content-length: 2\r\ncontent-length: 2\r\n\r\n{}",
            HEAD + b"content-length: 2, 2\r\n\r\n{}",
            HEAD + b"content-length: +2\r\n\r\n{}",
            HEAD + b"content-length : 2\r\n\r\n{}",
            HEAD + b"content-length: 99999999999999999999\r\n\r\n{}",
            HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            HEAD + b"transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            b"POST /first HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            HEAD + b"x: a\r\n b\r\ncontent-length: 2\r\n\r\n{}",
            HEAD + b"x: a\nb: c\r\ncontent-length: 2\r\n\r\n{}",
            HEAD + b"x: a\rb: c\r\ncontent-length: 2\r\n\r\n{}",
            HEAD + b"x: a\0b\r\ncontent-length: 2\r\n\r\n{}",
            HEAD + b"x\xff: a\r\ncontent-length: 2\r\n\r\n{}",
            HEAD + b"x y: a\r\ncontent-length: 2\r\n\r\n{}",
            HEAD + b": a\r\ncontent-length: 2\r\n\r\n{}",
            HEAD.replace(b"\r\n", b"\n") + b"content-length: 2\n\n{}",
        ],
        ids=lambda head: repr(head)[:60],
    )
    async def test_it_is_refused_and_nothing_after_it_is_read(self, request_head: bytes) -> None:
        refusals: list[str] = []
        async with served(app := Requests(), refusals) as url, connect(url) as client:
            await client.send(request_head + HIDDEN)
            answer = await soon(client.response())
            assert answer.lines[0] == b"HTTP/1.1 400 Bad Request"
            assert answer.all(b"connection") == [b"close"]
            error = json.loads(answer.body)["error"]
            assert (error["type"], error["param"]) == ("invalid_request_error", None)
            assert refusals == [error["code"]] == ["invalid_http_request"]
            assert await rest(client) == b""
        assert app.begun == 0

    @pytest.mark.parametrize(
        ("head", "status"),
        [
            (b"x y: a\r\ncontent-length: 2\r\n\r\n{}", b"400"),
            (b"x: " + b"a" * MAX_HEAD + b"\r\n\r\n", b"431"),
        ],
        ids=["malformed", "too large"],
    )
    async def test_a_client_of_messages_is_told_in_anthropics_shape(
        self, head: bytes, status: bytes
    ) -> None:
        async with served(app := Requests()) as url, connect(url) as client:
            await client.send(b"POST /v1/messages?beta=true HTTP/1.1\r\nhost: x\r\n" + head)
            answer = await soon(client.response())
            assert answer.lines[0].split()[1] == status
            error = check_error(json.loads(answer.body))
            assert error["type"] == "invalid_request_error"
        assert app.begun == 0

    async def test_a_body_with_an_invalid_chunk_is_refused_and_its_application_told(self) -> None:
        async with served(app := Requests()) as url, connect(url) as client:
            await client.send(CHUNKED + chunk(b"abc"))
            await until(lambda: app.begun == 1)
            await client.send(b"0x3\r\n" + HIDDEN)
            assert statuses(await rest(client)) == [400]
            await until(lambda: app.left == 1)
        assert app.paths == []

    async def test_a_refusal_does_not_end_up_in_another_response(self) -> None:
        app, refusals = Requests(), list[str]()
        app.go_on.clear()
        async with served(app, refusals) as url, connect(url) as client:
            await client.send(post(b"ok"))
            await until(lambda: app.paths == ["/first"])
            await client.send(b"GET / HTTP/1.1\r\n\r\n" + HIDDEN)
            await until(lambda: bool(refusals))
            app.go_on.set()
            answer = await rest(client)
            assert statuses(answer) == [200]
            assert answer.endswith(b"\r\n\r\nok")
        assert app.paths == ["/first"]

    async def test_a_refusal_reaches_a_client_that_is_still_sending(self) -> None:
        async with served(Requests()) as url, connect(url) as client:
            await client.send(b"POST / HTTP/1.1\r\ncontent-length: 10000000\r\n\r\n")
            await client.send(b"x" * 1_000_000)
            assert (await soon(client.response())).lines[0] == b"HTTP/1.1 400 Bad Request"

    async def test_a_client_that_was_not_told_to_send_its_body_is_disconnected(self) -> None:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 413, "headers": []})
            await send({"type": "http.response.body"})

        async with served(app) as url, connect(url) as client:
            await client.send(HEAD + b"expect: 100-continue\r\ncontent-length: 50\r\n\r\n")
            assert statuses(await rest(client)) == [413]

    async def test_a_client_that_was_refused_is_told_nothing_more(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        asks = b"expect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n"
        async with served(Requests()) as url, connect(url) as client:
            await client.send(HEAD + asks + b"no size\r\n")
            assert statuses(await rest(client)) == [400]
        assert not [record for record in caplog.records if record.exc_info]

    async def test_a_client_that_asks_is_told_to_send_its_body(self) -> None:
        async with served(Requests()) as url, connect(url) as client:
            await client.send(HEAD + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n")
            assert await soon(client.head()) == [b"HTTP/1.1 100 Continue"]
            await client.send(b"ok")
            assert (await soon(client.response())).body == b"ok"


async def pour(client: Peer, piece: bytes, size: int) -> None:
    """Send a piece again and again, up to `size` bytes, or until the server has closed."""
    for _ in range(size // len(piece)):
        if client.reader.at_eof():
            return
        await client.send(piece)


class TestOversizedRequests:
    @pytest.mark.parametrize(
        ("head", "piece", "status"),
        [
            (b"GET /", b"x" * 5000, 414),
            (b"GET / HTTP/1.1\r\nhost: x\r\nx: ", b"x" * 5000, 431),
            (b"GET / HTTP/1.1\r\nhost: x\r\n", b"x", 431),
            (b"GET / HTTP/1.1\r\nhost: x\r\n", b"x: " + b"y" * 1000 + b"\r\n", 431),
            (b"GET / HTTP/1.1\r\nhost: x\r\n", b"x: y\r\n", 431),
            (b"", b"\r\n", 431),
            (CHUNKED + b"3;", b"x" * 5000, 400),
            (CHUNKED + b"3\r\nabc\r\n0\r\n", b"x: " + b"y" * 5000 + b"\r\n", 400),
            (CHUNKED, b"1;" + b"x" * 100 + b"\r\na\r\n", 400),
        ],
        ids=(
            *("target", "line", "name", "long lines", "short lines", "empty lines"),
            *("chunk extension", "trailers", "chunk extensions"),
        ),
    )
    async def test_one_without_end_is_refused(self, head: bytes, piece: bytes, status: int) -> None:
        many = piece * (1 + 2000 // len(piece))
        async with served(app := Requests()) as url, connect(url) as client:
            await client.send(head)
            sending = asyncio.create_task(pour(client, many, 5 * MAX_HEAD))
            answer = await soon(client.response())
            sending.cancel()
            expected = 431 if status == 414 else status  # an incomplete target is just a head
            assert statuses(b"\r\n".join(answer.lines)) == [expected]
        assert app.seen == []

    async def test_a_target_that_is_too_long_is_refused(self) -> None:
        async with served(app := Requests()) as url, connect(url) as client:
            await client.send(get(b"/" + b"x" * 20_000))
            answer = await soon(client.response())
            assert answer.lines[0].split()[1] == b"414"
            assert json.loads(answer.body)["error"]["code"] == "uri_too_long"
        assert app.begun == 0

    async def test_a_long_head_and_small_chunks_are_accepted(self) -> None:
        headers = [b"x-%d: %b" % (count, b"y" * 15_000) for count in range(4)]
        body = b"z" * 20_000
        head = b"\r\n".join([HEAD[:-2], *headers, b"transfer-encoding: chunked", b"", b""])
        chunks = b"".join(chunk(bytes([byte])) for byte in body) + chunk(b"")
        async with served(Requests()) as url, connect(url) as client:
            for _ in range(2):
                await client.send(head + chunks)
                assert (await soon(client.response())).body == body


@asynccontextmanager
async def taken(url: str) -> AsyncIterator[None]:
    """Hold a connection."""
    async with connect(url) as client:
        await client.send(get(b"/"))
        await soon(client.response())
        yield


async def send_often(client: Peer) -> None:
    """Send until it would have been noticed that the connection is closed."""
    for _ in range(100):
        await client.send(b"x")
        await asyncio.sleep(0)


class TestConnections:
    async def test_over_the_ceiling_a_client_gets_a_503_until_another_leaves(self) -> None:
        refusals: list[str] = []
        limits = {"connections": 3, "client_share": 1}
        async with (
            served(Requests(), refusals, **limits) as url,
            connect(url) as one,
            connect(url) as two,
            connect(url) as three,
        ):
            for client in (one, two, three):
                await client.send(get(b"/"))
                await soon(client.response())
            async with connect(url) as fourth:
                answer = await soon(fourth.response())
                assert answer.lines[0].split()[1] == b"503"
                assert answer.all(b"retry-after") == [b"1"]
                assert json.loads(answer.body)["error"]["code"] == "too_many_connections"
                assert await rest(fourth) == b""
            await one.close()
            await until_served(url)
        assert set(refusals) == {"too_many_connections"}

    async def test_the_503_reaches_a_client_that_still_sends(self) -> None:
        refusals: list[str] = []
        limits = {"connections": 1, "client_share": 1}
        async with served(Requests(), refusals, **limits) as url, taken(url), connect(url) as other:
            await until(lambda: len(refusals) == 1)
            for _ in range(100):  # closed at once, the connection would be reset
                await other.send(post(b"x" * 1000))
                await asyncio.sleep(0)
            assert (await soon(other.response())).lines[0].split()[1] == b"503"

    async def test_who_does_not_leave_after_it_makes_room_for_the_next(self) -> None:
        refusals: list[str] = []
        limits = {"connections": 1, "client_share": 1}
        async with (
            served(Requests(), refusals, **limits) as url,
            taken(url),
            AsyncExitStack() as opened,
        ):
            clients = []
            for count in range(1, MAX_TURNED_AWAY + 2):
                clients.append(await opened.enter_async_context(connect(url)))
                await until(lambda count=count: len(refusals) == count)  # type: ignore[misc]
            await send_often(clients[1])
            with pytest.raises(ConnectionError):
                await send_often(clients[0])

    async def test_one_address_leaves_connections_to_others(self) -> None:
        async with (
            served(Requests(), connections=4, client_share=0.5) as url,
            connect(url) as one,
            connect(url) as two,
        ):
            for client in (one, two):
                await client.send(get(b"/"))
                await soon(client.response())
            async with connect(url) as third:
                assert (await soon(third.response())).lines[0].split()[1] == b"503"
            host, _, port = url.removeprefix("http://").partition(":")
            opened = await asyncio.open_connection(host, int(port), local_addr=("127.0.0.2", 0))
            other = Peer(*opened)
            await other.send(get(b"/"))
            assert (await soon(other.response())).lines[0] == b"HTTP/1.1 200 OK"
            await other.close()


async def until_served(url: str) -> None:
    """Connect until the server has noticed that somebody left."""
    async with asyncio.timeout(HANG):
        served_again = False
        while not served_again:
            async with connect(url) as client:
                with suppress(ConnectionError):
                    await client.send(get(b"/"))
                    served_again = (await client.response()).lines[0] == b"HTTP/1.1 200 OK"


class TestPipelines:
    async def test_waiting_requests_are_answered_in_order(self) -> None:
        async with served(app := Requests()) as url, connect(url) as client:
            await client.send(b"".join(post(b"%d" % n, path=b"/%d" % n) for n in range(4)))
            assert [(await soon(client.response())).body for _ in range(4)] == [
                *(b"0", b"1", b"2", b"3")
            ]
            await client.send(get(b"/4"))
            await soon(client.response())
        assert app.paths == [f"/{n}" for n in range(5)]

    async def test_too_many_waiting_requests_are_not_begun(self) -> None:
        app = Requests()
        app.go_on.clear()
        async with served(app) as url, connect(url) as client:
            await client.send(get(b"/") * (MAX_WAITING + 2))
            await until(lambda: app.begun == 1)
            app.go_on.set()
            assert statuses(await rest(client)) == [200]
        assert app.begun == 1

    async def test_a_large_request_that_waits_is_served(self) -> None:
        body = b"x" * 1_000_000
        app = Requests()
        app.go_on.clear()
        async with served(app) as url, connect(url) as client:
            await client.send(post(b"one"))
            await until(lambda: app.begun == 1)
            sending = asyncio.create_task(client.send(post(body)))
            await asyncio.sleep(0.05)
            app.go_on.set()
            assert (await soon(client.response())).body == b"one"
            assert (await soon(client.response())).body == body
            await sending


class TestSlowRequests:
    """Test what is slow with a clock advanced in steps of a tenth of the client timeout."""

    async def test_a_head_that_trickles_in_is_not_waited_for(self, clock: Clock) -> None:
        async with served(Requests(), client=60.0) as url, connect(url) as client:
            sent = 0
            while not client.reader.at_eof():
                await client.send(b"GET / HTTP/1.1\r\nhost: x"[sent : sent + 1])
                sent += 1
                await clock.advance(6.0)
                await asyncio.sleep(0.02)
            assert await soon(client.reader.read()) == b""
        assert sent <= 12

    async def test_a_body_that_is_too_slow_gets_a_408(self, clock: Clock) -> None:
        app = Requests()
        async with served(app, client=60.0, upload_rate=1000) as url, connect(url) as client:
            await client.send(HEAD + b"content-length: 100000\r\n\r\n")
            await until(lambda: app.begun == 1)
            for _ in range(5):
                await client.send(b"x" * 10)
                await asyncio.sleep(0.02)
                await clock.advance(6.0)
            answer = await soon(client.response())
            assert answer.lines[0] == b"HTTP/1.1 408 Request Timeout"
            await until(lambda: app.left == 1)

    async def test_a_body_that_keeps_the_rate_is_waited_for_until_the_deadline(
        self, clock: Clock
    ) -> None:
        app = Requests()
        limits = {"client": 60.0, "upload_rate": 1000, "upload": 120.0}
        async with served(app, **limits) as url, connect(url) as client:
            await client.send(HEAD + b"content-length: 1000000\r\n\r\n")
            await until(lambda: app.begun == 1)
            for _ in range(19):
                await client.send(b"x" * 6000)
                await asyncio.sleep(0.01)
                await clock.advance(6.0)
            assert not app.left
            await clock.advance(6.0)
            assert (await soon(client.response())).lines[0] == b"HTTP/1.1 408 Request Timeout"

    async def test_time_in_which_the_application_does_not_read_is_not_the_clients(
        self, clock: Clock
    ) -> None:
        size = 8 << 20
        go_on = asyncio.Event()
        app = Requests()

        async def busy(scope: Scope, receive: Receive, send: Send) -> None:
            await go_on.wait()
            await app(scope, receive, send)

        async with served(busy, client=60.0) as url, connect(url) as client:
            sending = asyncio.create_task(client.send(post(b"x" * size)))
            await asyncio.sleep(0.05)
            for _ in range(100):
                await clock.advance(6.0)
            go_on.set()
            assert len((await soon(client.response())).body) == size
            await sending

    async def test_a_connection_is_kept_for_a_while_after_a_response(self, clock: Clock) -> None:
        async with served(Requests(), keep_alive=5.0, client=60.0) as url, connect(url) as client:
            for _ in range(3):
                await client.send(get(b"/"))
                await soon(client.response())
                await clock.advance(4.0)
            await clock.advance(6.0)
            await clock.advance(6.0)
            assert await soon(client.reader.read()) == b""
