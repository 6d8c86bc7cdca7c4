"""The ASGI seam: when Abridge engages, and that it is transparent when it does not."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Awaitable
from functools import partial
from typing import Any, ClassVar
from urllib.parse import unquote

import pytest
from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from abridge.config.settings import Settings
from abridge.core.plan import Passage
from abridge.errors import SettingsError
from abridge.middleware import AbridgeMiddleware
from abridge.sidecar.app import create_app
from abridge.sidecar.proxy.proxy import Proxy
from abridge.summarizers.summarizer import Summarizer
from tests.support.asgi import Call, begin, call, scope_for
from tests.support.attribution import attribution_texts, without_attributions
from tests.support.checker import check_chat, check_responses
from tests.support.deployments import FORMS, PREFIX, Form, build_app, settings_for
from tests.support.servers import until
from tests.support.streams import (
    THOUGHT,
    call_item,
    chat_stream,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
    split_frames,
)
from tests.support.streams import call as tool_call
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
ASKING = {**CHAT, "reasoning": {"summary": "auto"}}
CHAT_PATH, RESPONSES_PATH = "/v1/chat/completions", "/v1/responses"
CALLS = [tool_call("look", "{}")]
OUTPUT = [reasoning_item(0, THOUGHT), message_item(1, "Hello.")]
WHOLE = Answer.json(completion({"content": "Hello.", "reasoning": THOUGHT}))

STALE_HEADERS = (
    *("Content-Length", "Transfer-Encoding", "Content-Range", "Trailer", "ETag"),
    *("Content-MD5", "Digest", "Content-Digest", "Repr-Digest", "Signature", "Signature-Input"),
)
"""Headers of an answer that hold no more once it is rewritten."""


def thinker() -> Upstream:
    return Upstream(Answer(chat_stream(THOUGHT, "Hello.")))


def wrap(
    app: Any, writer: Summarizer | None = None, review: Any = None, **tables: Any
) -> AbridgeMiddleware:
    if writer is not None:
        tables["summarizer"] = {"kind": "object", **tables.get("summarizer", {})}
    settings, registry = settings_for(**tables), CollectorRegistry()
    return AbridgeMiddleware(app, settings, summarizer=writer, review=review, registry=registry)


async def never(_: Message) -> None:
    """A server's `send` that is not to be called."""
    raise AssertionError


async def connect() -> Message:
    """Receive the start of a WebSocket."""
    return {"type": "websocket.connect"}


class Probe:
    """An app that records its call."""

    def __init__(self) -> None:
        self.scope: Scope = {}
        self.send: Send | None = None
        self.received: list[Message] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope, self.send = scope, send
        more = True
        while more:
            self.received.append(await receive())
            more = self.received[-1].get("more_body", False)


class TestTransparency:
    @pytest.mark.parametrize(
        ("method", "path"),
        [("GET", "/v1/responses"), ("POST", "/v1/embeddings"), ("POST", "/anything"), ("GET", "/")],
    )
    async def test_other_requests_get_the_clients_own_send_and_receive(
        self, method: str, path: str
    ) -> None:
        probe = Probe()
        request = begin(wrap(probe), path, b"body", method=method)
        await request.finish()
        assert probe.send == request.send
        assert probe.received[0]["body"] == b"body"

    async def test_a_request_without_a_summary_gets_the_clients_own_send(self) -> None:
        probe = Probe()
        request = begin(wrap(probe), CHAT_PATH, CHAT)
        await request.finish()
        assert probe.send == request.send
        assert json.loads(probe.received[0]["body"]) == CHAT
        sent = {key: probe.scope[key] for key in probe.scope if not key.startswith("abridge.")}
        assert sent == request.scope

    async def test_a_body_that_was_read_is_replayed_in_one_piece(self) -> None:
        pieces = [b'{"model":', b'"m","x"', b":1}"]
        waiting = [
            {"type": "http.request", "body": piece, "more_body": piece != pieces[-1]}
            for piece in pieces
        ]

        async def receive() -> Message:
            return waiting.pop(0)

        probe = Probe()
        await wrap(probe)(scope_for(CHAT_PATH), receive, never)
        whole = {"type": "http.request", "body": b"".join(pieces), "more_body": False}
        assert probe.received == [whole]

    @pytest.mark.parametrize(
        ("path", "websockets"), [(RESPONSES_PATH, False), (CHAT_PATH, True), ("/v1/realtime", True)]
    )
    async def test_websockets_that_are_not_served_here_pass(
        self, path: str, *, websockets: bool
    ) -> None:
        probe = Probe()

        app = wrap(probe, server={"websockets": websockets})
        await app({"type": "websocket", "path": path}, connect, never)
        assert probe.received == [{"type": "websocket.connect"}]

    @pytest.mark.parametrize("body", [b"", b"not json", b"[1]", b'{"summary": '])
    async def test_a_body_that_is_not_an_object_is_left_to_upstream(self, body: bytes) -> None:
        upstream = Upstream(Answer.json({"error": {"message": "bad"}}, 400))
        answer = await call(wrap(upstream), CHAT_PATH, body)
        assert answer.status == 400
        assert upstream.requests[0].body == body

    async def test_a_response_in_the_background_is_not_engaged(self) -> None:
        stream = responses_stream(OUTPUT)
        upstream, scripted = Upstream(Answer(stream)), Scripted()
        body = {"model": "m", "input": "x", "background": True, "reasoning": {"summary": "auto"}}
        answer = await call(wrap(upstream, scripted), RESPONSES_PATH, body)
        assert answer.data == b"".join(stream)
        assert not scripted.requests


