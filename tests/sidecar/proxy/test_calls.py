"""What goes wrong upstream, as the client sees it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import httpx
import pytest
from starlette.types import Message

from abridge.errors import UpstreamBroken
from abridge.sidecar.proxy.calls import log_in_one_line
from abridge.sidecar.proxy.proxy import Proxy
from tests.sidecar.proxy.upstreams import FakeUpstream, proxy_for, serve_proxy, settings
from tests.support.asgi import Call, begin, call, scope_for
from tests.support.servers import Peer, Request, connect, soon, unused_address

GET = b"GET /v1/x?key=in-the-query HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk\r\n\r\n"
SHORT = 0.05


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (httpx.ConnectError("no"), 502, "upstream_unreachable"),
        (httpx.ConnectTimeout("slow"), 504, "upstream_timeout"),
        (httpx.ReadTimeout("slow"), 504, "upstream_timeout"),
        (httpx.ReadError("cut"), 502, "upstream_broken"),
        (httpx.RemoteProtocolError("cut"), 502, "upstream_broken"),
    ],
)
async def test_an_error_before_the_headers_is_told_in_the_api_s_shape(
    error: Exception, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = Proxy(settings("http://u.test"), FakeUpstream(error).transport)
    answer = await call(proxy, "/v1/responses", {"input": "x"}, query_string=b"key=secret")
    assert (answer.status, answer.headers["content-type"]) == (status, "application/json")
    problem = answer.json["error"]
    assert problem["message"]
    assert {**problem, "message": ""} == {
        "message": "",
        "type": "server_error",
        "param": None,
        "code": code,
    }
    assert caplog.messages == [f"upstream default: {type(error).__name__}: {error}"]


async def test_nobody_listens_upstream() -> None:
    proxy = Proxy(settings(unused_address()))
    answer = await call(proxy, "/v1/responses", {})
    assert (answer.status, answer.json["error"]["code"]) == (502, "upstream_unreachable")
    await proxy.aclose()


async def test_upstream_does_not_answer_in_time() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.left()

    async with (
        serve_proxy(script, limits={"headers": SHORT}) as chain,
        connect(chain.url) as client,
    ):
        await client.send(GET)
        answer = await soon(client.response())
        assert answer.lines[0].startswith(b"HTTP/1.1 504")
        assert b"upstream_timeout" in answer.body


async def test_what_cannot_be_forwarded_as_it_is() -> None:
    proxy = Proxy(settings(unused_address()))
    scope = {**scope_for("/v1/responses"), "headers": [(b"x-request-id", b"a\r\ny: b")]}
    answer = await Call(proxy, scope, b"{}").start().finish()
    assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")


async def test_a_path_longer_than_any_url() -> None:
    proxy, upstream = proxy_for()
    answer = await call(proxy, "/v1/" + "x" * 70000, {})
    assert (answer.status, upstream.requests) == (400, [])


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
async def test_an_error_of_upstream_s_is_passed_on_as_it_came(status: int) -> None:
    upstream_answer = httpx.Response(status, headers={"retry-after": "7"}, json={"error": {"x": 1}})
    answer = await call(
        Proxy(settings("http://u.test"), FakeUpstream(upstream_answer).transport), "/v1/x", {}
    )
    assert (answer.status, answer.data) == (status, upstream_answer.content)
    assert answer.headers["retry-after"] == "7"


async def test_what_is_no_error_of_upstream_s_is_raised() -> None:
    proxy = Proxy(settings("http://u.test"), FakeUpstream(KeyError("a fault of ours")).transport)
    with pytest.raises(KeyError):
        await call(proxy, "/v1/x", {})


# A response that has begun


async def close(peer: Peer) -> None:
    await peer.close()


async def reset(peer: Peer) -> None:
    peer.reset()


async def stall(peer: Peer) -> None:
    await peer.left()


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"


@pytest.fixture
def server_log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What the server logs, however another test's uvicorn has set its loggers up."""
    logger = logging.getLogger("uvicorn.error")
    propagated, was_disabled = logger.propagate, logger.disabled
    logger.propagate = logger.disabled = False
    logger.addFilter(log_in_one_line)
    logger.addHandler(caplog.handler)
    with caplog.at_level(logging.WARNING, "uvicorn.error"):
        yield caplog
    logger.removeHandler(caplog.handler)
    logger.removeFilter(log_in_one_line)
    logger.propagate, logger.disabled = propagated, was_disabled


@pytest.mark.parametrize("upstream_answer", [CHUNKED, WHOLE])
@pytest.mark.parametrize(
    ("then", "idle", "code"),
    [
        (close, 20, "upstream_broken"),
        (reset, 20, "upstream_broken"),
        (stall, SHORT, "upstream_timeout"),
    ],
)
async def test_the_client_s_connection_breaks_as_upstream_s_did(
    upstream_answer: bytes,
    then: Callable[[Peer], Awaitable[None]],
    idle: float,
    code: str,
    server_log: pytest.LogCaptureFixture,
) -> None:
    received = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(upstream_answer)
        await received.wait()
        await then(peer)

    async with serve_proxy(script, limits={"idle": idle}) as chain, connect(chain.url) as client:
        await client.send(GET)
        await soon(client.reader.readuntil(b"half"))
        received.set()
        rest = await soon(client.reader.read())
        assert rest in (b"", b"\r\n")  # and not b"0\r\n\r\n"
        end = await chain.ended()
    assert isinstance(end, UpstreamBroken)
    assert (end.code, end.upstream) == (code, "default")
    assert server_log.messages == [f"upstream default: {end}"]
    assert server_log.records[0].exc_info is None


