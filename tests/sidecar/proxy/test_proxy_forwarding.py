"""Test what forwarding changes in requests and responses."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import unquote_to_bytes

import httpx
import pytest
import respx
from starlette.applications import Starlette
from starlette.routing import Mount

from abridge.config.settings import ROUTE, Settings
from abridge.errors import SettingsError, UpstreamBroken
from abridge.sidecar.proxy.proxy import Proxy
from tests.sidecar.proxy.upstreams import FakeUpstream, proxy_for, serve_proxy, settings
from tests.support.asgi import Call, begin, call, scope_for
from tests.support.clock import Clock
from tests.support.servers import Peer, Request, connect, listen, soon

CHAT = "/v1/chat/completions"


# The address


@pytest.mark.parametrize(
    ("base", "path", "target"),
    [
        ("http://u.test/v1", "/v1/chat/completions", "/v1/chat/completions"),
        ("http://u.test/v1/", "/v1/models", "/v1/models"),
        ("http://u.test", "/v1/models", "/models"),
        ("http://u.test/api/openai/v1", "/v1/responses", "/api/openai/v1/responses"),
        ("http://u.test/api/v1", "/v1", "/api/v1"),
        ("http://u.test", "/v1", "/"),
        ("http://u.test/api/v1", "/v1beta/models", "/v1beta/models"),
        ("http://u.test/api/v1", "/v2/models", "/v2/models"),
        ("http://u.test/api/v1", "/health", "/health"),
        ("http://u.test/api/v1", "/a/v1/models", "/a/v1/models"),
        ("http://u.test/api/v1", "/", "/"),
        ("http://u.test/api/v1", "//evil.test/v1", "//evil.test/v1"),
        ("http://u.test/api/v1", "/v1/../../etc", "/api/v1/../../etc"),
        ("http://u.test/api/v1", "", "/"),
        ("http://u.test/api/v1", "@evil.test/", "/@evil.test/"),
    ],
)
async def test_the_base_url_replaces_the_leading_v1(base: str, path: str, target: str) -> None:
    proxy, upstream = proxy_for(base)
    await call(proxy, path, b"")
    assert upstream.target == target.encode()
    assert upstream.request.url.host == "u.test"


@pytest.mark.parametrize(
    ("path", "raw", "target"),
    [
        ("/v1/a/b", b"/v1/a%2Fb", b"/v1/a%2Fb"),
        ("/v1/a b", b"/v1/a%20b", b"/v1/a%20b"),
        ("/v1/\u00e9", b"/v1/%c3%A9", b"/v1/%c3%A9"),
        ("/v1/\ufffd", b"/v1/%ff", b"/v1/%ff"),
        ("/v1/a b/\u00e9?c:d", None, b"/v1/a%20b/%C3%A9%3Fc:d"),
        ("/v1/rewritten", b"/v1/as%20it%20was", b"/v1/rewritten"),
        ("/v1/100%", None, b"/v1/100%25"),
    ],
)
async def test_a_path_stays_as_the_client_wrote_it(
    path: str, raw: bytes | None, target: bytes
) -> None:
    proxy, upstream = proxy_for("http://u.test/v1")
    await call(proxy, path, b"", raw_path=raw)
    assert upstream.target == target


@pytest.mark.parametrize(
    ("root", "path", "raw", "target"),
    [
        ("/llm", "/llm/v1/models", b"/llm/v1/models", b"/base/models"),
        ("/llm", "/llm/v1/a b", b"/llm/v1/a%20b", b"/base/a%20b"),
        ("/a b", "/a b/v1/x", b"/a%20b/v1/x", b"/base/x"),
        ("/\u00e9", "/\u00e9/v1/x", b"/%C3%A9/v1/x", b"/base/x"),
        ("/llm", "/llm/v1/x", None, b"/base/x"),
        ("/llm", "/llm", b"/llm", b"/"),
        ("/llm", "/v1/x", b"/v1/x", b"/base/x"),
        ("/llm", "/llmv1/x", b"/llmv1/x", b"/llmv1/x"),
    ],
)
async def test_where_the_app_is_mounted_is_not_part_of_the_path(
    root: str, path: str, raw: bytes | None, target: bytes
) -> None:
    proxy, upstream = proxy_for("http://u.test/base")
    await call(proxy, path, b"", root_path=root, raw_path=raw)
    assert upstream.target == target


@pytest.mark.parametrize("query", [b"a=%26&b=c+d&&e=%zz", b"q=\xff\xe4&r=\xc3\xa4"])
async def test_a_query_stays_as_the_client_wrote_it(query: bytes) -> None:
    proxy, upstream = proxy_for("http://u.test/v1")
    await call(proxy, "/v1/models", b"", query_string=query)
    assert upstream.target == b"/v1/models?" + query
    assert unquote_to_bytes(upstream.request.url.query) == unquote_to_bytes(query)


async def test_a_request_is_forwarded_byte_for_byte() -> None:
    seen: list[Request] = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.request())
        await peer.answer()

    async with serve_proxy(script, path="/api/v1") as chain, connect(chain.url) as client:
        await client.send(b"GET /v1//a%2Fb%20c/../d;e?a=%26&b=/? HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await client.response()).body == b"ok"
    assert seen[0].lines[0] == b"GET /api/v1//a%2Fb%20c/../d;e?a=%26&b=/? HTTP/1.1"


async def test_a_query_that_is_not_ascii_is_sent_byte_for_byte() -> None:
    seen: list[Request] = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.request())
        await peer.answer()

    async with listen(script) as upstream:
        proxy = Proxy(settings(upstream.url + "/v1"))
        assert (await call(proxy, "/v1/models", b"", query_string=b"q=\xff\xe4")).data == b"ok"
        await proxy.aclose()
    assert seen[0].lines[0] == b"POST /v1/models?q=\xff\xe4 HTTP/1.1"


async def test_a_client_that_pauses_does_not_make_upstream_silent(clock: Clock) -> None:
    """Upstream's bytes are at hand, and more come as soon as the client goes on."""
    paused = asyncio.Event()
    piece, size = b"x" * (1 << 12), 1 << 30
    sent = 0

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        while not chain.unread_bytes:
            await peer.send(piece)
            sent += len(piece)
            await asyncio.sleep(0)
        paused.set()
        await peer.left()

    async with serve_proxy(script, limits={"idle": 5}) as chain, connect(chain.url) as client:
        client.writer.transport.pause_reading()
        await client.send(b"GET /v1/files HTTP/1.1\r\nhost: x\r\n\r\n")
        await soon(paused.wait())
        await clock.advance(6.0)
        client.writer.transport.resume_reading()
        await client.head()
        assert len(await soon(client.reader.readexactly(sent))) == sent
        assert not chain.ends