class TestRequestedSummary:
    @pytest.mark.parametrize("path", [CHAT_PATH, RESPONSES_PATH])
    @pytest.mark.parametrize("value", ["loud", "", 7, True, ["auto"], "off"])
    async def test_an_invalid_value_is_a_400_before_anything_is_sent(
        self, path: str, value: Any
    ) -> None:
        upstream = thinker()
        body = {**CHAT, "reasoning": {"summary": value}}
        answer = await call(wrap(upstream), path, body)
        assert answer.status == 400
        error = answer.json["error"]
        assert error["param"] == "reasoning.summary"
        assert error["type"] == "invalid_request_error"
        assert (
            "'auto', 'concise', 'detailed'" in error["message"] or "'concise'" in error["message"]
        )
        assert not upstream.requests

    async def test_the_deprecated_name_is_accepted(self) -> None:
        scripted = Scripted()
        body = {**CHAT, "reasoning": {"generate_summary": "detailed"}}
        await call(wrap(thinker(), scripted), CHAT_PATH, body)
        assert scripted.requests[0].style == "detailed"

    async def test_a_header_can_request_a_summary(self) -> None:
        scripted = Scripted()
        app = wrap(thinker(), scripted)
        answer = await call(app, CHAT_PATH, CHAT, {"x-abridge-summary": "concise"})
        assert scripted.requests[0].style == "concise"
        assert check_chat(answer.data).choices[0].fields["reasoning_content"] == scripted.text

    async def test_the_body_wins_over_the_header_and_the_header_over_the_default(self) -> None:
        for body, header, default, expected in [
            (ASKING, "concise", "detailed", "auto"),
            (CHAT, "concise", "detailed", "concise"),
            (CHAT, None, "detailed", "detailed"),
            (CHAT, "off", "detailed", None),
            ({**CHAT, "reasoning": {"summary": None}}, "concise", "detailed", None),
            ({**CHAT, "reasoning": {"effort": "low"}}, None, "off", None),
        ]:
            scripted = Scripted()
            app = wrap(thinker(), scripted, summary={"default": default})
            headers = {"x-abridge-summary": header} if header else {}
            await call(app, CHAT_PATH, body, headers)
            assert [passage.style for passage in scripted.requests] == (
                [expected] if expected else []
            )

    async def test_an_invalid_header_is_a_400_that_names_it(self) -> None:
        for name, body in (("x-abridge-summary", CHAT), ("x-abridge-usage", ASKING)):
            answer = await call(wrap(thinker()), CHAT_PATH, body, {name: "loud"})
            assert (answer.status, answer.json["error"]["param"]) == (400, name)

    async def test_a_style_that_is_not_allowed_is_refused(self) -> None:
        app = wrap(thinker(), summary={"allow": ["concise"]})
        answer = await call(app, CHAT_PATH, ASKING)
        assert answer.status == 400
        assert answer.json["error"]["code"] == "unsupported_value"
        assert "'concise'" in answer.json["error"]["message"]

    async def test_separate_usage_can_be_requested(self) -> None:
        answer = await call(
            wrap(thinker(), Scripted()), CHAT_PATH, ASKING, {"x-abridge-usage": "separate"}
        )
        usage = check_chat(answer.data).usage
        assert usage is not None
        assert usage["total_tokens"] == 81
        assert usage["reasoning_summary"]["total_tokens"] == 15

    async def test_a_summarizers_own_call_gets_no_summary(self) -> None:
        scripted = Scripted()
        app = wrap(thinker(), scripted, summary={"default": "auto"})
        await call(app, CHAT_PATH, CHAT, {"x-abridge-call": "summary"})
        assert not scripted.requests

    async def test_a_summarizers_own_call_hides_reasoning_too(self) -> None:
        app = wrap(thinker(), Scripted(), reasoning={"expose": "none"})
        answer = await call(app, CHAT_PATH, CHAT, {"x-abridge-call": "summary"})
        assert b"odd numbers" not in answer.data


class TestWithoutAStore:
    @pytest.mark.parametrize(("profile", "both"), [("deepseek", True), ("auto", False)])
    async def test_reasoning_is_shown_where_clients_must_return_it(
        self, profile: str, *, both: bool
    ) -> None:
        upstreams = [{"profile": profile}]
        app = wrap(thinker(), Scripted(), history={"store": "none"}, upstreams=upstreams)
        answer = await call(app, CHAT_PATH, ASKING)
        assert (THOUGHT in check_chat(answer.data).choices[0].fields.get("reasoning", "")) is both


