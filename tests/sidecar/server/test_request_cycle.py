"""A response is written as uvicorn writes it."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from abridge.http.asgi import adding_headers, find_write_at_once, send_whole
from abridge.sidecar.server.request_cycle import RequestCycle


class Transport:
    def __init__(self) -> None:
        self.written = b""
        self.writes = 0
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written += data
        self.writes += 1

    def close(self) -> None:
        self.closed = True


def connection(transport: Transport) -> Any:
    return SimpleNamespace(
        transport=transport,
        flow=SimpleNamespace(write_paused=False),
        logger=logging.getLogger("test"),
        server_state=SimpleNamespace(default_headers=[(b"server", b"x")]),
        expect_100_continue=False,
    )


def uvicorns(scope: Any, link: Any, *, keep_alive: bool) -> RequestResponseCycle:
    return RequestResponseCycle(
        scope,
        link.transport,
        link.flow,
        link.logger,
        link.logger,
        access_log=False,
        default_headers=link.server_state.default_headers,
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=keep_alive,
        on_response=lambda: None,
    )


def ours(scope: Any, link: Any, *, keep_alive: bool) -> RequestCycle:
    link = cast(HttpToolsProtocol, link)
    return RequestCycle(scope, link, keep_alive=keep_alive, on_response=lambda: None)


async def write(
    make: Any, method: str, *, keep_alive: bool, messages: list[Any], version: str = "1.1"
) -> Any:
    """Return what a cycle writes and where it fails, and what it is left as."""
    transport = Transport()
    scope = {"method": method, "http_version": version}
    cycle = make(scope, connection(transport), keep_alive=keep_alive)
    failed_at = None
    for position, message in enumerate(messages):
        try:
            await cycle.send(message)
        except RuntimeError:
            failed_at = position
            break
    left = cycle.response_started, cycle.response_complete, transport.closed
    keeps_alive = failed_at is None and cycle.keep_alive  # the server closes after a failure
    return transport.written, failed_at, left, keeps_alive


NAMES = st.sampled_from(
    [b"content-length", b"Transfer-Encoding", b"connection", b"x-a", b"Set-Cookie", b"b d", b"c\r"]
)
VALUES = st.sampled_from([b"2", b"5", b"chunked", b"gzip", b"Close, x", b"keep-alive", b"a\tb"])
ODD_VALUES = st.sampled_from([b"a\r\nb: c", b"\x00", b"", b"\x7f", b"\xff"])


@st.composite
def headers(draw: st.DrawFn) -> list[tuple[bytes, bytes]]:
    listed = draw(st.lists(st.tuples(NAMES, VALUES | ODD_VALUES), max_size=4))
    return [(name, b"2" if name == b"content-length" else value) for name, value in listed]


STARTS = st.builds(
    lambda status, listed: {"type": "http.response.start", "status": status, "headers": listed},
    st.sampled_from([200, 204, 304, 404, 529]),
    headers(),
)
BODIES = st.builds(
    lambda body, more: {"type": "http.response.body", "body": body, "more_body": more},
    st.sampled_from([b"", b"ab", b"abc"]),
    st.booleans(),
)


CLOSING_AND_REFUSED = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"connection", b"Close, x"), (b"Transfer-Encoding", b"a\r\nb: c")],
}


@example(method="GET", keep_alive=True, start=CLOSING_AND_REFUSED, rest=[])
@given(
    method=st.sampled_from(["GET", "HEAD", "POST"]),
    keep_alive=st.booleans(),
    start=STARTS,
    rest=st.lists(BODIES | STARTS, max_size=4),
)
def test_a_response_is_written_as_uvicorn_writes_it(
    method: str, *, keep_alive: bool, start: Any, rest: list[Any]
) -> None:
    messages = [start, *rest]
    expected = asyncio.run(write(uvicorns, method, keep_alive=keep_alive, messages=messages))
    assert asyncio.run(write(ours, method, keep_alive=keep_alive, messages=messages)) == expected


@pytest.mark.parametrize("given", [[], [(b"content-length", b"4")]])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_body_without_a_length_ends_with_its_connection_on_http_1_0(
    method: str, given: list[Any]
) -> None:
    start = {"type": "http.response.start", "status": 200, "headers": given}
    bodies = [{"type": "http.response.body", "body": b"ab", "more_body": n < 1} for n in range(2)]
    written, failed_at, (_, complete, closed), _ = await write(
        ours, method, keep_alive=False, messages=[start, *bodies], version="1.0"
    )
    head, _, body = written.partition(b"\r\n\r\n")
    assert (failed_at, complete, closed) == (None, True, True)
    assert body == (b"abab" if method == "GET" else b"")
    assert b"transfer-encoding" not in head
    assert (b"content-length" in head) is bool(given)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("headers", [[], [(b"content-length", b"2")], [(b"connection", b"close")]])
async def test_a_whole_response_is_one_write(method: str, headers: list[Any]) -> None:
    start = {"type": "http.response.start", "status": 200, "headers": headers}
    body = {"type": "http.response.body", "body": b"ab", "more_body": False}
    expected, *_ = await write(ours, method, keep_alive=True, messages=[start, body])
    transport = Transport()
    cycle = ours({"method": method, "http_version": "1.1"}, connection(transport), keep_alive=True)
    await send_whole(cycle.send, start, b"ab")
    assert (transport.written, transport.writes) == (expected, 1)
    assert cycle.response_complete
    with pytest.raises(RuntimeError):
        await send_whole(cycle.send, start, b"ab")


async def test_a_whole_response_is_not_written_to_a_client_that_left() -> None:
    transport = Transport()
    cycle = ours({"method": "GET", "http_version": "1.1"}, connection(transport), keep_alive=True)
    cycle.disconnect()
    await send_whole(cycle.send, {"type": "http.response.start", "status": 200}, b"ab")
    assert not transport.written


async def begun(transport: Transport, link: Any) -> RequestCycle:
    cycle = ours({"method": "POST", "http_version": "1.1"}, link, keep_alive=True)
    await cycle.send({"type": "http.response.start", "status": 200})
    transport.written = b""
    return cycle


class TestWritingAtOnce:
    async def test_it_writes_what_a_send_writes(self) -> None:
        transport = Transport()
        cycle = await begun(transport, connection(transport))
        await cycle.send({"type": "http.response.body", "body": b"ab", "more_body": True})
        sent, transport.written = transport.written, b""
        write_at_once = find_write_at_once(cycle.send)
        assert write_at_once is not None
        assert write_at_once(b"ab")
        assert transport.written == sent

    async def test_a_wrapped_send_is_not_bypassed(self) -> None:
        transport = Transport()
        cycle = await begun(transport, connection(transport))
        assert find_write_at_once(adding_headers([], cycle.send)) is None

    @pytest.mark.parametrize("state", ["slow", "left", "complete"])
    async def test_it_writes_nothing_that_a_send_would_not(self, state: str) -> None:
        transport = Transport()
        link = connection(transport)
        cycle = await begun(transport, link)
        if state == "slow":
            link.flow.write_paused = True
        elif state == "left":
            cycle.disconnect()
        else:
            await cycle.send({"type": "http.response.body"})
        written = transport.written
        assert not cycle.write_at_once(b"ab")
        assert transport.written == written
