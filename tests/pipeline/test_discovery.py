"""The trial of an API that upstream may not have."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Scope, Send

from abridge.apis import registry as apis
from abridge.pipeline.discovery import FOUND_TTL, ApiDiscovery
from tests.support.asgi import begin, call, say, start
from tests.support.checker import check_responses
from tests.support.counters import total
from tests.support.deployments import FORMS, PREFIX, Form, build_app, settings_for
from tests.support.streams import THOUGHT, chat_stream, completion
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, ReceivedRequest, Upstream

JSON = "application/json"
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"

NOT_FOUND = Answer([b"Not Found"], 404, {"content-type": "text/plain"})

REQUEST: dict[str, Any] = {"model": "m", "input": "Hi", "stream": True}


@pytest.mark.parametrize(
    "asked", [{"reasoning": {"summary": "auto"}}, {}], ids=["engaged", "not engaged"]
)
async def test_an_app_that_waits_after_its_404_is_told_of_the_end(asked: dict[str, Any]) -> None:
    paths = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        paths.append(scope["path"])
        await receive()
        missing = scope["path"].endswith("/responses")
        body = b'{"detail": "Not Found"}' if missing else b"".join(chat_stream(THOUGHT, "Hello."))
        await (start(send, JSON, 404) if missing else start(send))
        await say(send, body)
        assert (await receive())["type"] == "http.disconnect"

    auto = build_app("mounted", app, writer=Scripted(), upstreams=[{"api": "auto"}])  # type: ignore[arg-type]
    request = await begin(auto, "/v1/responses", {**REQUEST, **asked}).finish()
    assert paths == ["/v1/responses", "/v1/chat/completions"]
    assert check_responses(request.data).text == "Hello."


async def test_a_client_that_leaves_before_the_404_has_left() -> None:
    paths = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        paths.append(scope["path"])
        await receive()
        request.left.set()
        await receive()
        await start(send, JSON, 404)
        await say(send, b"{}")

    tables: dict[str, Any] = {"upstreams": [{"api": "auto"}], "registry": CollectorRegistry()}
    auto = build_app("mounted", app, writer=Scripted(), **tables)  # type: ignore[arg-type]
    request = begin(auto, "/v1/responses", {**REQUEST, "reasoning": {"summary": "auto"}})
    await request.finish()
    assert paths == ["/v1/responses"]
    assert total(tables["registry"], "requests_total", outcome="left") == 1
    assert total(tables["registry"], "streams_open") == 0


@pytest.mark.parametrize("form", FORMS)
async def test_a_client_that_leaves_during_the_trial_is_not_asked_for_again(form: Form) -> None:
    begun = asyncio.Event()
    upstream = Upstream(Answer(before=[begun.set, asyncio.Event()]), HELLO)
    auto = build_app(form, upstream, writer=Scripted())
    request = begin(auto, PREFIX[form] + RESPONSES, REQUEST)
    await begun.wait()
    await request.leave()
    assert len(upstream.requests) == 1
    assert not request.sent


async def test_a_404_about_the_model_reaches_the_client_whole() -> None:
    error = {"error": {"message": "no such model", "code": "model_not_found"}}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await start(send, JSON, 404)
        await say(send, json.dumps(error).encode())
        async with asyncio.timeout(20):
            await receive()

    auto = build_app("mounted", app, writer=Scripted(), upstreams=[{"api": "auto"}])  # type: ignore[arg-type]
    request = await begin(auto, "/v1/responses", REQUEST).finish()
    assert (request.status, request.json) == (404, error)


async def test_a_404_with_a_page_of_any_size_is_that_of_a_missing_api() -> None:
    page = Answer([b"<p>Not found.</p>" * 1000] * 8, 404, {"content-type": "text/html"})
    upstream = Upstream(page, Answer.json(completion({"content": "Hello."})))
    auto = build_app("mounted", upstream, writer=Scripted(), upstreams=[{"api": "auto"}])
    answer = await call(auto, "/v1/responses", {**REQUEST, "stream": False})
    assert answer.json["output"][-1]["content"][0]["text"] == "Hello."


@pytest.mark.parametrize("name", ["m", "m" * 256])
async def test_what_is_found_is_kept_for_a_model(name: str) -> None:
    paths = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        paths.append(scope["path"].rpartition("/")[2])
        await receive()
        missing = scope["path"].endswith("/responses")
        body = b"{}" if missing else json.dumps(completion({"content": "Hello."})).encode()
        await start(send, JSON, 404 if missing else 200)
        await say(send, body)

    auto = build_app("mounted", app, upstreams=[{"api": "auto"}])  # type: ignore[arg-type]
    for _ in range(2):
        answer = await begin(auto, "/v1/responses", {"model": name, "input": "Hi"}).finish()
        assert answer.status == 200
    assert paths == ["responses", "completions", "completions"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{"])
async def test_a_body_that_cannot_be_translated_is_refused(body: bytes) -> None:
    """Upstream would say only that it does not have the client's API."""
    found = Answer.json(completion({"content": "Hello."}))
    upstream = Upstream(NOT_FOUND, found, NOT_FOUND)
    auto = build_app("mounted", upstream, upstreams=[{"api": "auto"}])
    await call(auto, "/v1/responses", {**REQUEST, "stream": False})
    refused = await begin(auto, "/v1/responses", body).finish()
    assert (refused.status, refused.json["error"]["code"]) == (400, "invalid_json")
    assert len(upstream.requests) == 2