class TestHiding:
    @pytest.mark.parametrize("expose", ["summary", "none"])
    async def test_reasoning_is_hidden_without_a_summary_too(self, expose: str) -> None:
        scripted = Scripted()
        app = wrap(thinker(), scripted, reasoning={"expose": expose})
        answer = await call(app, CHAT_PATH, CHAT)
        assert b"odd" not in answer.data
        assert check_chat(answer.data).choices[0].text == "Hello."
        assert not scripted.requests

    @pytest.mark.parametrize("body", [b"[]", b"{", b""])
    async def test_a_request_that_cannot_be_read_is_not_let_through(self, body: bytes) -> None:
        upstream = thinker()
        answer = await call(wrap(upstream, reasoning={"expose": "none"}), CHAT_PATH, body)
        assert (answer.status, answer.json["error"]["code"]) == (400, "invalid_json")
        assert not upstream.requests

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-32"])
    async def test_reasoning_is_hidden_from_requests_in_other_encodings(
        self, encoding: str
    ) -> None:
        app = wrap(thinker(), reasoning={"expose": "none"})
        answer = await call(app, CHAT_PATH, json.dumps(CHAT).encode(encoding))
        assert b"odd" not in answer.data
        assert check_chat(answer.data).choices[0].text == "Hello."

    @pytest.mark.parametrize(
        "path",
        [
            f"{CHAT_PATH}/",
            f"/openai{CHAT_PATH}",
            f"/{CHAT_PATH}",
            "/v1/chat//completions",
            "/v1/chat/./completions",
            "/v1/chat/completions/.",
            "/v1/x/../chat/completions",
            "/v1/chat/x/../completions//",
            "/../../v1/chat/completions",
            "/v1/chat%2Fcompletions",
            "/v1/chat%2F/completions",
            "/v1/chat/%2e/completions",
            "/v1/chat/x/%2E%2E/%63ompletions",
            "/v1/chat/x%2F../completions",
            "/v1/chat/x%2Fy/../completions",
            "/v1/chat/x%2Fy/%2e%2e/completions",
        ],
    )
    async def test_the_endpoint_is_recognized_by_its_last_segments(self, path: str) -> None:
        app = wrap(thinker(), reasoning={"expose": "none"})
        answer = await call(app, unquote(path), CHAT, raw_path=path.encode())
        assert b"odd" not in answer.data

    @pytest.mark.parametrize("path", ["/v1/chat/completions/..", "/v1/xchat/completions", "/v1/x"])
    async def test_other_paths_are_not_recognized(self, path: str) -> None:
        reasoning = {"expose": "none", "open_paths": ["/*"]}
        answer = await call(wrap(thinker(), reasoning=reasoning), path, CHAT)
        assert b"odd" in answer.data

    @pytest.mark.parametrize(
        ("method", "tail"),
        [
            ("GET", "resp_1/other"),
            ("POST", "resp_1"),
            ("POST", "compact/x"),
            ("PUT", "resp_1"),
            ("HEAD", "resp_1"),
            ("GET", "resp_1/../resp_2"),
            ("GET", "/resp_1"),
            ("GET", "resp_1%2Finput_items"),
            ("GET", "resp_1\n"),
        ],
    )
    async def test_other_endpoints_of_stored_responses_are_closed(
        self, method: str, tail: str
    ) -> None:
        upstream = thinker()
        app = wrap(upstream, reasoning={"expose": "none"})
        answer = await call(app, f"/v1/responses/{tail}", b"", method=method)
        assert answer.status == 404
        assert not upstream.requests

    @pytest.mark.parametrize("method", ["GET", "DELETE"])
    @pytest.mark.parametrize(
        "path",
        [
            "/v1/responses",
            "/v1/responses/",
            "/v1//responses",
            "/v1/responses/x/..",
            "/v1/responses%2F.",
            "/v1/chat/completions",
            "/v1/chat/completions/chatcmpl-1",
            "/v1/chat/completions/chatcmpl-1/messages",
        ],
    )
    async def test_lists_of_responses_are_closed(self, path: str, method: str) -> None:
        """Some servers offer them beside the endpoints."""
        upstream = thinker()
        app = wrap(upstream, reasoning={"expose": "summary"}, summarizer={"kind": "upstream"})
        answer = await call(app, unquote(path), b"", method=method, raw_path=path.encode())
        assert answer.status == 404
        assert not upstream.requests

    @pytest.mark.parametrize(
        "path", ["/v1/responses", "/v1/responses/resp_1", "/v1/models", "/v1/embeddings", CHAT_PATH]
    )
    async def test_preflight_requests_pass(self, path: str) -> None:
        upstream = Upstream(Answer([], 200, {"access-control-allow-origin": "*"}))
        app = wrap(upstream, reasoning={"expose": "none"})
        answer = await call(app, path, b"", method="OPTIONS")
        assert (answer.status, answer.headers) == (200, {"access-control-allow-origin": "*"})

    @pytest.mark.parametrize("tail", ["resp_1", "resp_1/input_items", "resp_1/cancel"])
    async def test_unreadable_stored_responses_are_closed(self, tail: str) -> None:
        app = wrap(thinker(), reasoning={"expose": "none"})
        method = "POST" if tail.endswith("cancel") else "GET"
        answer = await call(app, f"/v1/responses/{tail}", b"", method=method)
        assert answer.status == 502
        assert b"odd" not in answer.data

    CLOSED = (
        ("POST", "/threads/x/messages"),
        ("POST", "/v1/completions"),
        ("POST", "/api/chat"),
        ("POST", "/api/generate"),
        ("POST", "/generate"),
        ("GET", "/v1/conversations/conv_1/items"),
        ("GET", "/v1/files/file_1/content"),
        ("POST", "/v1/batches"),
        ("PATCH", "/anything"),
        ("GET", "/v1/models/../slots"),
    )

    @pytest.mark.parametrize(("method", "path"), CLOSED)
    @pytest.mark.parametrize("form", FORMS)
    async def test_paths_that_are_not_understood_are_closed(
        self, form: Form, method: str, path: str
    ) -> None:
        upstream = thinker()
        app = build_app(form, upstream, reasoning={"expose": "none"})
        answer = await call(app, PREFIX[form] + path, CHAT, method=method)
        error = answer.json["error"]
        assert (answer.status, error["code"]) == (404, "not_found")
        assert error["type"] == "invalid_request_error"
        assert "reasoning.open_paths" in error["message"]
        assert (await call(app, PREFIX[form] + path, b"", method="OPTIONS")).status == 404
        assert not upstream.requests

    @pytest.mark.parametrize(("method", "path"), CLOSED[:-1])
    async def test_they_are_open_where_nothing_is_hidden(self, method: str, path: str) -> None:
        answer = await call(wrap(thinker()), path, CHAT, method=method)
        assert b"odd" in answer.data

    @pytest.mark.parametrize("method", ["GET", "OPTIONS"])
    async def test_no_header_opens_them(self, method: str) -> None:
        """Some servers take a header's method or path for the request's own."""
        headers = {
            **dict.fromkeys(("x-http-method-override", "x-http-method"), "POST"),
            **dict.fromkeys(("x-original-url", "x-rewrite-url"), "/v1/completions"),
            "x-method-override": "POST",
        }
        upstream = thinker()
        for expose, passes in (("none", False), ("auto", True)):
            app = wrap(upstream, reasoning={"expose": expose})
            await call(app, "/v1/models", b"", headers, method=method)
            sent = {name.decode() for name, _ in upstream.requests[-1].headers}
            assert sent & headers.keys() == (headers.keys() if passes else set())

    async def test_one_upstream_that_hides_closes_them_for_all(self) -> None:
        upstreams = [{"name": "a"}, {"name": "b", "reasoning": {"expose": "none"}}]
        answer = await call(wrap(thinker(), upstreams=upstreams), "/v1/completions", CHAT)
        assert answer.status == 404

    @pytest.mark.parametrize(
        ("method", "path"),
        [("GET", "/v1/models"), ("GET", "/health"), ("POST", "/v1/embeddings"), ("GET", "/own/x")],
    )
    @pytest.mark.parametrize("form", FORMS)
    async def test_known_and_opened_paths_pass_unread(
        self, form: Form, method: str, path: str
    ) -> None:
        upstream = Upstream(Answer([b"odd bytes"], 418, {"x-said": "yes"}))
        reasoning = {"expose": "none", "open_paths": ["/own/*"]}
        answer = await call(
            build_app(form, upstream, reasoning=reasoning), PREFIX[form] + path, b"x", method=method
        )
        assert (answer.status, answer.data) == (418, b"odd bytes")
        assert answer.headers["x-said"] == "yes"
        assert upstream.requests[0].body == b"x"

    @pytest.mark.parametrize("opened", [True, False])
    async def test_websockets_are_refused_unless_their_path_is_opened(
        self, *, opened: bool
    ) -> None:
        async def send(message: Message) -> None:
            sent.append(message)

        sent: list[Message] = []
        probe = Probe()
        paths = ["/v1/realtime"] if opened else []
        app = wrap(probe, reasoning={"expose": "none", "open_paths": paths})
        await app({"type": "websocket", "path": "/v1/realtime"}, connect, send)
        assert sent == ([] if opened else [{"type": "websocket.close"}])
        assert bool(probe.scope) is opened

    async def test_a_websocket_that_is_refused_gets_a_426_where_the_server_takes_one(self) -> None:
        async def send(message: Message) -> None:
            sent.append(message)

        sent: list[Message] = []
        extensions = {"websocket.http.response": {}}
        scope = {"type": "websocket", "path": "/v1/realtime", "extensions": extensions}
        await wrap(Probe(), reasoning={"expose": "none"})(scope, connect, send)
        assert (sent[0]["type"], sent[0]["status"]) == ("websocket.http.response.start", 426)
        assert b"reasoning.open_paths" in sent[1]["body"]