async def test_it_can_be_mounted() -> None:
    proxy, upstream = proxy_for("http://u.test/base")
    app = Starlette(routes=[Mount("/llm", app=proxy)])
    assert (await call(app, "/llm/v1/chat/completions", {"model": "m"})).data == b"ok"
    assert upstream.target == b"/base/chat/completions"


async def test_the_host_header_does_not_choose_the_upstream() -> None:
    proxy, upstream = proxy_for("http://u.test:8080/v1")
    headers = {"host": "evil.test", "x-forwarded-host": "evil.test", "forwarded": "host=evil.test"}
    await call(proxy, CHAT, {}, headers=headers)
    assert upstream.request.url == "http://u.test:8080/v1/chat/completions"
    assert upstream.request.headers.get_list("host") == ["u.test:8080"]


async def test_the_route_in_the_scope_says_which_upstream() -> None:
    first = {"name": "first", "base_url": "http://first.test", "models": ["mine-*"]}
    second = {"name": "second", "base_url": "http://second.test", "models": ["other-*"]}
    both = settings(first, second)
    upstream = FakeUpstream()
    proxy = Proxy(both, upstream.transport)
    await call(proxy, CHAT, {})
    await call(proxy, CHAT, {}, **{ROUTE: both.routes[1]})
    assert [request.url.host for request in upstream.requests] == ["first.test", "second.test"]


