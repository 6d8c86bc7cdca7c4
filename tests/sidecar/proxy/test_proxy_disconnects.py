"""Test that everything stops when the client disconnects, and only then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import httpx
import pytest
from anyio import move_on_after
from starlette.types import Message

from abridge.observability.record import RECORD, SHUTTING_DOWN, Record
from abridge.sidecar.proxy.proxy import READ_AHEAD, Proxy
from tests.sidecar.proxy.upstreams import proxy_for, serve_proxy, settings
from tests.support.asgi import Call, begin, scope_for
from tests.support.servers import HANG, Peer, chunk, connect, listen, soon, stalled, until

POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"


@pytest.mark.parametrize("own_server", [False, True])
@pytest.mark.parametrize(
    ("upstream_bytes", "client_bytes"),
    [
        pytest.param(b"", b"", id="waiting for headers"),
        pytest.param(CHUNKED, b"\r\n\r\n", id="waiting for the first byte"),
        pytest.param(CHUNKED + b"4\r\nhalf\r\n", b"half\r\n", id="mid-stream"),
        pytest.param(WHOLE + b"half", b"half", id="not streaming"),
    ],
)
async def test_upstream_notices_that_the_client_has_left(
    upstream_bytes: bytes,
    client_bytes: bytes,
    caplog: pytest.LogCaptureFixture,
    *,
    own_server: bool,
) -> None:
    arrived, noticed = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(upstream_bytes)
        arrived.set()
        await peer.left()
        noticed.set()

    async with serve_proxy(script, own_server=own_server) as chain:
        async with connect(chain.url) as client:
            await client.send(POST)
            await soon(arrived.wait())
            if client_bytes:
                await soon(client.reader.readuntil(client_bytes))
        await soon(noticed.wait())
        assert await chain.ended() is None
    assert not complaints(caplog)


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno > logging.INFO]


async def test_no_task_waits_for_the_client_if_the_server_calls_when_it_leaves() -> None:
    tasks: dict[bool, int] = {}

    async def script(peer: Peer) -> None:
        await peer.request()
        tasks[own_server] = len(asyncio.all_tasks())
        await peer.answer(b"{}")

    for own_server in (False, True):
        async with (
            serve_proxy(script, own_server=own_server) as chain,
            connect(chain.url) as client,
        ):
            await client.send(POST)
            await soon(client.response())
    assert tasks[True] == tasks[False] - 1


async def test_a_client_that_left_before_it_is_watched_is_noticed() -> None:
    proxy = Proxy(settings("http://u.test"), httpx.MockTransport(waiting))
    running = Call(proxy, scope_for("/v1/responses"))

    class Left:
        """A `receive` like that of our own server, whose client leaves behind its body."""

        async def __call__(self) -> Message:
            return {"type": "http.request", "body": b"{}", "more_body": False}

        def call_on_leave(self, callback: Callable[[], object]) -> bool:
            callback()
            callback()  # more than once is no harm
            return True

    await soon(proxy(running.scope, Left(), running.send))
    assert running.sent == []


async def test_a_client_that_leaves_within_the_last_send_cancels_nothing_later() -> None:
    proxy, _ = proxy_for()
    callbacks: list[Callable[[], object]] = []

    class Leaving:
        """A `receive` that learns within a send that its client has left."""

        async def __call__(self) -> Message:
            return {"type": "http.request", "body": b"{}", "more_body": False}

        def call_on_leave(self, callback: Callable[[], object]) -> bool:
            callbacks.append(callback)
            return True

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body" and not message["more_body"]:
            callbacks[0]()

    async def call_and_go_on() -> bool:
        await proxy(scope_for("/v1/responses"), Leaving(), send)
        await asyncio.sleep(0)
        return True

    assert await soon(call_and_go_on())


@pytest.mark.parametrize("own_server", [False, True])
@pytest.mark.parametrize("framing", [b"content-length: 100", b"transfer-encoding: chunked"])
async def test_upstream_notices_that_an_upload_was_given_up(
    framing: bytes, caplog: pytest.LogCaptureFixture, *, own_server: bool
) -> None:
    begun, noticed = asyncio.Event(), asyncio.Event()
    rest = bytearray()

    async def script(peer: Peer) -> None:
        await peer.head()
        await peer.reader.readuntil(b"half")
        begun.set()
        with suppress(ConnectionError):
            rest.extend(await peer.reader.read())
        noticed.set()

    async with serve_proxy(script, own_server=own_server) as chain:
        async with connect(chain.url) as client:
            await client.send(b"POST /v1/files HTTP/1.1\r\nhost: x\r\n" + framing + b"\r\n\r\n")
            await client.send(b"4\r\nhalf\r\n" if b"chunked" in framing else b"half")
            await soon(begun.wait())
        await soon(noticed.wait())
        assert await chain.ended() is None
    assert rest in (b"", b"\r\n")  # and not b"0\r\n\r\n", which would end it well
    assert not complaints(caplog)


@pytest.mark.parametrize("own_server", [False, True])
@pytest.mark.parametrize("framing", [b"content-length: 1000000000", b"transfer-encoding: chunked"])
async def test_the_client_may_leave_while_upstream_does_not_read_its_upload(
    framing: bytes, caplog: pytest.LogCaptureFixture, *, own_server: bool
) -> None:
    ended = asyncio.Event()
    piece = b"x" * (1 << 12)

    async def script(peer: Peer) -> None:
        peer.writer.transport.pause_reading()
        await ended.wait()
        peer.writer.transport.resume_reading()
        await peer.left()

    async with serve_proxy(script, own_server=own_server) as chain:
        async with connect(chain.url) as client:
            await client.send(b"POST /v1/files HTTP/1.1\r\nhost: x\r\n" + framing + b"\r\n\r\n")
            async with asyncio.timeout(HANG):
                while not chain.upload_is_blocked:
                    await client.send(chunk(piece) if b"chunked" in framing else piece)
                    await asyncio.sleep(0.1 if chain.upload_is_blocked else 0)  # the kernel's time
            client.writer.transport.abort()  # it would not wait for the rest to be taken
        try:
            assert await chain.ended() is None
        finally:
            ended.set()
    assert not complaints(caplog)


async def test_an_upload_is_not_read_far_ahead_of_upstream() -> None:
    received = 0

    async def receive() -> Message:
        nonlocal received
        received += 1
        return {"type": "http.request", "body": bytes(READ_AHEAD // 4), "more_body": True}

    class Deaf(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            return await waiting(request)

    proxy = Proxy(settings("http://u.test"), Deaf())
    idle = Call(proxy, scope_for("/v1/files"))
    running = asyncio.create_task(proxy(idle.scope, receive, idle.send))
    assert await stalled(lambda: received) == 4
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_upstream_notices_that_a_client_that_did_not_read_has_left() -> None:
    noticed = asyncio.Event()
    sent = 0

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                await peer.send(b"x" * (1 << 16))
                sent += 1
        noticed.set()

    async with serve_proxy(script) as chain:
        async with connect(chain.url) as client:
            client.writer.transport.pause_reading()
            await client.send(POST)
            await until(lambda: sent > 0)
            await stalled(lambda: sent)
        await soon(noticed.wait())
        assert await chain.ended() is None


async def test_a_client_that_leaves_before_its_request_ends_reaches_no_upstream() -> None:
    proxy, upstream = proxy_for()
    running = Call(proxy, scope_for("/v1/responses"))
    running.left.set()

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    await soon(proxy(scope_for("/v1/responses"), gone, running.send))
    assert upstream.requests == running.sent == []


async def test_a_client_that_leaves_after_a_large_body_in_one_piece_is_noticed() -> None:
    proxy = Proxy(settings("http://u.test"), httpx.MockTransport(waiting))
    messages: list[Message] = [
        {"type": "http.disconnect"},
        {"type": "http.request", "body": bytes(READ_AHEAD)},
    ]

    async def receive() -> Message:
        return messages.pop()

    running = Call(proxy, scope_for("/v1/responses"))
    await soon(proxy(running.scope, receive, running.send))
    assert running.sent == []


@pytest.mark.parametrize("after", [0, 1, 2])
async def test_a_failing_send_to_a_departed_client_is_no_error(after: int) -> None:
    closed = asyncio.Event()

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                yield b"x"

        async def aclose(self) -> None:
            closed.set()

    sent: list[Message] = []

    async def send(message: Message) -> None:
        if len(sent) == after:
            raise OSError("the client has left")
        sent.append(message)

    answer = httpx.Response(200, stream=Endless())
    proxy = Proxy(settings("http://u.test"), httpx.MockTransport(lambda _: answer))
    idle = Call(proxy, scope_for("/v1/responses"))
    await soon(proxy(idle.scope, idle.receive, send))
    assert closed.is_set()


@pytest.mark.parametrize(
    ("upstream_bytes", "client_bytes"),
    [(b"", b""), (CHUNKED, b""), (CHUNKED + b"4\r\nhalf\r\n", b"half")],
)
async def test_upstream_notices_that_the_server_has_cancelled_the_request(
    upstream_bytes: bytes, client_bytes: bytes
) -> None:
    arrived, noticed = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(upstream_bytes)
        arrived.set()
        await peer.left()
        noticed.set()

    async with listen(script) as upstream:
        proxy = Proxy(settings(upstream.url))
        running = begin(proxy, "/v1/responses", {})
        await soon(arrived.wait())
        await running.until(client_bytes)
        assert running.task is not None
        running.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running.finish()
        await soon(noticed.wait())
        await proxy.aclose()


async def waiting(request: httpx.Request) -> httpx.Response:
    await asyncio.Event().wait()
    raise AssertionError


async def test_a_stopping_server_sends_an_error_response_before_the_headers() -> None:
    proxy = Proxy(settings("http://u.test"), httpx.MockTransport(waiting))
    running = begin(proxy, "/v1/responses", {})
    await asyncio.sleep(0)
    assert running.task is not None
    running.task.cancel(SHUTTING_DOWN)
    with pytest.raises(asyncio.CancelledError):
        await running.finish()
    assert (running.status, running.headers["retry-after"]) == (503, "1")
    assert running.json["error"]["code"] == "shutting_down"
    assert running.complete


@pytest.mark.parametrize("cancel", [None, "a timeout"])
async def test_a_request_cancelled_by_another_is_left_to_it(cancel: str | None) -> None:
    proxy = Proxy(settings("http://u.test"), httpx.MockTransport(waiting))
    record = Record.start(scope_for("/v1/responses"))
    running = begin(proxy, "/v1/responses", {}, **{RECORD: record})
    await asyncio.sleep(0)
    assert running.task is not None
    running.task.cancel(cancel)
    with pytest.raises(asyncio.CancelledError):
        await running.finish()
    assert not running.sent
    assert (record.cause, record.status) == ("cancelled", None)


async def test_a_client_that_does_not_read_the_error_response_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("abridge.sidecar.proxy.proxy.NOTICE_SECONDS", 0.01)
    proxy = Proxy(settings("http://u.test"), httpx.MockTransport(waiting))
    running = begin(proxy, "/v1/responses", {})
    running.gate.clear()
    await asyncio.sleep(0)
    assert running.task is not None
    running.task.cancel(SHUTTING_DOWN)
    with pytest.raises(asyncio.CancelledError):
        await running.finish()
    assert not running.sent


async def test_a_client_can_send_another_request() -> None:
    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            await peer.answer(request.body)

    async with serve_proxy(script) as chain, connect(chain.url) as client:
        for _ in range(3):
            await client.send(POST)
            assert (await soon(client.response())).body == b"{}"
        assert chain.upstream.connections == 1


async def test_an_exception_from_receive_propagates() -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)
        return httpx.Response(200)

    proxy = Proxy(settings("http://u.test"), httpx.MockTransport(answer))
    running = Call(proxy, scope_for("/v1/responses"))
    messages = iter([{"type": "http.request"}])

    async def receive() -> Message:
        for message in messages:
            return message
        raise RuntimeError("the server's own")

    with pytest.raises(RuntimeError, match="the server's own"):
        await soon(proxy(running.scope, receive, running.send))


async def test_no_task_is_left_where_closing_the_response_is_cancelled() -> None:
    """As `anyio` does, which cancels whatever is awaited in a scope that has ended."""

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"half"
            await asyncio.Event().wait()

        async def aclose(self) -> None:
            await asyncio.Event().wait()

    upstream = httpx.MockTransport(lambda _: httpx.Response(200, stream=Endless()))
    request = Call(Proxy(settings("http://u.test"), upstream), scope_for("/v1/responses"))

    async def limited() -> None:
        with move_on_after(60) as scope:
            running = asyncio.create_task(request.until(b"half"))
            running.add_done_callback(lambda _: scope.cancel())
            await request.app(request.scope, request.receive, request.send)
        assert scope.cancelled_caught

    await soon(limited())
    assert not request.complete


async def test_a_cancellation_is_not_lost_at_the_very_end() -> None:
    ending, ended = asyncio.Event(), asyncio.Event()
    messages = iter([{"type": "http.request"}])

    async def receive() -> Message:
        for message in messages:
            return message
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await ended.wait()
        raise AssertionError

    async def send(message: Message) -> None:
        await asyncio.sleep(0)

    proxy, _ = proxy_for()
    running = asyncio.create_task(proxy(scope_for("/v1/responses"), receive, send))
    await soon(ending.wait())
    running.cancel()
    ended.set()
    with pytest.raises(asyncio.CancelledError):
        await running