class TestRequestBody:
    async def test_a_long_body_passes_unread_where_there_is_no_policy(self) -> None:
        upstream = thinker()
        body = {**ASKING, "padding": "x" * 2000}
        answer = await call(wrap(upstream, limits={"body": 1000}), CHAT_PATH, body)
        assert upstream.requests[0].json == body
        assert b"odd" in answer.data

    async def test_a_long_body_is_a_413_where_there_is_a_policy(self) -> None:
        upstream = thinker()
        app = wrap(upstream, limits={"body": 1000}, summary={"default": "auto"})
        answer = await call(app, CHAT_PATH, {**CHAT, "padding": "x" * 2000})
        assert answer.status == 413
        assert not upstream.requests

    async def test_content_length_alone_refuses_a_long_body(self) -> None:
        async def receive() -> Message:
            raise AssertionError

        async def send(message: Message) -> None:
            sent.append(message)

        sent: list[Message] = []
        app = wrap(thinker(), limits={"body": 1000}, summary={"default": "auto"})
        await app(scope_for(CHAT_PATH, b"x" * 1001), receive, send)
        assert sent[0]["status"] == 413

    async def test_a_long_body_that_passes_is_not_buffered(self) -> None:
        probe, pieces = Probe(), [b"x" * 501, b"x" * 500]

        async def receive() -> Message:
            assert len(probe.received) == 2 - len(pieces)
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

        app = wrap(probe, limits={"body": 1000})
        await app(scope_for(CHAT_PATH, b"x" * 1001), receive, never)
        assert not pieces

    async def test_all_bodies_together_are_bounded(self) -> None:
        upstream = thinker()
        app = wrap(upstream, Scripted(), limits={"body": 1000, "bodies": 1000})
        body = json.dumps({**ASKING, "padding": "x" * 500}).encode()
        slow = Call(app, scope_for(CHAT_PATH, body), body)
        slow.gate.clear()
        slow.start()
        await until(lambda: bool(upstream.requests))
        refused = await call(app, CHAT_PATH, body)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert refused.json["error"]["code"] == "overloaded"
        assert (await call(app, CHAT_PATH, ASKING)).status == 200
        slow.gate.set()
        await slow.finish()
        assert (await call(app, CHAT_PATH, body)).status == 200

    @pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
    async def test_an_encoded_body_is_decoded(self, pack: Any) -> None:
        upstream, scripted = thinker(), Scripted()
        coding = "gzip" if pack is gzip.compress else "deflate"
        body = pack(json.dumps(ASKING).encode())
        await call(wrap(upstream, scripted), CHAT_PATH, body, {"content-encoding": coding})
        assert scripted.requests
        assert upstream.requests[0].header("content-encoding") is None
        assert int(upstream.requests[0].header("content-length") or 0) == len(
            upstream.requests[0].body
        )

    async def test_an_encoded_body_without_a_summary_passes_unchanged(self) -> None:
        upstream = thinker()
        body = gzip.compress(json.dumps(CHAT).encode())
        await call(wrap(upstream), CHAT_PATH, body, {"content-encoding": "gzip"})
        assert upstream.requests[0].body == body
        assert upstream.requests[0].header("content-encoding") == "gzip"

    @pytest.mark.parametrize("body", [b'{"summary": "plain"}', gzip.compress(b"x" * 100_000), b""])
    async def test_a_body_that_cannot_be_decoded_is_left_to_upstream(self, body: bytes) -> None:
        upstream = thinker()
        app, headers = wrap(upstream, limits={"body": 10_000}), {"content-encoding": "gzip"}
        assert (await call(app, CHAT_PATH, body, headers)).status == 200
        assert upstream.requests[0].body == body
        assert upstream.requests[0].header("content-encoding") == "gzip"

    async def test_a_body_that_unpacks_large_is_refused_where_there_is_a_policy(
        self,
    ) -> None:
        upstream = thinker()
        body = gzip.compress(b'{"summary": "' + b"x" * 100_000 + b'"}')
        app = wrap(upstream, limits={"body": 10_000}, summary={"default": "auto"})
        answer = await call(app, CHAT_PATH, body, {"content-encoding": "gzip"})
        assert answer.status == 400
        assert not upstream.requests

    async def test_an_unchanged_body_is_not_reencoded(self) -> None:
        upstream = Upstream(Answer(responses_stream(OUTPUT)))
        spaced = b'{ "model":"m",  "input":"x", "reasoning": {"summary":"auto"}, "n": 1.50 }'
        await call(wrap(upstream, Scripted()), RESPONSES_PATH, spaced)
        assert upstream.requests[0].body == spaced

    async def test_numbers_past_64_bits_survive_a_change(self) -> None:
        upstream = thinker()
        await call(wrap(upstream, Scripted()), CHAT_PATH, {**ASKING, "seed": 2**70})
        assert upstream.requests[0].json["seed"] == 2**70


