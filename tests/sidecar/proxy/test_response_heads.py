"""Test what of an upstream's response head goes to the client."""

from __future__ import annotations

import logging

import httpx
import pytest

from abridge.config.settings import Settings
from abridge.middleware import AbridgeMiddleware
from abridge.sidecar.proxy.proxy import Proxy
from tests.sidecar.proxy.upstreams import FakeUpstream, serve_proxy, settings
from tests.support.asgi import call
from tests.support.servers import Peer, connect
from tests.support.upstream import Answer, Upstream

CHAT = "/v1/chat/completions"
COMMANDS = {
    "X-Accel-Redirect": "/etc/passwd",
    "x-accel-buffering": "yes",
    "X-Sendfile": "/etc/passwd",
    "X-Lighttpd-Send-File": "/etc/passwd",
    "Set-Cookie": "session=1",
    "Clear-Site-Data": '"*"',
    "Alt-Svc": 'h3="evil.test:443"',
    "Strict-Transport-Security": "max-age=31536000",
}
CROSS_ORIGIN = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Credentials": "true",
    "access-control-expose-headers": "*",
}
KEPT = {"x-request-id": "1", "cache-control": "no-store", "content-type": "text/plain"}
FRIEND = "https://friend.test"


def proxy_with(headers: dict[str, str], allowed_origins: tuple[str, ...] = ()) -> Proxy:
    upstream = FakeUpstream(httpx.Response(200, headers=headers, content=b"ok"))
    data = settings("http://u.test").model_dump(exclude_unset=True)
    server = {"allowed_origins": allowed_origins}
    return Proxy(Settings.model_validate({**data, "server": server}), upstream.transport)


async def test_no_command_to_a_proxy_or_a_browser_is_passed_on() -> None:
    answer = await call(proxy_with({**COMMANDS, **CROSS_ORIGIN, **KEPT}), CHAT, {})
    assert answer.headers == {**KEPT, "content-length": "2"}


@pytest.mark.parametrize(
    ("origin", "passes"), [(FRIEND, True), ("https://other.test", False), (None, False)]
)
async def test_only_for_origins_that_are_let_in_may_pages_read(
    origin: str | None, *, passes: bool
) -> None:
    headers = {} if origin is None else {"origin": origin}
    answer = await call(proxy_with({**CROSS_ORIGIN, **KEPT}, (FRIEND,)), CHAT, {}, headers=headers)
    assert bool(answer.headers.keys() & set(map(str.lower, CROSS_ORIGIN))) is passes
    assert answer.headers.items() >= KEPT.items()


async def test_a_mounted_applications_headers_are_its_own() -> None:
    own = {name.lower(): value for name, value in {**COMMANDS, **CROSS_ORIGIN}.items()}
    app = AbridgeMiddleware(Upstream(Answer([b"{}"], headers=own)), Settings())
    assert (await call(app, CHAT, {})).headers == own


@pytest.mark.parametrize(
    "head",
    [
        (200, [(b"x-a", b"b\x01")]),
        (200, [(b"x-a", b"b\r\nset-cookie: c")]),
        (200, [(b"x a", b"b")]),
        (200, [(b"", b"b")]),
        (200, [(b"content-length", b"two")]),
        (200, [(b"content-length", b"2"), (b"content-length", b"3")]),
        (999, []),
    ],
)
async def test_a_head_that_cannot_be_written_is_a_502(
    head: tuple[int, list[tuple[bytes, bytes]]], caplog: pytest.LogCaptureFixture
) -> None:
    status, headers = head
    upstream = FakeUpstream(httpx.Response(status, headers=headers, content=b"ok"))
    answer = await call(Proxy(settings("http://u.test"), upstream.transport), CHAT, {})
    assert (answer.status, answer.json["error"]["code"]) == (502, "upstream_broken")
    assert [record.exc_info for record in caplog.records] == [None]


async def test_nor_does_a_server_log_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 700 Odd\r\ncontent-length: 2\r\n\r\nok")

    async with serve_proxy(script) as chain, connect(chain.url) as client:
        await client.send(b"POST /v1/responses HTTP/1.1\r\nHost: x\r\ncontent-length: 2\r\n\r\n{}")
        assert (await client.response()).lines[0].startswith(b"HTTP/1.1 502 ")
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
