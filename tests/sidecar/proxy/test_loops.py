"""Test what becomes of an upstream that is Abridge itself, and of one that is not where it is
thought to be."""

from __future__ import annotations

import logging

import httpx
import pytest
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.config.settings import Settings
from abridge.sidecar.app import create_app
from tests.sidecar.proxy.upstreams import proxy_for
from tests.support.asgi import call
from tests.support.servers import serve
from tests.support.streams import chat_stream
from tests.support.upstream import Answer, Upstream

QUESTION = {"role": "user", "content": "Why?"}

REQUESTS = {
    "/v1/chat/completions": {"model": "m", "messages": [QUESTION]},
    "/v1/responses": {"model": "m", "input": "Why?"},
    "/v1/messages": {"model": "m", "max_tokens": 9, "messages": [QUESTION]},
}

VIA = "x-abridge-via"

NOT_FOUND = Answer.json({"detail": "Not Found"}, 404)


class Entrance:
    """An address that leads to an app which is made later; it counts requests."""

    app: ASGIApp
    count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.count += 1
        await self.app(scope, receive, send)


def abridge_for(url: str) -> ASGIApp:
    settings = Settings.model_validate({"upstreams": [{"base_url": f"{url}/v1"}]})
    return create_app(settings, registry=CollectorRegistry())


@pytest.mark.parametrize("path", REQUESTS)
async def test_a_request_that_comes_back_gets_a_508(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    entrance = Entrance()
    async with serve(entrance) as url, httpx.AsyncClient() as client:
        entrance.app = abridge_for(url)
        answer = await client.post(f"{url}{path}", json=REQUESTS[path])
        assert entrance.count == 2
        assert answer.status_code == 508
        assert answer.json()["error"]["message"] == "The upstream leads back to Abridge itself."
        assert "upstream default: LoopError: base_url leads back to Abridge itself" in caplog.text
        await entrance.app.aclose()  # type: ignore[attr-defined]


async def test_so_does_one_that_comes_back_by_way_of_another_abridge() -> None:
    first, second = Entrance(), Entrance()
    async with serve(first) as one, serve(second) as two, httpx.AsyncClient() as client:
        first.app, second.app = abridge_for(two), abridge_for(one)
        answer = await client.post(f"{one}/v1/responses", json=REQUESTS["/v1/responses"])
        assert (answer.status_code, first.count, second.count) == (508, 2, 1)
        for app in (first.app, second.app):
            await app.aclose()  # type: ignore[attr-defined]


async def test_a_list_of_models_that_leads_back_ends() -> None:
    entrance = Entrance()
    async with serve(entrance) as url, httpx.AsyncClient() as client:
        names = {"base_url": f"{url}/v1", "credential": "none"}
        upstreams = [{"name": name, "models": [name], **names} for name in "ab"]
        settings = Settings.model_validate({"upstreams": upstreams})
        entrance.app = app = create_app(settings, registry=CollectorRegistry())
        answer = await client.get(f"{url}/v1/models")
        assert (answer.status_code, entrance.count) == (502, 3)
        await app.aclose()


async def test_two_in_a_row_are_no_loop() -> None:
    upstream, second, first = Upstream(Answer(chat_stream("a"))), Entrance(), Entrance()
    async with serve(upstream) as url, serve(second) as two, serve(first) as one:
        second.app, first.app = abridge_for(url), abridge_for(two)
        async with httpx.AsyncClient() as client:
            path = "/v1/chat/completions"
            answer = await client.post(f"{one}{path}", json={**REQUESTS[path], "stream": True})
            assert answer.status_code == 200
            assert answer.content == b"".join(chat_stream("a"))
        ids = (upstream.requests[0].header(VIA) or "").split(", ")
        assert len(set(ids)) == 2
        for app in (first.app, second.app):
            await app.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "status", "kept"),
    [
        ("", 200, 0),
        ("0123456789abcdef", 200, 1),
        (", ".join(["0123456789abcdef"] * 7), 200, 7),
        (", ".join(["0123456789abcdef"] * 8), 508, 0),
        (", ".join(["0123456789abcdef"] * 4000), 508, 0),
        ("anything else, 0123456789abcdef0, " + "x" * 4000, 200, 0),
    ],
)
async def test_only_so_many_ids_are_passed_on_and_nothing_else(
    given: str, status: int, kept: int
) -> None:
    proxy, upstream = proxy_for()
    answer = await call(proxy, "/v1/responses", b"{}", headers={VIA: given})
    assert answer.status == status
    if status == 200:
        ids = upstream.request.headers[VIA].split(", ")
        assert len(ids) == kept + 1
        assert all(len(each) == 16 for each in ids)


@pytest.mark.parametrize(
    ("base_url", "advice"),
    [
        ("", "set base_url to {}/v1 if its API is there"),
        ("/v1", "check base_url, the models' names"),
    ],
)
async def test_an_upstream_that_answers_404_to_everything_is_logged_once(
    base_url: str, advice: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(Upstream(NOT_FOUND)) as url, httpx.AsyncClient() as client:
        settings = Settings.model_validate({"upstreams": [{"base_url": url + base_url}]})
        app = create_app(settings, registry=CollectorRegistry())
        async with serve(app) as abridge:
            for _ in range(7):
                body = REQUESTS["/v1/responses"]
                answer = await client.post(f"{abridge}/v1/responses", json=body)
                assert answer.status_code == 404
        await app.aclose()
    (line,) = [line for line in caplog.messages if "answered 404" in line]
    assert line.startswith(
        "upstream default: answered 404 to each of its first 3 requests, at "
        f"{url}{base_url}: {advice.format(url)}"
    )


@pytest.mark.parametrize(
    ("answers", "method"),
    [
        ([NOT_FOUND, Answer.json({}), NOT_FOUND], "POST"),
        ([Answer.json({}), NOT_FOUND], "POST"),
        ([NOT_FOUND], "GET"),
    ],
)
async def test_an_upstream_that_answers_something_else_is_not(
    answers: list[Answer], method: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(Upstream(*answers)) as url, httpx.AsyncClient() as client:
        app = abridge_for(url)
        async with serve(app) as abridge:
            for _ in range(7):
                await client.request(method, f"{abridge}/v1/files", content=b"{}")
        await app.aclose()  # type: ignore[attr-defined]
    assert "404" not in "".join(
        record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING
    )