class TestScope:
    async def test_extensions_that_bypass_the_reader_are_removed(self) -> None:
        probe = Probe()
        removed = ("pathsend", "zerocopysend", "trailers")
        extensions = {"tls": {}, **{f"http.response.{name}": {} for name in removed}}
        request = begin(
            wrap(probe), CHAT_PATH, ASKING, {"accept-encoding": "gzip"}, extensions=extensions
        )
        await request.finish()
        assert probe.scope["extensions"] == {"tls": {}}
        assert b"accept-encoding" not in dict(probe.scope["headers"])
        body = probe.received[0]["body"]
        assert dict(probe.scope["headers"])[b"content-length"] == str(len(body)).encode()

    async def test_only_the_scopes_path_decides_below_its_root(self) -> None:
        scripted = Scripted()
        app = wrap(thinker(), scripted)
        await call(app, f"/llm{CHAT_PATH}", ASKING, {"host": "x/v1/embeddings"}, root_path="/llm")
        assert len(scripted.requests) == 1

    async def test_context_variables_and_exceptions_are_the_applications_own(self) -> None:
        class Odd(Exception):
            pass

        upstream = Upstream(Answer([*chat_stream(THOUGHT, "Hello.")[:-3], Odd("mine")]))
        request = begin(wrap(upstream, Scripted()), CHAT_PATH, ASKING)
        with pytest.raises(Odd, match="mine"):
            await request.finish()
        seen = check_chat(request.data)
        assert request.complete
        assert seen.error is not None
        assert "mine" not in request.data.decode()

    async def test_an_exception_before_the_answer_is_the_servers_to_answer(self) -> None:
        request = begin(
            wrap(Upstream(Answer(before=[ValueError("mine")])), Scripted()), CHAT_PATH, ASKING
        )
        with pytest.raises(ValueError, match="mine"):
            await request.finish()
        assert not request.sent


class TestPolling:
    """An application may poll whether its client has left, and wait for nothing."""

    @pytest.mark.parametrize(
        ("path", "tables", "body"),
        [
            (CHAT_PATH, {}, CHAT),
            (CHAT_PATH, {}, ASKING),
            (CHAT_PATH, {"reasoning": {"expose": "none"}}, CHAT),
            (CHAT_PATH, {"upstreams": [{"api": "auto"}]}, CHAT),
            ("/v1/messages/count_tokens", {}, CHAT),
        ],
        ids=["untouched", "engaged", "hidden", "api found out", "counting"],
    )
    async def test_it_hears_that_its_client_has_left(
        self, path: str, tables: dict[str, Any], body: dict[str, Any]
    ) -> None:
        begun = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            request = Request(scope, receive)
            assert (await request.json())["model"] == "m"
            assert not await request.is_disconnected()
            begun.set()
            while not await request.is_disconnected():  # noqa: ASYNC110 -- what is tested
                await asyncio.sleep(0.001)

        asking = begin(wrap(app, **tables), path, body)
        await begun.wait()
        await asking.leave()