class Server(Upstream):
    """A model server that has a few paths; it answers every other one with 404."""

    def __init__(self, *, missing: Answer = NOT_FOUND, **answers: Answer) -> None:
        super().__init__(missing)
        self.by_path = {
            {"chat": CHAT, "responses": RESPONSES}[api]: answers[api] for api in answers
        }

    def answer(self, request: ReceivedRequest) -> Answer:
        return self.by_path.get(request.path, self.answers[0])

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]


HELLO = Answer.json(completion({"content": "Hello."}))


def said_of_apis(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if line.startswith("upstream default: has no")]


class TestByDefault:
    """A sidecar, and a proxy that is embedded, find upstream's API out."""

    @pytest.mark.parametrize("form", ["sidecar", "embedded"])
    @pytest.mark.parametrize("path", [RESPONSES, MESSAGES])
    @pytest.mark.parametrize("headers", [{}, {"x-abridge-summary": "auto"}])
    async def test_every_client_of_a_chat_server_is_answered(
        self,
        form: Any,
        path: str,
        headers: dict[str, str],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        server = Server(chat=HELLO)
        app = build_app(form, server, writer=Scripted())
        caplog.set_level("INFO", "abridge")
        for _ in range(2):
            body = {"model": "m", "input": "Hi", "messages": [{"role": "user", "content": "Hi"}]}
            answer = await call(app, PREFIX[form] + path, {**body, "max_tokens": 9}, headers)
            assert answer.status == 200
            assert b"Hello." in answer.data
        assert server.paths == [path, CHAT, CHAT]
        found = f"has no {path[3:]}; clients are served through /chat/completions"
        assert said_of_apis(caplog) == [f"upstream default: {found}"]

    @pytest.mark.parametrize("body", [b'{"model" : "m", "input": "Hi"}', b"", b"[1]", b'{"a": '])
    async def test_what_needs_no_rewriting_passes_unread(self, body: bytes) -> None:
        frames = [b": odd\n\n", b"data: {\xff}\r\n\r", b"\n", b"data: x"]
        server = Server(responses=Answer(frames, headers={"x-odd": "1"}))
        answer = await call(build_app("sidecar", server), RESPONSES, body)
        assert (answer.status, answer.data) == (200, b"".join(frames))
        assert answer.headers["x-odd"] == "1"
        assert [request.body for request in server.requests] == [body]

    @pytest.mark.parametrize(
        "error",
        [
            {"error": {"message": "The model does not exist.", "code": "model_not_found"}},
            {"error": {"message": "no such model", "code": None}},
            {"error": {"message": "m not found, try pulling it first"}},
            {"error": {"message": "The model does not exist.", "param": "model", "code": 404}},
            {"error": {"message": "No such response.", "code": "previous_response_not_found"}},
            {"type": "error", "error": {"type": "not_found_error", "message": "model: x"}},
            {"object": "error", "message": "The model `x` does not exist.", "code": 404},
        ],
    )
    @pytest.mark.parametrize("status", [404, 405])
    async def test_an_error_about_something_else_starts_no_search(
        self, error: dict[str, Any], status: int
    ) -> None:
        missing = Answer.json(error, status, **{"x-odd": "1"})
        server = Server(missing=missing, chat=HELLO)
        answer = await call(build_app("sidecar", server), RESPONSES, REQUEST)
        assert (answer.status, answer.json) == (status, error)
        assert answer.headers["x-odd"] == "1"
        assert server.paths == [RESPONSES]

    @pytest.mark.parametrize(
        "error",
        [
            {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}},
            {"error": {"message": "Invalid URL (POST /v1/responses)", "code": None}},
            {"error": {"code": "404", "message": "Resource not found"}},
            {"error": "not found"},
        ],
    )
    async def test_every_form_of_a_missing_api_is_recognized(self, error: Any) -> None:
        server = Server(missing=Answer.json(error, 404), chat=HELLO)
        answer = await call(build_app("sidecar", server), RESPONSES, {**REQUEST, "stream": False})
        assert (answer.status, server.paths) == (200, [RESPONSES, CHAT])

    @pytest.mark.parametrize("headers", [{}, {"x-abridge-summary": "auto"}])
    async def test_where_nothing_is_found_the_first_answer_passes(
        self, headers: dict[str, str]
    ) -> None:
        missing = Answer([b"no", b"thing here"], 404, {"content-type": "text/plain", "x-odd": "1"})
        server = Server(missing=missing)
        body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        answer = await call(build_app("sidecar", server), MESSAGES, body, headers)
        assert (answer.status, answer.data, answer.headers["x-odd"]) == (404, b"nothing here", "1")
        assert server.paths == [MESSAGES, CHAT, RESPONSES]

    async def test_what_cannot_be_translated_gets_its_answer(self) -> None:
        server = Server(chat=HELLO)
        answer = await call(build_app("sidecar", server), RESPONSES, b"no json")
        assert (answer.status, answer.data) == (404, b"Not Found")
        assert server.paths == [RESPONSES]

    async def test_an_api_that_turns_out_missing_is_found_anew(self) -> None:
        server = Server(chat=HELLO)
        app = build_app("sidecar", server)
        body = {**REQUEST, "stream": False}
        assert (await call(app, RESPONSES, body)).status == 200
        server.by_path = {RESPONSES: Answer.json({"id": "resp_1"})}
        assert (await call(app, RESPONSES, body)).json == {"id": "resp_1"}
        assert (await call(app, RESPONSES, body)).json == {"id": "resp_1"}
        assert server.paths == [RESPONSES, CHAT, CHAT, RESPONSES, RESPONSES]

    async def test_what_is_found_is_looked_for_again_after_a_while(self) -> None:
        now = 0.0
        found = ApiDiscovery(lambda: now)
        route = settings_for(upstreams=[{"api": "auto"}]).routes[0]
        found.note_found(route, apis.RESPONSES, "m", apis.CHAT.upstream)
        both = apis.CHAT.upstream, apis.RESPONSES.upstream
        assert found.candidates(route, apis.RESPONSES, "m") == both
        assert found.candidates(route, apis.RESPONSES, "new") == both[::-1]
        now = FOUND_TTL
        assert found.candidates(route, apis.RESPONSES, "m") == both[::-1]

    async def test_what_every_answer_shows_again_is_told_once_in_a_while(self) -> None:
        now, told = 0.0, list[float]()
        found = ApiDiscovery(lambda: now)
        found.listener = lambda _: told.append(now)
        route = settings_for(upstreams=[{"api": "auto"}]).routes[0]
        for tenth in range(31):
            now = tenth * FOUND_TTL / 10
            found.note_found(route, apis.RESPONSES, "m", apis.CHAT.upstream)
        assert told == [half * FOUND_TTL / 2 for half in range(7)]

    async def test_a_failure_is_no_finding(self) -> None:
        server = Server(chat=Answer.json({"error": {"message": "no"}}, 500))
        app = build_app("sidecar", server)
        for _ in range(2):
            assert (await call(app, RESPONSES, REQUEST)).status == 500
        assert server.paths == [RESPONSES, CHAT] * 2

    async def test_a_body_that_must_be_translated_is_not_too_large_in_silence(self) -> None:
        server = Server(chat=HELLO)
        app = build_app("sidecar", server, limits={"body": 1000})
        assert (await call(app, RESPONSES, {**REQUEST, "stream": False})).status == 200
        answer = await call(app, RESPONSES, {**REQUEST, "input": "x" * 1000})
        assert answer.status == 413

    async def test_the_clients_own_api_can_be_pinned(self) -> None:
        server = Server(chat=HELLO)
        upstreams = [{"base_url": "http://upstream.test/v1", "api": "same"}]
        answer = await call(build_app("sidecar", server, upstreams=upstreams), RESPONSES, REQUEST)
        assert (answer.status, answer.data) == (404, b"Not Found")
        assert server.paths == [RESPONSES]