async def test_respx_can_stand_in_for_an_upstream() -> None:
    router = respx.Router()
    router.post("http://u.test/v1/responses").respond(202, json={"id": "resp_1"})
    proxy = Proxy(settings("http://u.test/v1"), httpx.MockTransport(router.async_handler))
    answer = await call(proxy, "/v1/responses", {"model": "m"})
    assert (answer.status, answer.json) == (202, {"id": "resp_1"})


async def test_an_upstream_without_an_address_stops_the_start() -> None:
    with pytest.raises(SettingsError, match="base_url"):
        Proxy(settings({}))


async def test_no_upstream_stops_the_start() -> None:
    with pytest.raises(SettingsError, match="base_url"):
        Proxy(Settings())


# Headers


HOP_BY_HOP = {
    "connection": "keep-alive, X-Mine",
    "keep-alive": "timeout=5",
    "proxy-authenticate": "Basic",
    "proxy-authorization": "Basic eDp5",
    "proxy-connection": "keep-alive",
    "te": "trailers",
    "trailer": "x-sum",
    "transfer-encoding": "chunked",
    "upgrade": "h2c",
    "x-mine": "1",
}


async def test_hop_by_hop_headers_are_not_forwarded() -> None:
    proxy, upstream = proxy_for()
    given = {**HOP_BY_HOP, "expect": "100-continue", "accept": "*/*"}
    await call(proxy, CHAT, b"{}", headers=given)
    assert {name for name in upstream.request.headers if name != VIA} == {
        *("host", "content-type", "accept", "content-length")
    }


async def test_hop_by_hop_headers_are_not_returned() -> None:
    upstream = FakeUpstream(
        httpx.Response(200, headers={**HOP_BY_HOP, "X-Kept": "1"}, content=b"ok")
    )
    proxy = Proxy(settings("http://u.test"), upstream.transport)
    assert (await call(proxy, CHAT, {})).headers == {"x-kept": "1", "content-length": "2"}


VIA = "x-abridge-via"

IDENTIFYING = {
    "cookie": "session=1",
    "forwarded": "for=10.9.9.9",
    "x-forwarded-for": "10.9.9.9",
    "x-forwarded-host": "intranet",
    "x-real-ip": "10.9.9.9",
    "cf-connecting-ip": "10.9.9.9",
    "true-client-ip": "10.9.9.9",
    "x-user-email": "ann@example.com",
    "referer": "https://intranet.example/secret",
    "sec-fetch-site": "same-origin",
}


async def test_who_the_client_is_stays_here() -> None:
    proxy, upstream = proxy_for()
    await call(proxy, CHAT, {}, headers=IDENTIFYING)
    assert not upstream.request.headers.keys() & IDENTIFYING.keys()


@pytest.mark.parametrize(
    "name",
    [
        *("accept", "accept-encoding", "content-type", "user-agent", "idempotency-key"),
        *("openai-organization", "openai-beta", "anthropic-version", "anthropic-beta"),
        *("x-stainless-retry-count", "x-request-id", "x-client-request-id"),
        *("traceparent", "tracestate", "baggage", "session_id", "if-none-match"),
        *("origin", "access-control-request-method", "access-control-request-headers"),
    ],
)
async def test_what_model_servers_read_is_forwarded(name: str) -> None:
    proxy, upstream = proxy_for()
    scope = {**scope_for(CHAT), "headers": [(name.encode(), b"value")]}
    await Call(proxy, scope, b"{}").start().finish()
    assert upstream.request.headers[name] == "value"