class TestAnswers:
    """Upstream's answers to an engaged request."""

    async def test_json_in_place_of_a_stream_is_rewritten_as_json(self) -> None:
        answer = await call(wrap(Upstream(WHOLE), Scripted()), CHAT_PATH, ASKING)
        assert answer.json["choices"][0]["message"]["reasoning"].startswith("**Adding up**")

    async def test_a_stream_in_place_of_json_is_rewritten_as_a_stream(self) -> None:
        answer = await call(wrap(thinker(), Scripted()), CHAT_PATH, {**ASKING, "stream": False})
        assert check_chat(answer.data).choices[0].text == "Hello."

    @pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
    async def test_errors_keep_status_body_and_headers(self, status: int) -> None:
        error = Answer.json({"error": {"message": "no"}}, status, **{"retry-after": "7"})
        answer = await call(wrap(Upstream(error), Scripted()), CHAT_PATH, ASKING)
        assert (answer.status, answer.json) == (status, {"error": {"message": "no"}})
        assert answer.headers["retry-after"] == "7"

    @pytest.mark.parametrize(
        ("body", "kind"),
        [(b"<html>", "text/html"), (b"", "application/json"), (b"{", "application/json")],
    )
    async def test_an_answer_of_another_kind_passes_unchanged(self, body: bytes, kind: str) -> None:
        upstream = Upstream(Answer([body] if body else [], headers={"content-type": kind}))
        answer = await call(wrap(upstream, Scripted()), CHAT_PATH, ASKING)
        assert (answer.status, answer.data) == (200, body)

    @pytest.mark.parametrize("kind", ["text/plain; charset=utf-8", "text/html", ""])
    @pytest.mark.parametrize("expose", ["auto", "summary"])
    async def test_json_of_another_type_is_rewritten(self, kind: str, expose: str) -> None:
        untyped = Answer(WHOLE.steps, headers={"content-type": kind} if kind else {})
        app = wrap(Upstream(untyped), Scripted(), reasoning={"expose": expose})
        answer = await call(app, CHAT_PATH, ASKING)
        assert answer.json["choices"][0]["message"]["reasoning"].startswith("**Adding up**")
        assert answer.headers["content-type"] == "application/json"

    @pytest.mark.parametrize("body", [b"<html>", b"[]", b"So {}."])
    async def test_what_is_not_json_is_refused_where_reasoning_is_hidden(self, body: bytes) -> None:
        upstream = Upstream(Answer([body], headers={"content-type": "text/plain"}))
        app = wrap(upstream, Scripted(), reasoning={"expose": "summary"})
        answer = await call(app, CHAT_PATH, ASKING)
        assert answer.status == 502
        assert body not in answer.data

    @pytest.mark.parametrize("coding", ["gzip", "deflate"])
    async def test_an_answer_that_comes_encoded_is_decoded(self, coding: str) -> None:
        squeeze = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
        pieces = [
            squeeze.compress(frame) + squeeze.flush(zlib.Z_SYNC_FLUSH)
            for frame in chat_stream(THOUGHT, "Hello.")
        ]
        headers = {"content-type": "text/event-stream", "content-encoding": coding}
        upstream = Upstream(Answer([*pieces, squeeze.flush()], headers=headers))
        answer = await call(wrap(upstream, Scripted()), CHAT_PATH, ASKING)
        assert check_chat(answer.data).choices[0].fields["reasoning_content"]
        assert "content-encoding" not in answer.headers

    async def test_a_whole_answer_that_comes_encoded_is_decoded(self) -> None:
        body = gzip.compress(json.dumps(response(OUTPUT)).encode())
        headers = {"content-type": "application/json", "content-encoding": "gzip", "etag": '"x"'}
        upstream = Upstream(Answer([body], headers=headers))
        answer = await call(
            wrap(upstream, Scripted()),
            RESPONSES_PATH,
            {"model": "m", "input": "x", "reasoning": {"summary": "auto"}},
        )
        assert answer.json["output"][0]["summary"]
        assert "etag" not in answer.headers

    async def test_an_unknown_encoding_passes_unsummarized(self) -> None:
        headers = {"content-type": "text/event-stream", "content-encoding": "br"}
        upstream = Upstream(Answer([b"\x8b\x00"], headers=headers))
        answer = await call(wrap(upstream, Scripted()), CHAT_PATH, ASKING)
        assert answer.data == b"\x8b\x00"
        assert answer.headers["content-encoding"] == "br"

    @pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
    @pytest.mark.parametrize(
        ("status", "tables"),
        [
            (200, {"summary": {"default": "auto"}}),
            (200, {"reasoning": {"expose": "none"}}),
            (200, {"upstreams": [{"rename": {"m": "other"}}]}),
            (404, {"reasoning": {"expose": "none"}}),
            (404, {"upstreams": [{"api": "responses"}]}),
        ],
        ids=["summarized", "hidden", "renamed", "hidden error", "translated error"],
    )
    async def test_headers_that_describe_other_bytes_are_dropped(
        self, status: int, tables: dict[str, Any], *, stream: bool
    ) -> None:
        whole = completion({"content": "Hello.", "reasoning": THOUGHT})
        answer = thinker().answers[0] if stream and status == 200 else Answer.json(whole)
        answer.status = status
        answer.headers |= {**dict.fromkeys(STALE_HEADERS, "1"), "x-request-id": "r1"}
        summarizer = None if "summary" not in tables else Scripted()
        received = await call(wrap(Upstream(answer), summarizer, **tables), CHAT_PATH, CHAT)
        assert (received.status, received.complete) == (status, True)
        names = [name.decode().lower() for name, _ in received.sent[0]["headers"]]
        left = {*names} & {name.lower() for name in STALE_HEADERS}
        assert left <= {"content-length"}
        assert names.count("content-length") == len(left)
        assert received.headers.get("content-length") in (None, str(len(received.data)))
        assert received.headers["x-request-id"] == "r1"

    async def test_a_whole_body_past_the_limit_passes_or_is_refused(self) -> None:
        body = completion({"content": "Hello.", "reasoning": THOUGHT * 10})
        for expose, status in (("auto", 200), ("none", 502)):
            app = wrap(
                Upstream(Answer.json(body)),
                Scripted(),
                limits={"event": 500},
                reasoning={"expose": expose},
            )
            answer = await call(app, CHAT_PATH, ASKING)
            assert answer.status == status
            assert (answer.json == body) == (status == 200)

    async def test_an_event_past_the_limit_ends_the_stream_failed(self) -> None:
        app = wrap(thinker(), Scripted(), limits={"event": 100})
        answer = await call(app, CHAT_PATH, ASKING)
        assert check_chat(answer.data).error is not None
        assert answer.complete

    async def test_comments_pass(self) -> None:
        stream = [b": OPENROUTER PROCESSING\n\n", *chat_stream(THOUGHT, "Hello.")]
        answer = await call(wrap(Upstream(Answer(stream)), Scripted()), CHAT_PATH, ASKING)
        assert answer.data.startswith(stream[0])


