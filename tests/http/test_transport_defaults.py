"""Test that the transport does nothing that a client does by default and a proxy must not do."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from pathlib import Path

import httpx
import pytest

from abridge.http.transport import Transport
from tests.http.requests import get, iter_chunks, post, read_body, send_request
from tests.support.clock import Clock
from tests.support.servers import Peer, Request, listen, unused_address


class Recorder:
    """A script that answers each request and records it."""

    def __init__(self, *headers: bytes, body: bytes = b"ok", status: bytes = b"200 OK") -> None:
        self.requests: list[Request] = []
        self.headers, self.body, self.status = headers, body, status

    async def __call__(self, peer: Peer) -> None:
        while True:
            self.requests.append(await peer.request())
            await peer.answer(self.body, *self.headers, status=self.status)


async def test_a_request_goes_out_byte_for_byte_as_it_was_given(transport: Transport) -> None:
    seen: list[bytes] = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.reader.readuntil(b'{"a":1}'))
        await peer.answer()

    headers = [
        (b"host", b"example.test"),
        (b"X-Mixed", b"caf\xe9"),
        (b"x-twice", b"1"),
        (b"x-twice", b"2"),
        (b"content-length", b"7"),
    ]
    async with listen(script) as server:
        request = httpx.Request(
            "POST", f"{server.url}/v1", headers=headers, stream=httpx.ByteStream(b'{"a":1}')
        )
        await send_request(transport, request)
    assert seen[0].split(b"\r\n") == [
        b"POST /v1 HTTP/1.1",
        b"host: example.test",
        b"X-Mixed: caf\xe9",
        b"x-twice: 1",
        b"x-twice: 2",
        b"content-length: 7",
        b"",
        b'{"a":1}',
    ]


@pytest.mark.parametrize(
    "path", ["/a%2Fb", "/a%20b", "//a//b", "/a;b=c:d@e", "/?a=%26&b=%C3%A9+c&&=", "/%e4%E4"]
)
async def test_a_path_is_not_quoted_again(transport: Transport, path: str) -> None:
    upstream = Recorder()
    async with listen(upstream) as server:
        await send_request(transport, get(server.url, path))
    assert upstream.requests[0].lines == [f"GET {path} HTTP/1.1".encode()]


async def test_a_target_replaces_a_url_that_cannot_express_it(transport: Transport) -> None:
    upstream = Recorder()
    async with listen(upstream) as server:
        request = get(server.url, "/b")
        request.extensions["target"] = b'/a/../b/./"c"?d={e}'
        await send_request(transport, request)
    assert upstream.requests[0].lines == [b'GET /a/../b/./"c"?d={e} HTTP/1.1']


async def test_repeated_response_headers_stay_repeated(transport: Transport) -> None:
    upstream = Recorder(b"Set-Cookie: a=1", b"X-Caf: \xe9", b"Set-Cookie: b=2")
    async with listen(upstream) as server:
        response = await transport.handle_async_request(get(server.url))
        await read_body(response)
    assert response.headers.raw == [
        (b"Set-Cookie", b"a=1"),
        (b"X-Caf", b"\xe9"),
        (b"Set-Cookie", b"b=2"),
        (b"content-length", b"2"),
    ]


async def test_a_cookie_is_not_sent_back(transport: Transport) -> None:
    upstream = Recorder(b"Set-Cookie: who=tenant-a; Path=/")
    async with listen(upstream) as server:
        await send_request(transport, get(server.url))
        await send_request(transport, get(server.url))
        assert server.connections == 1
    assert [request.headers for request in upstream.requests] == [[], []]


async def test_a_redirect_is_an_answer_like_any_other(transport: Transport) -> None:
    upstream = Recorder(b"Location: /elsewhere", status=b"307 Temporary Redirect")
    async with listen(upstream) as server:
        response = await transport.handle_async_request(post(server.url, b"{}"))
        assert await read_body(response) == b"ok"
    assert (response.status_code, response.headers["location"]) == (307, "/elsewhere")
    assert len(upstream.requests) == 1


async def test_a_compressed_body_stays_compressed(transport: Transport) -> None:
    packed = gzip.compress(b"hello" * 100)
    upstream = Recorder(b"Content-Encoding: gzip", body=packed)
    async with listen(upstream) as server:
        response = await transport.handle_async_request(get(server.url))
        assert await read_body(response) == packed
    assert response.headers["content-encoding"] == "gzip"


async def test_the_environment_names_no_proxy_for_loopback_and_no_credential(
    transport: Transport, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, unused_address())
    netrc = tmp_path / "netrc"
    netrc.write_text("default login someone password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    upstream = Recorder()
    async with listen(upstream) as server:
        assert await send_request(transport, get(server.url)) == b"ok"
    assert upstream.requests[0].headers == []


async def test_more_than_a_hundred_requests_run_at_once(transport: Transport) -> None:
    arrived = asyncio.Barrier(150)

    async def script(peer: Peer) -> None:
        await peer.request()
        await arrived.wait()
        await peer.answer()

    async with listen(script, backlog=200) as server:
        answers = await asyncio.gather(
            *(send_request(transport, get(server.url)) for _ in range(150))
        )
    assert answers == [b"ok"] * 150


async def test_a_stream_may_go_on_for_longer_than_five_minutes(clock: Clock) -> None:
    hour = 3600.0
    acknowledged = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na")
        await acknowledged.wait()
        await peer.send(b"b")

    async with (
        Transport(connect=hour, headers=2 * hour, idle=2 * hour) as transport,
        listen(script) as server,
    ):
        body = iter_chunks(await transport.handle_async_request(get(server.url)))
        assert await anext(body) == b"a"
        await clock.advance(hour)
        acknowledged.set()
        assert await anext(body) == b"b"
        assert await anext(body, None) is None


@pytest.mark.parametrize(("seconds", "connections"), [(3.9, 1), (4.1, 2)])
async def test_an_idle_connection_is_kept_for_four_seconds(
    transport: Transport, clock: Clock, seconds: float, connections: int
) -> None:
    async with listen(Recorder()) as server:
        await send_request(transport, get(server.url))
        await clock.advance(seconds)
        await send_request(transport, get(server.url))
        assert server.connections == connections


async def test_idempotent_methods_are_not_retried(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()

    async with listen(script) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            await send_request(transport, get(server.url))
        assert server.connections == 1


async def test_an_untrusted_certificate_is_refused(transport: Transport) -> None:
    async with listen(Recorder(), ssl=certificate()) as server:
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            await send_request(transport, get(server.url))


async def test_a_trusted_certificate_is_accepted() -> None:
    trusting = ssl.create_default_context(cafile=PEM)
    upstream = Recorder()
    async with (
        Transport(connect=20, headers=20, idle=20, tls=trusting) as transport,
        listen(upstream, ssl=certificate()) as server,
    ):
        assert await send_request(transport, get(server.url)) == b"ok"
        assert await send_request(transport, get(server.url)) == b"ok"
        assert server.connections == 1


PEM = str(Path(__file__).with_name("localhost.pem"))


def certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    return context