async def test_the_settings_may_add_headers() -> None:
    globs = ["X-Session-*", "x-forwarded-for", "*-tier"]
    proxy, upstream = proxy_for({"base_url": "http://u.test", "forward_headers": globs})
    given = {"x-session-id": "7", "x-forwarded-for": "10.1.1.1", "x-tier": "a", "x-session": "no"}
    await call(proxy, CHAT, {}, headers={**IDENTIFYING, **given})
    kept = {name: value for name, value in given.items() if name != "x-session"}
    assert kept.items() <= dict(upstream.request.headers).items()
    assert not upstream.request.headers.keys() & (IDENTIFYING.keys() | {"x-session"}) - kept.keys()


@pytest.mark.parametrize("credential", ["client", "none"])
async def test_no_glob_adds_what_abridge_decides_about(credential: str) -> None:
    entry = {"base_url": "http://u.test", "forward_headers": ["*"], "credential": credential}
    proxy, upstream = proxy_for(entry)
    own = {"x-abridge-summary": "auto", "x-abridgement": "kept"}
    await call(proxy, CHAT, {}, headers={**HOP_BY_HOP, **CREDENTIALS, **own})
    sent = upstream.request.headers
    assert not sent.keys() & (HOP_BY_HOP.keys() | {"x-abridge-summary"})
    assert sent["x-abridgement"] == "kept"
    assert bool(sent.keys() & CREDENTIALS.keys()) is (credential == "client")


GATEWAYS = {
    "x-litellm-tags": "a",
    "x-litellm-api-key": "client",
    "helicone-auth": "Bearer client",
    "helicone-target-url": "https://evil.test",
    "x-portkey-api-key": "client",
    "x-portkey-custom-host": "https://evil.test",
    "x-portkey-config": "{}",
    "cf-aig-authorization": "Bearer client",
    "cf-aig-skip-cache": "true",
}


@pytest.mark.parametrize(
    ("entry", "passes"),
    [
        ({}, True),
        ({"credential": "client"}, True),
        ({"credential": "none"}, False),
        ({"api_key_env": "OWN"}, False),
    ],
)
@pytest.mark.parametrize("globs", [[], ["*"]])
async def test_what_directs_a_gateway_goes_where_the_clients_credential_goes(
    entry: dict[str, str], *, passes: bool, globs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN", "sk-own")
    proxy, upstream = proxy_for({"base_url": "http://u.test", "forward_headers": globs, **entry})
    await call(proxy, CHAT, {}, headers=GATEWAYS)
    sent = dict(upstream.request.headers)
    assert {name: value for name, value in sent.items() if name in GATEWAYS} == (
        GATEWAYS if passes else {}
    )


@pytest.mark.parametrize("names", [("a", "b"), ("only",)])
async def test_a_credential_goes_only_where_it_is_meant_to(names: tuple[str, ...]) -> None:
    """To the only upstream; of several, to those whose settings say so."""
    entries = [{"name": name, "base_url": f"http://{name}.test"} for name in names]
    proxy, upstream = proxy_for(*entries)
    await call(proxy, CHAT, {}, headers=CREDENTIALS)
    assert bool(upstream.request.headers.keys() & CREDENTIALS.keys()) is (len(names) == 1)


async def test_an_id_alone_is_added_and_repeated_headers_stay_repeated_both_ways() -> None:
    seen: list[Request] = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.request())
        await peer.answer(b"ok", b"X-Twice: a=1", b"x-caf: \xe9", b"X-Twice: b=2")

    async with serve_proxy(script) as chain, connect(chain.url) as client:
        await client.send(
            b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nOpenAI-Twice: 1\r\nopenai-twice: 2\r\n"
            b"openai-caf: \xe9\r\ncontent-length: 2\r\n\r\n{}"
        )
        answer = await client.response()
    assert seen[0].headers == [
        (b"host", chain.upstream.url.removeprefix("http://").encode()),
        (b"openai-twice", b"1"),
        (b"openai-twice", b"2"),
        (b"openai-caf", b"\xe9"),
        (b"x-abridge-via", seen[0].all(b"x-abridge-via")[0]),
        (b"content-length", b"2"),
    ]
    assert answer.headers == [
        (b"x-twice", b"a=1"),
        (b"x-caf", b"\xe9"),
        (b"x-twice", b"b=2"),
        (b"content-length", b"2"),
    ]