class TestSummarizers:
    async def test_the_default_summarizer_is_extractive_and_is_labelled_so(self) -> None:
        answer = await call(wrap(Upstream(WHOLE)), CHAT_PATH, ASKING)
        assert answer.headers["x-abridge-summary"] == "extractive"
        assert answer.json["usage"]["reasoning_summary"]["model"] == "extractive"
        answered = answer.json["choices"][0]["message"]["reasoning"]
        title, _, body = answered.partition("\n\n")
        assert title.startswith("**")
        assert body.split(". ")[0] in THOUGHT

    async def test_the_label_of_another_abridge_behind_it_is_replaced(self) -> None:
        def labelled(answer: Call) -> list[str]:
            start = answer.sent[0]["headers"]
            return [value.decode() for name, value in start if name.startswith(b"x-abridge-")]

        behind = wrap(Upstream(WHOLE), Scripted())
        assert labelled(await call(behind, CHAT_PATH, ASKING)) == ["model", "reasoning"]
        both = await call(wrap(behind), CHAT_PATH, ASKING)
        assert labelled(both) == ["extractive", "reasoning"]

    async def test_the_requests_own_model_is_called_through_the_inner_app(self) -> None:
        upstream = Upstream(
            Answer(chat_stream(THOUGHT, "Hello.")),
            Answer(chat_stream("Hm.", "**Adding up**\n\nI add.", field="reasoning")),
        )
        app = wrap(upstream, summarizer={"kind": "upstream"})
        answer = await call(app, CHAT_PATH, ASKING, {"authorization": "Bearer sk-mine"})
        seen = check_chat(answer.data)
        assert seen.choices[0].fields["reasoning_content"] == "**Adding up**\n\nI add."
        own = upstream.requests[1]
        assert own.path == CHAT_PATH
        assert own.header("authorization") == "Bearer sk-mine"
        assert own.header("x-abridge-call") == "summary"
        assert own.json["model"] == "m"
        assert "Hm." not in answer.data.decode()

    async def test_review_sees_each_part_whole_and_may_change_it(self) -> None:
        seen: list[str] = []

        async def review(text: str) -> str:
            seen.append(text)
            return "Reviewed."

        answer = await call(wrap(thinker(), Scripted(), review), CHAT_PATH, ASKING)
        assert seen == ["**Adding up**\n\nI add the numbers."]
        assert check_chat(answer.data).choices[0].fields["reasoning_content"] == "Reviewed."

    async def test_what_a_review_withholds_is_said(self) -> None:
        async def review(_: str) -> None:
            return None

        answer = await call(wrap(Upstream(WHOLE), Scripted(), review), CHAT_PATH, ASKING)
        message = answer.json["choices"][0]["message"]
        assert message["content"] == "Hello."
        assert message["summary_error"]["code"] == "withheld"
        assert answer.headers["x-abridge-summary"] == "withheld"

    async def test_a_part_that_is_reviewed_may_take_all_the_grace(self) -> None:
        async def review(text: str) -> str:
            return text

        gate = asyncio.Event()
        patient = {"grace": 60, "first_token": 0.01}
        app = wrap(thinker(), Scripted(gate=gate), review, summary=patient)
        asked = begin(app, CHAT_PATH, ASKING)
        await asyncio.sleep(0.1)  # longer than a part without a review may be silent
        gate.set()
        choice = check_chat((await asked.finish()).data).choices[0]
        assert choice.summary_error is None
        assert choice.fields["reasoning_content"] == "**Adding up**\n\nI add the numbers."

    async def test_kind_object_needs_one(self) -> None:
        with pytest.raises(SettingsError, match=r"summarizer\.kind"):
            wrap(thinker(), summarizer={"kind": "object"})

    async def test_settings_are_not_needed(self) -> None:
        app = AbridgeMiddleware(thinker(), registry=CollectorRegistry())
        assert check_chat((await call(app, CHAT_PATH, ASKING)).data).choices[0].text == "Hello."

    async def test_extract_steps_in_for_a_summarizer_that_fails(self) -> None:
        failing = Scripted("", error=ValueError("no"))
        app = wrap(Upstream(WHOLE), failing, summary={"on_failure": "extract"})
        answer = await call(app, CHAT_PATH, ASKING)
        message = answer.json["choices"][0]["message"]
        assert message["reasoning"]
        assert message["summary_error"]["code"] == "upstream_error"
        assert answer.headers["x-abridge-summary"] == "extractive"
        assert answer.json["usage"]["reasoning_summary"]["model"] == "extractive"

    async def test_fail_is_a_502_with_the_whole_object(self) -> None:
        body = {"model": "m", "input": "x", "reasoning": {"summary": "auto"}}
        app = wrap(
            Upstream(Answer.json(response(OUTPUT))),
            Scripted("", error=ValueError("no")),
            summary={"on_failure": "fail"},
        )
        answer = await call(app, RESPONSES_PATH, body)
        assert answer.status == 502
        assert answer.json["error"]["response"]["output"][1] == OUTPUT[1]

    async def test_an_answer_already_streamed_is_not_lost(self) -> None:
        for failure in ("omit", "extract", "fail"):
            app = wrap(
                Upstream(Answer(responses_stream(OUTPUT))),
                Scripted("", error=ValueError("no")),
                summary={"on_failure": failure},
            )
            body = {"model": "m", "input": "x", "reasoning": {"summary": "auto"}, "stream": True}
            seen = check_responses((await call(app, RESPONSES_PATH, body)).data)
            assert seen.text == "Hello."
            expected = "response.failed" if failure == "fail" else "response.completed"
            assert seen.kinds[-1] == expected
            item = seen.response["output"][0]
            assert item["summary_error"]["code"] == "upstream_error"


def test_settings_may_be_made_in_code() -> None:
    assert Settings(summary={"default": "auto"}).summary.default == "auto"  # type: ignore[arg-type]


class TestReadOnly:
    """Answers that are only read, to remember or to attribute."""

    @pytest.mark.parametrize("expose", ["auto", "both", "raw"])
    async def test_reasoning_stays_where_upstream_has_it(self, expose: str) -> None:
        detail = {"type": "reasoning.summary", "summary": "Theirs.", "index": 0}
        answered = {"reasoning": "Theirs.", "reasoning_details": [detail], "content": "Hi"}
        for message in ({"content": "Hi", "reasoning_content": THOUGHT}, answered):
            body = completion(message)
            upstream = Upstream(Answer.json(body))
            app = wrap(upstream, history={"restore": "always"}, reasoning={"expose": expose})
            answer = await call(app, CHAT_PATH, {**CHAT, "stream": False})
            assert answer.headers["x-abridge-summary"] in ("none", "native")
            assert answer.json == body


