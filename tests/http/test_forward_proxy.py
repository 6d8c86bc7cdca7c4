"""Test which proxy the environment names for an address, and requests that go by it."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode

import httpx
import pytest

from abridge.http.forward_proxy import ForwardProxy, find_proxy
from abridge.http.transport import Transport
from tests.http.requests import get, post, send_request
from tests.http.test_transport_defaults import PEM, Recorder, certificate
from tests.support.servers import HANG, Listener, Peer, listen

PROXY = "http://proxy.test:3128"
BOTH = {"http_proxy": PROXY, "HTTPS_PROXY": PROXY}
FOUND = ForwardProxy(PROXY)
BASIC = b"Basic " + b64encode(b"anna:p@ss")


@pytest.mark.parametrize(
    ("address", "environ", "found"),
    [
        ("http://model.test/v1", {}, None),
        ("http://model.test/v1", BOTH, FOUND),
        ("https://model.test/v1", BOTH, FOUND),
        ("https://model.test/v1", {"HTTP_PROXY": PROXY}, None),
        ("http://model.test", {"HTTP_PROXY": "proxy.test:3128"}, FOUND),
        (
            "http://model.test",
            {"HTTP_PROXY": "http://proxy.test"},
            ForwardProxy("http://proxy.test:80"),
        ),
        (
            "http://model.test",
            {"HTTP_PROXY": "http://anna:p%40ss@proxy.test:3128"},
            ForwardProxy(PROXY, "anna:p@ss"),
        ),
        ("http://localhost:8000/v1", BOTH, None),
        ("http://127.0.0.1:8000/v1", BOTH, None),
        ("http://[::1]:8000/v1", BOTH, None),
    ],
)
def test_the_scheme_says_which(
    address: str, environ: dict[str, str], found: ForwardProxy | None
) -> None:
    assert find_proxy(address, environ) == found


@pytest.mark.parametrize(
    ("exempt", "address", "is_exempt"),
    [
        ("*", "http://model.test", True),
        ("model.test", "http://model.test", True),
        ("model.test", "http://a.model.test", True),
        ("model.test", "http://amodel.test", False),
        (".svc, .test", "http://model.test:8000", True),
        ("*.test", "http://model.test", True),
        ("model.test:8000", "http://model.test:8000", True),
        ("model.test:8000", "http://model.test:8001", False),
        ("model.test:80", "http://model.test", True),
        ("10.0.0.0/8", "http://10.1.2.3:8000", True),
        ("10.0.0.0/8", "http://11.1.2.3:8000", False),
        ("10.1.2.3", "http://10.1.2.3:8000", True),
        ("fd00::/8", "http://[fd00::1]:8000", True),
        (" , ", "http://model.test", False),
    ],
)
@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
def test_what_is_exempt_is_reached_directly(
    name: str, exempt: str, address: str, *, is_exempt: bool
) -> None:
    assert (find_proxy(address, {**BOTH, name: exempt}) is None) is is_exempt


@pytest.mark.parametrize(
    "value",
    [
        *("socks5://u:secret@proxy", "https://u:secret@p", "http://:1", "p:x"),
        *("http://u:1/secret@p", "http://u:1?secret@p", "u:1#secret@p"),
    ],
)
def test_what_cannot_be_is_an_error_that_does_not_repeat_it(value: str) -> None:
    with pytest.raises(ValueError, match="HTTP_PROXY: must be an address") as caught:
        find_proxy("http://model.test", {"HTTP_PROXY": value})
    assert "secret" not in str(caught.value)


async def test_a_plain_request_names_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Recorder()
    async with listen(proxy) as server, transport() as outgoing:
        monkeypatch.setenv("HTTP_PROXY", server.url.replace("//", "//anna:p%40ss@"))
        for _ in range(2):
            url = "http://model.test:8000"
            assert await send_request(outgoing, get(url, "/v1?a=b", [(b"host", b"x")])) == b"ok"
        assert server.connections == 1
    first = proxy.requests[0]
    assert first.lines[0] == b"GET http://model.test:8000/v1?a=b HTTP/1.1"
    assert first.all(b"proxy-authorization") == [BASIC]
    assert first.all(b"host") == [b"x"]


@pytest.mark.parametrize("status", [b"200 Connection established", b"201 Created"])
async def test_tls_goes_through_a_tunnel_and_the_proxy_sees_none_of_it(
    monkeypatch: pytest.MonkeyPatch, status: bytes
) -> None:
    upstream = Recorder()
    trusting = ssl.create_default_context(cafile=PEM)
    trusting.check_hostname = False  # it is localhost's
    async with listen(upstream, ssl=certificate()) as server:
        tunnel = Tunnel(server, status)
        async with listen(tunnel) as proxy, transport(trusting) as outgoing:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//anna:p%40ss@"))
            for _ in range(2):
                request = get("https://model.test", "/v1", [(b"authorization", b"Bearer sk")])
                assert await send_request(outgoing, request) == b"ok"
            assert proxy.connections == server.connections == 1
    assert tunnel.lines[0] == b"CONNECT model.test:443 HTTP/1.1"
    assert b"Proxy-Authorization: " + BASIC in tunnel.lines
    assert b"Bearer sk" not in b"".join(tunnel.lines)
    assert upstream.requests[0].lines[0] == b"GET /v1 HTTP/1.1"
    assert upstream.requests[0].headers == [(b"authorization", b"Bearer sk")]


@pytest.mark.parametrize("tunnels", [False, True], ids=["plain", "tunnel"])
async def test_after_a_dead_connection_none_that_was_idle_is_tried(
    monkeypatch: pytest.MonkeyPatch, *, tunnels: bool
) -> None:
    monkeypatch.setattr("abridge.http.pool.KEEP_ALIVE", HANG)
    all_busy = asyncio.Barrier(3)

    async def answer_once(peer: Peer) -> None:
        await peer.request()
        await all_busy.wait()
        await peer.answer(b"first")
        await peer.request()

    trusting = ssl.create_default_context(cafile=PEM)
    trusting.check_hostname = False  # it is localhost's
    options = {"ssl": certificate()} if tunnels else {}
    url = "https://model.test" if tunnels else "http://model.test"
    async with listen(*[answer_once] * 3, Recorder(), **options) as server:
        proxy = Tunnel(server) if tunnels else None
        async with listen(*[proxy] if proxy else []) as tunnel, transport(trusting) as outgoing:
            monkeypatch.setenv(
                "HTTPS_PROXY" if tunnels else "HTTP_PROXY", tunnel.url if tunnels else server.url
            )
            await asyncio.gather(*[send_request(outgoing, get(url)) for _ in range(3)])
            assert await send_request(outgoing, post(url, b"b")) == b"ok"
            assert server.connections == 4


async def test_a_proxy_that_refuses_is_an_upstream_out_of_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusing = Recorder(status=b"407 Proxy Authentication Required")
    async with listen(refusing) as proxy, transport() as outgoing:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//anna:secret@"))
        with pytest.raises(httpx.ConnectError, match="407") as caught:
            await send_request(outgoing, get("https://model.test"))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n"])
async def test_a_proxy_that_does_not_answer_is_an_upstream_out_of_reach(
    monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    async def script(peer: Peer) -> None:
        await peer.head()
        await peer.send(answer)

    async with listen(script) as proxy, transport() as outgoing:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with pytest.raises(httpx.ConnectError, match=r"Cannot connect to https://model\.test"):
            await send_request(outgoing, get("https://model.test"))


def transport(tls: ssl.SSLContext | None = None) -> Transport:
    return Transport(connect=HANG, headers=HANG, idle=HANG, tls=tls)


class Tunnel:
    """A proxy that connects to one server, whatever it is asked for."""

    def __init__(self, server: Listener, status: bytes = b"200 OK") -> None:
        self._port = int(server.url.rpartition(":")[2])
        self._status = status
        self.lines: list[bytes] = []

    async def __call__(self, peer: Peer) -> None:
        self.lines += await peer.head()
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        await peer.send(b"HTTP/1.1 " + self._status + b"\r\n\r\n")
        there = asyncio.create_task(_copy(peer.reader, writer))
        try:
            await _copy(reader, peer.writer)
        finally:
            there.cancel()
            await asyncio.wait({there})
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()