CREDENTIALS = {
    "authorization": "Bearer client",
    "api-key": "client",
    "x-api-key": "client",
    "x-goog-api-key": "client",
}


async def test_the_client_s_credential_goes_through() -> None:
    proxy, upstream = proxy_for()
    await call(proxy, CHAT, {}, headers=CREDENTIALS)
    assert CREDENTIALS.items() <= dict(upstream.request.headers).items()


async def test_an_upstreams_own_key_replaces_the_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPSTREAM_KEY", "sk-upstream")
    proxy, upstream = proxy_for({"base_url": "http://u.test", "api_key_env": "UPSTREAM_KEY"})
    monkeypatch.delenv("UPSTREAM_KEY")  # the key was read at the start
    await call(proxy, CHAT, {}, headers=CREDENTIALS)
    assert upstream.request.headers.get_list("authorization") == ["Bearer sk-upstream"]
    assert not upstream.request.headers.keys() & CREDENTIALS.keys() - {"authorization"}


@pytest.mark.parametrize("whose", [{"api_key_env": "UPSTREAM_KEY"}, {"credential": "none"}])
async def test_without_a_credential_of_its_own_no_client_chooses_an_account(
    whose: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPSTREAM_KEY", "sk-upstream")
    proxy, upstream = proxy_for({"base_url": "http://u.test", **whose})
    choosing = {"openai-organization": "org-2", "openai-project": "p", "idempotency-key": "theirs"}
    await call(proxy, CHAT, {}, headers={**choosing, "openai-beta": "responses=v1"})
    assert upstream.request.headers["openai-beta"] == "responses=v1"
    assert not upstream.request.headers.keys() & choosing.keys()


async def test_an_upstream_s_key_may_be_in_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = tmp_path / "key"
    secret.write_text("sk-file\n")
    monkeypatch.setenv("UPSTREAM_KEY_FILE", str(secret))
    proxy, upstream = proxy_for({"base_url": "http://u.test", "api_key_env": "UPSTREAM_KEY"})
    await call(proxy, CHAT, {})
    assert upstream.request.headers["authorization"] == "Bearer sk-file"


async def test_a_missing_key_stops_the_start() -> None:
    with pytest.raises(SettingsError, match="api_key_env"):
        Proxy(settings({"base_url": "http://u.test", "api_key_env": "NO_SUCH_KEY"}))


# Methods and bodies


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "REPORT"])
async def test_every_method_is_forwarded(method: str) -> None:
    proxy, upstream = proxy_for()
    await call(proxy, "/v1/files/f", b"x", method=method)
    assert (upstream.request.method, upstream.request.content) == (method, b"x")