async def test_the_filter_leaves_other_records_alone() -> None:
    for error in (None, KeyError("x")):
        info = (type(error), error, None) if error is not None else None
        record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "%s", ("x",), info)
        assert log_in_one_line(record)
        assert (record.getMessage(), record.exc_info) == ("x", info)


async def test_what_came_before_the_break_has_been_sent() -> None:
    class Breaks(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"one"
            yield b"two"
            raise httpx.ReadError("cut")

    answer = httpx.Response(200, stream=Breaks())
    running = begin(Proxy(settings("http://u.test"), FakeUpstream(answer).transport), "/v1/x", {})
    with pytest.raises(UpstreamBroken):
        await running.finish()
    assert running.data == b"onetwo"
    assert not running.complete


# What does not reach upstream


async def test_beyond_the_limit_requests_are_turned_away_at_once() -> None:
    go = asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        await go.wait()
        return httpx.Response(200, text="ok")

    one = Proxy(settings("http://u.test", limits={"in_flight": 2}), httpx.MockTransport(answer))
    running = [begin(one, "/v1/x", {}) for _ in range(2)]
    await asyncio.sleep(0)
    refusal = await call(one, "/v1/x", {})
    assert (refusal.status, refusal.headers["retry-after"]) == (503, "1")
    assert refusal.json["error"]["code"] == "overloaded"
    go.set()
    for request in running:
        assert (await request.finish()).status == 200
    assert (await call(one, "/v1/x", {})).status == 200


@pytest.mark.parametrize(("share", "served"), [(0.5, 9), (0.95, 10), (1, 10)])
async def test_no_client_shuts_out_all_others(share: float, served: int) -> None:
    go = asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        await go.wait()
        return httpx.Response(200, text="ok")

    limits = {"in_flight": 10, "client_share": share}
    one = Proxy(settings("http://u.test", limits=limits), httpx.MockTransport(answer))
    many = [begin(one, "/v1/x", {}) for _ in range(12)]
    await asyncio.sleep(0)
    other = begin(one, "/v1/x", {}, client=("10.1.1.1", 1))
    await asyncio.sleep(0)
    go.set()
    statuses = [(await request.finish()).status for request in many]
    assert statuses == [200] * served + [503] * (12 - served)
    assert (await other.finish()).status == (200 if served < 10 else 503)
    assert [(await call(one, "/v1/x", {})).status for _ in range(20)] == [200] * 20


async def test_a_request_whose_body_has_not_begun_to_come_takes_no_room() -> None:
    async def silent() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    one, _ = proxy_for(limits={"in_flight": 1})
    waiting = Call(one, scope_for("/v1/x"))
    waiting.receive = silent  # type: ignore[method-assign]
    waiting.start()
    await asyncio.sleep(0)
    assert (await call(one, "/v1/x", {})).status == 200
    assert waiting.task is not None
    waiting.task.cancel()
    await asyncio.wait([waiting.task])


async def test_requests_that_fail_make_room_again() -> None:
    failing = FakeUpstream(KeyError("a fault of ours"))
    one = Proxy(settings("http://u.test", limits={"in_flight": 1}), failing.transport)
    for _ in range(3):
        with pytest.raises(KeyError):
            await call(one, "/v1/x", {})
    assert len(failing.requests) == 3


async def test_a_websocket_is_refused_before_it_is_accepted() -> None:
    proxy, upstream = proxy_for()
    running = Call(proxy, {**scope_for("/v1/responses"), "type": "websocket"})
    await running.start().finish()
    assert [message["type"] for message in running.sent] == ["websocket.close"]
    assert upstream.requests == []


async def test_where_the_server_takes_an_answer_a_websocket_gets_a_426() -> None:
    proxy, upstream = proxy_for()
    extensions = {"websocket.http.response": {}}
    scope = {**scope_for("/v1/responses"), "type": "websocket", "extensions": extensions}
    running = Call(proxy, scope)
    await running.start().finish()
    start, *body = running.sent
    assert (start["type"], start["status"]) == ("websocket.http.response.start", 426)
    assert b"no_websocket" in b"".join(message["body"] for message in body)
    assert upstream.requests == []


async def test_a_websocket_handshake_over_http_is_an_ordinary_request() -> None:
    seen: list[Request] = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.request())
        await peer.answer(status=b"426 Upgrade Required")

    async with serve_proxy(script) as chain, connect(chain.url) as client:
        await client.send(
            b"GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\n"
            b"upgrade: something\r\n\r\n"
        )
        assert (await soon(client.response())).lines[0].startswith(b"HTTP/1.1 426")
    assert not seen[0].all(b"upgrade")