class TestMounted:
    """An application is asked for what its clients ask for, and for nothing else."""

    @pytest.mark.parametrize("headers", [{}, {"x-abridge-summary": "auto"}])
    async def test_an_api_that_a_bridge_would_serve_is_named_once(
        self, headers: dict[str, str], caplog: pytest.LogCaptureFixture
    ) -> None:
        server = Server(chat=HELLO)
        app = build_app("mounted", server, writer=Scripted())
        for _ in range(2):
            answer = await call(app, RESPONSES, REQUEST, headers)
            assert (answer.status, answer.data) == (404, b"Not Found")
        advice = (
            'if it has /chat/completions, set upstreams[].api = "chat" to serve clients through '
            "that"
        )
        assert said_of_apis(caplog) == [f"upstream default: has no /responses; {advice}"]
        assert server.paths == [RESPONSES] * 2

    @pytest.mark.parametrize(
        ("path", "missing"),
        [
            (RESPONSES, Answer.json({"error": {"code": "model_not_found"}}, 404)),
            (RESPONSES, Answer.json({"error": {"message": "no"}}, 500)),
            (CHAT, NOT_FOUND),
        ],
    )
    async def test_another_error_is_none(
        self, path: str, missing: Answer, caplog: pytest.LogCaptureFixture
    ) -> None:
        answer = await call(build_app("mounted", Server(missing=missing)), path, REQUEST)
        assert answer.status == missing.status
        assert said_of_apis(caplog) == []

    async def test_once_it_has_answered_it_gets_the_clients_own_send(self) -> None:
        sends = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            sends.append(send)
            await HELLO_SERVER(scope, receive, send)

        mounted = build_app("mounted", app)  # type: ignore[arg-type]
        for _ in range(2):
            request = begin(mounted, RESPONSES, REQUEST)
            await request.finish()
        assert sends[1] == request.send


HELLO_SERVER = Upstream(HELLO)