class TestAttribution:
    ON: ClassVar[dict[str, Any]] = {"attribution": {"enabled": True}}

    async def test_attribution_alone_changes_nothing_else(self) -> None:
        frames = chat_stream(THOUGHT, "Hello.", calls=CALLS, finish="tool_calls")
        for field in ("reasoning_content", "reasoning"):
            sent = [frame.replace(b"reasoning_content", field.encode()) for frame in frames]
            answer = await call(wrap(Upstream(Answer(sent)), **self.ON), CHAT_PATH, CHAT)
            received = split_frames(answer.data)
            (made,) = [place for place, frame in enumerate(received) if frame != sent[place]]
            assert without_attributions(json.loads(received[made][6:])) == json.loads(
                sent[made][6:]
            )
            assert attribution_texts(check_chat(answer.data).choices[0].attributions) == [[THOUGHT]]

    async def test_attribution_alone_changes_nothing_else_of_a_response(self) -> None:
        output = [*OUTPUT, call_item(2, "look", "{}")]
        sent = responses_stream(output)
        body = {"model": "m", "input": "Hi", "stream": True}
        answer = await call(wrap(Upstream(Answer(sent)), **self.ON), RESPONSES_PATH, body)
        received = split_frames(answer.data)
        changed = [place for place, frame in enumerate(received) if frame != sent[place]]
        assert changed == [len(sent) - 2, len(sent) - 1]
        whole = await call(
            wrap(Upstream(Answer.json(response(output))), **self.ON), RESPONSES_PATH, body
        )
        assert without_attributions(whole.json) == response(output)
        assert check_responses(answer.data).response == whole.json

    async def test_a_background_response_is_not_attributed(self) -> None:
        stream = responses_stream([*OUTPUT, call_item(2, "look", "{}")])
        body = {"model": "m", "input": "x", "background": True}
        answer = await call(wrap(Upstream(Answer(stream)), **self.ON), RESPONSES_PATH, body)
        assert answer.data == b"".join(stream)

    @pytest.mark.parametrize("body", [b"not json", b'{"choices": "tool_calls"}', b'["tool_calls"]'])
    async def test_an_unreadable_answer_passes(self, body: bytes) -> None:
        kind = {"content-type": "application/json"}
        upstream = Upstream(Answer([body], headers=kind))
        answer = await call(wrap(upstream, **self.ON), CHAT_PATH, {**CHAT, "stream": False})
        assert answer.data == body

    async def test_reasoning_past_the_limit_is_not_attributed(self) -> None:
        frames = chat_stream(THOUGHT, calls=CALLS, finish="tool_calls")
        limits = {"reasoning": 200}
        app = wrap(Upstream(Answer(frames)), **self.ON, limits=limits)
        answer = await call(app, CHAT_PATH, CHAT)
        assert answer.data == b"".join(frames)


class ReturnsText:
    name = "returns"

    async def summarize(self, _: Passage) -> str:
        return "It returns its text instead of yielding it."


class TestArguments:
    """What cannot work is refused when the app is built, in words."""

    @pytest.mark.parametrize("settings", [{}, {"summary": {"default": "auto"}}])
    def test_settings_that_are_a_dictionary(self, settings: Any) -> None:
        registry = CollectorRegistry()
        with pytest.raises(SettingsError, match="settings: must be a Settings"):
            AbridgeMiddleware(thinker(), settings, registry=registry)
        with pytest.raises(SettingsError, match="settings: must be a Settings"):
            create_app(settings, registry=registry)

    @pytest.mark.parametrize(
        ("upstream", "is_around_proxy", "is_told"),
        [
            ({"base_url": "http://127.0.0.1:8000/v1"}, False, True),
            ({"base_url": "http://127.0.0.1:8000/v1"}, True, False),
            ({"api": "chat"}, False, False),
        ],
    )
    def test_an_address_that_is_not_used(
        self,
        caplog: pytest.LogCaptureFixture,
        upstream: Any,
        *,
        is_around_proxy: bool,
        is_told: bool,
    ) -> None:
        settings, registry = Settings(upstreams=(upstream,)), CollectorRegistry()
        app = Proxy(settings, registry=registry) if is_around_proxy else thinker()
        AbridgeMiddleware(app, settings, registry=registry)
        keys = [message.partition(":")[0] for message in caplog.messages]
        assert keys == ["upstreams[0].base_url"] * is_told

    @pytest.mark.parametrize("review", [str.strip, partial(unquote, errors="strict"), object()])
    def test_a_review_that_is_not_async(self, review: Any) -> None:
        with pytest.raises(SettingsError, match="review: must be an async function"):
            AbridgeMiddleware(thinker(), review=review, registry=CollectorRegistry())

    def test_a_review_that_is(self) -> None:
        async def check(text: str, _: int = 0) -> str:
            return text

        class Check:
            async def __call__(self, text: str) -> str:
                return text

        def later(text: str) -> Awaitable[str]:
            return check(text)

        for review in (check, partial(check, _=1), Check(), Check().__call__, later):
            AbridgeMiddleware(thinker(), review=review, registry=CollectorRegistry())

    @pytest.mark.parametrize("tenant", ["anna", "header:x-user"])
    def test_a_tenant_that_is_no_function(self, tenant: Any) -> None:
        with pytest.raises(SettingsError, match="tenant: must be a function"):
            AbridgeMiddleware(thinker(), tenant=tenant, registry=CollectorRegistry())

    @pytest.mark.parametrize("sinks", [print, [asyncio.sleep]], ids=["no list", "async"])
    def test_sinks_that_cannot_be_called_with_a_record(self, sinks: Any) -> None:
        with pytest.raises(SettingsError, match="sinks: must be a list of functions"):
            AbridgeMiddleware(thinker(), sinks=sinks, registry=CollectorRegistry())

    @pytest.mark.parametrize("summarizer", [object(), Scripted, "extractive", ReturnsText()])
    def test_a_summarizer_that_is_none(self, summarizer: Any) -> None:
        settings = Settings(summarizer={"kind": "object"})
        registry = CollectorRegistry()
        with pytest.raises(SettingsError, match="summarizer: must be an object with a method"):
            AbridgeMiddleware(thinker(), settings, summarizer=summarizer, registry=registry)
