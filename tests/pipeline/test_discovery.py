"""The trial of an API that upstream may not have."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Scope, Send

from tests.support.asgi import begin, call
from tests.support.checker import check_responses
from tests.support.counters import total
from tests.support.deployments import build_app
from tests.support.streams import THOUGHT, chat_stream, completion
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

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
        content_type = b"application/json" if missing else b"text/event-stream"
        body = b'{"detail": "Not Found"}' if missing else b"".join(chat_stream(THOUGHT, "Hello."))
        await send(
            {
                "type": "http.response.start",
                "status": 404 if missing else 200,
                "headers": [(b"content-type", content_type)],
            }
        )
        await send({"type": "http.response.body", "body": body})
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
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    tables: dict[str, Any] = {"upstreams": [{"api": "auto"}], "registry": CollectorRegistry()}
    auto = build_app("mounted", app, writer=Scripted(), **tables)  # type: ignore[arg-type]
    request = begin(auto, "/v1/responses", {**REQUEST, "reasoning": {"summary": "auto"}})
    await request.finish()
    assert paths == ["/v1/responses"]
    assert total(tables["registry"], "requests_total", outcome="left") == 1
    assert total(tables["registry"], "streams_open") == 0


async def test_a_404_about_the_model_reaches_the_client_whole() -> None:
    error = {"error": {"message": "no such model", "code": "model_not_found"}}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 404, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(error).encode()})
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


@pytest.mark.parametrize(("name", "is_kept"), [("m", True), ("m" * 1000, False)])
async def test_what_is_found_is_kept_for_models_with_a_name_of_usual_length(
    name: str, *, is_kept: bool
) -> None:
    paths = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        paths.append(scope["path"].rpartition("/")[2])
        await receive()
        missing = scope["path"].endswith("/responses")
        body = b"{}" if missing else json.dumps(completion({"content": "Hello."})).encode()
        headers = [(b"content-type", b"application/json")]
        status = 404 if missing else 200
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    auto = build_app("mounted", app, upstreams=[{"api": "auto"}])  # type: ignore[arg-type]
    for _ in range(2):
        answer = await begin(auto, "/v1/responses", {"model": name, "input": "Hi"}).finish()
        assert answer.status == 200
    once = ["responses", "completions"]
    assert paths == [*once, *(["completions"] if is_kept else once)]