@pytest.mark.parametrize(
    ("sent", "length", "body"),
    [
        (b"", [], b""),
        (b"content-length: 0\r\n", [b"0"], b""),
        (b"content-length: 3\r\n\r\nabc", [b"3"], b"abc"),
        (b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", [b"3"], b"abc"),
        (b"expect: 100-continue\r\ncontent-length: 3\r\n\r\nabc", [b"3"], b"abc"),
    ],
)
async def test_a_complete_body_is_sent_with_its_length(
    sent: bytes, length: list[bytes], body: bytes
) -> None:
    seen: list[Request] = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.request())
        await peer.answer()

    async with serve_proxy(script) as chain, connect(chain.url) as client:
        await client.send(b"POST /v1/responses HTTP/1.1\r\nhost: x\r\n" + sent + b"\r\n")
        await client.reader.readuntil(b"ok")
    assert (seen[0].all(b"content-length"), seen[0].body) == (length, body)
    assert seen[0].all(b"transfer-encoding") == seen[0].all(b"expect") == []


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_streamed_body_is_forwarded_in_pieces(chunked: bool) -> None:  # noqa: FBT001
    framing = b"transfer-encoding: chunked" if chunked else b"content-length: 6"

    async def script(peer: Peer) -> None:
        head = Request(await peer.head(), b"")
        assert head.headers[2:] == [tuple(framing.split(b": "))]
        assert await (peer.chunk() if chunked else peer.reader.readexactly(3)) == b"abc"
        await client.send(b"3\r\ndef\r\n0\r\n\r\n" if chunked else b"def")
        assert await (peer.chunks() if chunked else peer.reader.readexactly(3)) == b"def"
        await peer.answer()

    async with serve_proxy(script) as chain, connect(chain.url) as client:
        await client.send(b"POST /v1/files HTTP/1.1\r\nhost: x\r\n" + framing + b"\r\n\r\n")
        await client.send(b"3\r\nabc\r\n" if chunked else b"abc")
        assert (await soon(client.response())).body == b"ok"


async def test_conflicting_lengths_are_not_forwarded() -> None:
    proxy, upstream = proxy_for()
    lengths = [(b"content-length", b"1"), (b"content-length", b"9")]
    await Call(proxy, {**scope_for(CHAT), "headers": lengths}, b"{}").start().finish()
    assert upstream.request.headers.get_list("content-length") == ["2"]


@pytest.mark.parametrize(
    ("method", "status", "length"),
    [("HEAD", b"200 OK", [b"5"]), ("GET", b"204 No Content", []), ("GET", b"304 Not Modified", [])],
)
async def test_answers_without_a_body(method: str, status: bytes, length: list[bytes]) -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(b"HTTP/1.1 " + status + b"\r\netag: x\r\ncontent-length: 5\r\n\r\n")

    async with serve_proxy(script) as chain, connect(chain.url) as client:
        for _ in range(2):  # on the same connections
            await client.send(method.encode() + b" /v1/x HTTP/1.1\r\nhost: x\r\n\r\n")
            answer = Request(await soon(client.head()), b"")
            assert answer.lines[0] == b"HTTP/1.1 " + status
            assert answer.all(b"etag") == [b"x"]
            assert answer.all(b"content-length") == length
        assert chain.upstream.connections == 1


async def test_each_event_is_forwarded_at_once() -> None:
    seen = asyncio.Semaphore(0)
    events = [b"data: %d\n\n" % number for number in range(10)]

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for event in [*events, b""]:
            await seen.acquire()
            await peer.send(b"%x\r\n%b\r\n" % (len(event), event))

    async with serve_proxy(script) as chain, connect(chain.url) as client:
        await client.send(b"GET /v1/x HTTP/1.1\r\nhost: x\r\n\r\n")
        await soon(client.head())
        for event in [*events, b""]:
            seen.release()
            assert await soon(client.chunk()) == event


# The answer's end


@pytest.mark.parametrize(
    "answer",
    [
        b"content-length: 5\r\n\r\nwhole",
        b"transfer-encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n",
    ],
)
async def test_an_answer_that_has_come_whole_is_sent_whole(answer: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n" + answer)

    async with listen(script) as server:
        proxy = Proxy(settings(server.url))
        answered = await soon(call(proxy, CHAT, b"{}"))
        await proxy.aclose()
    _, *sent = answered.sent
    assert sent == [{"type": "http.response.body", "body": b"whole", "more_body": False}]


async def test_a_body_that_is_shorter_than_its_length_has_no_end() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort")

    async with listen(script) as server:
        proxy = Proxy(settings(server.url))
        running = begin(proxy, CHAT, b"{}")
        with pytest.raises(UpstreamBroken):
            await soon(running.finish())
        await proxy.aclose()
    assert all(message.get("more_body", True) for message in running.sent)
