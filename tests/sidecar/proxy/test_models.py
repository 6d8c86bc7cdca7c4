"""Test `GET /models` with several upstreams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from abridge.sidecar.proxy.proxy import Proxy
from tests.sidecar.proxy.upstreams import settings
from tests.support.asgi import begin, call
from tests.support.nesting import nested_json
from tests.support.servers import soon

THREE = [
    {"name": name, "base_url": f"http://{name}.test/{name}/v1"} for name in ("one", "two", "three")
]


def models(*ids: str) -> httpx.Response:
    return httpx.Response(200, json={"object": "list", "data": [{"id": id_} for id_ in ids]})


def proxy(
    answers: dict[str, httpx.Response | Exception], upstreams: list[dict[str, Any]] = THREE
) -> tuple[Proxy, list[httpx.Request]]:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        outcome = answers[request.url.host.removesuffix(".test")]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return Proxy(settings(*upstreams), httpx.MockTransport(answer)), requests


async def ids(app: Proxy, path: str = "/v1/models") -> list[str]:
    answer = await call(app, path, b"", method="GET")
    assert (answer.status, answer.json["object"]) == (200, "list")
    assert answer.headers["content-type"] == "application/json"
    return [model["id"] for model in answer.json["data"]]


async def test_the_lists_are_joined_in_the_order_of_the_settings() -> None:
    app, requests = proxy({"one": models("a", "b"), "two": models(), "three": models("c")})
    assert await ids(app) == ["a", "b", "c"]
    assert [str(request.url) for request in requests] == [
        f"http://{name}.test/{name}/v1/models" for name in ("one", "two", "three")
    ]


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("no"),
        httpx.ReadTimeout("slow"),
        httpx.Response(401, json={"data": [{"id": "x"}]}),
        httpx.Response(200, text="no JSON"),
        httpx.Response(200, json=["no object"]),
        httpx.Response(200, json={"data": "no list"}),
        httpx.Response(200, content=nested_json({"data": ["nested here"]}, 600)),
    ],
)
async def test_an_upstream_that_fails_is_left_out(failure: httpx.Response | Exception) -> None:
    app, _ = proxy({"one": models("a"), "two": failure, "three": models("c")})
    assert await ids(app) == ["a", "c"]


async def test_a_model_for_which_requests_go_nowhere_is_left_out() -> None:
    upstreams: list[dict[str, Any]] = [
        {"name": "one", "base_url": "http://one.test/v1", "models": ["gpt-*", "qwen/*"]},
        {
            "name": "two",
            "base_url": "http://two.test/v1",
            "models": ["mine"],
            "rename": {"mine": "m"},
        },
    ]
    app, _ = proxy({"one": models("gpt-5", "dall-e"), "two": models("m", "n", "qwen/3")}, upstreams)
    assert await ids(app) == ["gpt-5", "mine", "qwen/3"]


async def test_an_oversized_list_is_left_out_and_not_read_further() -> None:
    closed = asyncio.Event()

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while not closed.is_set():
                yield b"x" * 40

        async def aclose(self) -> None:
            closed.set()

    answers = {"one": models("a"), "two": httpx.Response(200, stream=Endless())}
    transport = httpx.MockTransport(lambda request: answers[request.url.host[:3]])
    app = Proxy(settings(*THREE[:2], limits={"body": 100}), transport)
    assert await ids(app) == ["a"]
    assert closed.is_set()


async def test_if_all_upstreams_fail_the_response_is_an_error() -> None:
    app, _ = proxy(dict.fromkeys(("one", "two", "three"), httpx.ConnectError("no")))
    answer = await call(app, "/v1/models", b"", method="GET")
    assert (answer.status, answer.json["error"]["code"]) == (502, "upstream_unreachable")


async def test_each_upstream_is_asked_as_its_settings_say_so_that_the_lists_can_be_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEY", "sk-two")
    upstreams = [
        {**THREE[0], "credential": "client"},
        {**THREE[1], "api_key_env": "KEY"},
        {**THREE[2], "credential": "none"},
    ]
    answers = {"one": models("a"), "two": models("b"), "three": models("c")}
    app, requests = proxy(answers, upstreams)
    headers = {
        "authorization": "Bearer client",
        "accept-encoding": "gzip",
        "if-none-match": "x",
        "accept": "application/json",
    }
    await call(app, "/v1/models", b"", method="GET", headers=headers, query_string=b"limit=2")
    sent = [dict(request.headers) for request in requests]
    credentials = [head.get("authorization") for head in sent]
    assert credentials == ["Bearer client", "Bearer sk-two", None]
    for request in requests:
        assert not {"accept-encoding", "if-none-match"} & request.headers.keys()
        assert request.headers["accept"] == "application/json"
        assert request.url.query == b"limit=2"


async def test_upstreams_are_asked_concurrently() -> None:
    all_asked = asyncio.Barrier(3)

    async def answer(request: httpx.Request) -> httpx.Response:
        await all_asked.wait()
        return models(request.url.host)

    app = Proxy(settings(*THREE), httpx.MockTransport(answer))
    assert len(await soon(ids(app))) == 3


async def test_all_calls_end_when_the_client_leaves() -> None:
    arrived, cancelled = asyncio.Barrier(4), 0

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal cancelled
        await arrived.wait()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled += 1
        return models()

    running = begin(
        Proxy(settings(*THREE), httpx.MockTransport(answer)), "/v1/models", b"", method="GET"
    )
    await soon(arrived.wait())
    running.left.set()
    await running.finish()
    assert (cancelled, running.sent) == (3, [])


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/models"), ("GET", "/v1/models/a"), ("HEAD", "/v1/models")]
)
async def test_other_requests_go_to_one_upstream(method: str, path: str) -> None:
    app, requests = proxy({"one": httpx.Response(200, text="as it is")})
    assert (await call(app, path, b"", method=method)).data == b"as it is"
    assert len(requests) == 1


async def test_a_single_upstreams_list_passes_unchanged() -> None:
    whole = httpx.Response(200, text='{"data" : [], "first_id": null}', headers={"etag": "x"})
    app, _ = proxy({"one": whole}, THREE[:1])
    answer = await call(app, "/v1/models", b"", method="GET")
    assert (answer.data, answer.headers["etag"]) == (whole.content, "x")
