"""Test the transport that calls an ASGI app as if over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.http import app_transport
from abridge.http.app_transport import AppTransport

SCOPE: dict[str, Any] = {
    "type": "http",
    "asgi": {"version": "3.0"},
    "http_version": "1.1",
    "scheme": "https",
    "method": "PUT",
    "path": "/other",
    "raw_path": b"/other",
    "query_string": b"a=b",
    "root_path": "/root",
    "headers": [(b"cookie", b"session=1")],
    "client": ("10.0.0.1", 1234),
    "server": ("10.0.0.2", 443),
    "state": {"pool": 1},
    "extensions": {"http.response.pathsend": {}},
    "own": "kept",
}
START: Message = {"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"1")]}


def chunk(data: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def call(app: ASGIApp, url: str = "http://inner/v1/chat", **more: Any) -> httpx.Response:
    request = httpx.Request("POST", url, content=b"hello", **more)
    return await AppTransport(app, SCOPE).handle_async_request(request)


def chunks(response: httpx.Response) -> AsyncIterator[bytes]:
    assert isinstance(response.stream, httpx.AsyncByteStream)
    return aiter(response.stream)


@pytest.fixture(autouse=True)
async def no_task_is_left() -> AsyncIterator[None]:
    yield
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not [task for task in left if "_run" in repr(task.get_coro())]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_transport, "CLOSE_SECONDS", 0.01)


async def test_the_app_gets_the_request_in_a_copy_of_the_scope() -> None:
    seen: dict[str, Any] = {}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.update(scope)
        scope["state"]["mine"] = 2
        seen["message"] = await receive()
        await send(START)
        await send(chunk(b"", more=False))

    response = await call(app, "http://inner/v1/a%2Fb%20c?x=1&y=%20", headers={"X-Who": "me"})
    await response.aclose()
    headers = dict(seen.pop("headers"))
    assert (headers[b"x-who"], headers[b"content-length"]) == (b"me", b"5")
    assert b"cookie" not in headers
    assert seen.pop("message") == {"type": "http.request", "body": b"hello", "more_body": False}
    assert seen.pop("state") == {"pool": 1, "mine": 2}
    assert seen == {
        **{key: SCOPE[key] for key in SCOPE if key not in ("headers", "state")},
        "method": "POST",
        "path": "/v1/a/b c",
        "raw_path": b"/v1/a%2Fb%20c",
        "query_string": b"x=1&y=%20",
        "extensions": {},
    }
    assert SCOPE["state"] == {"pool": 1}


async def test_later_changes_to_the_scope_are_not_copied() -> None:
    scope, paths = dict(SCOPE), []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        paths.append(scope["root_path"])
        await send(START)
        await send(chunk(b"", more=False))

    transport = AppTransport(app, scope)
    scope["root_path"] = "/root/mounted"
    response = await transport.handle_async_request(httpx.Request("POST", "http://inner/"))
    await response.aclose()
    assert paths == ["/root"]


async def test_the_response_comes_before_its_body_and_each_chunk_when_it_is_sent() -> None:
    go = [asyncio.Event() for _ in range(2)]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await go[0].wait()
        await send(chunk(b"one"))
        await send(chunk(b""))
        await go[1].wait()
        await send(chunk(b"two", more=False))

    response = await call(app)
    assert (response.status_code, response.headers["x-a"]) == (200, "1")
    stream = chunks(response)
    go[0].set()
    assert await anext(stream) == b"one"
    go[1].set()
    assert await anext(stream) == b"two"
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    await response.aclose()


async def test_an_app_is_no_faster_than_its_reader() -> None:
    sent = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        for number in range(100):
            await send(chunk(b"%d" % number, more=number < 99))
            sent.append(number)

    response = await call(app)
    stream = chunks(response)
    for number in range(10):
        assert await anext(stream) == b"%d" % number
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(sent) <= number + 2
    assert [int(rest) async for rest in stream] == list(range(10, 100))
    await response.aclose()


async def test_closing_early_tells_the_app() -> None:
    received: list[object] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send(START)
        await send(chunk(b"one"))
        received.append(await receive())
        with pytest.raises(OSError, match="closed"):
            await send(chunk(b"two"))
        received.append("its own ending")

    response = await call(app)
    assert await anext(chunks(response)) == b"one"
    await response.aclose()
    assert received == [{"type": "http.disconnect"}, "its own ending"]


async def test_closing_early_frees_an_app_that_waits_for_its_reader() -> None:
    ended = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send(START)
            while True:
                await send(chunk(b"more"))
        except OSError:
            ended.append("told")

    response = await call(app)
    for _ in range(5):
        await asyncio.sleep(0)
    await response.aclose()
    assert ended == ["told"]


@pytest.mark.usefixtures("impatient")
async def test_an_app_that_does_not_listen_is_cancelled_after_a_moment() -> None:
    ended = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    response = await call(app)
    await response.aclose()
    assert ended == ["cancelled"]


@pytest.mark.usefixtures("impatient")
async def test_a_cancelled_call_stops_the_app_before_it_answered() -> None:
    ended, begun = [], asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        begun.set()
        ended.append(await receive())

    task = asyncio.create_task(call(app))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [{"type": "http.disconnect"}]


async def test_the_app_may_go_on_after_its_response() -> None:
    done = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await send(chunk(b"all", more=False))
        for _ in range(20):
            await asyncio.sleep(0)
        done.append("written to the log")

    response = await call(app)
    assert [data async for data in chunks(response)] == [b"all"]
    await response.aclose()
    assert done == ["written to the log"]


async def test_an_app_that_fails_at_once_is_a_connection_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("secret")

    with caplog.at_level(logging.DEBUG), pytest.raises(httpx.ConnectError) as caught:
        await call(app)
    assert "secret" not in f"{caught.value}{caplog.text}"
    assert "ValueError" in caplog.text


async def test_an_app_without_a_response_is_a_connection_error() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        pass

    with pytest.raises(httpx.ConnectError):
        await call(app)


@pytest.mark.parametrize("failure", [ValueError("secret"), None])
async def test_a_response_that_is_cut_off_is_a_read_error(failure: Exception | None) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await send(chunk(b"one"))
        if failure is not None:
            raise failure

    response = await call(app)
    stream = chunks(response)
    assert await anext(stream) == b"one"
    with pytest.raises(httpx.ReadError):
        await anext(stream)
    await response.aclose()


async def test_an_app_that_cancels_itself_cuts_its_response_off() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        raise asyncio.CancelledError

    response = await call(app)
    with pytest.raises(httpx.ReadError):
        await anext(chunks(response))
    await response.aclose()
