"""Which of several upstreams gets a request, and whose credential with it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from abridge.config.settings import Settings
from abridge.sidecar.app import create_app
from tests.support.asgi import Call, call

UPSTREAMS = (
    {"name": "one", "models": ["gpt-*"], "credential": "client"},
    {"name": "two", "models": ["qwen/*", "a b"], "credential": "none"},
)
ANY = {"name": "any", "models": ["*"]}
KEY = {"authorization": "Bearer client"}
CHAT = "/v1/chat/completions"


async def sent(
    path: str, body: Any = b"", *more: dict[str, Any], **options: Any
) -> tuple[Call, list[tuple[str, str | None]]]:
    """Send a request; return the answer, and the upstreams it reached with what credential."""
    reached: list[tuple[str, str | None]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        name = request.url.host.removesuffix(".test")
        reached.append((name, request.headers.get("authorization")))
        return httpx.Response(200, json={"data": [{"id": name}]})

    entries = [{"base_url": f"http://{e['name']}.test/v1", **e} for e in (*UPSTREAMS, *more)]
    app = create_app(
        Settings.model_validate({"upstreams": entries}),
        transport=httpx.MockTransport(answer),
        registry=CollectorRegistry(),
    )
    return await call(app, path, body, KEY, **options), reached


@pytest.mark.parametrize(
    ("path", "raw", "reached"),
    [
        ("/v1/models/gpt-5", None, ("one", "Bearer client")),
        ("/v1/models/qwen/qwen3-32b", None, ("two", None)),
        ("/v1/models/qwen/qwen3-32b", b"/v1/models/qwen%2Fqwen3-32b", ("two", None)),
        ("/v1/models/a b", b"/v1/models/a%20b", ("two", None)),
        ("/models/gpt-5/", None, ("one", "Bearer client")),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
async def test_a_model_in_the_path_says_which(
    path: str, raw: bytes | None, reached: tuple[str, str | None], method: str
) -> None:
    """Some clients send a content type with it, though there is no body."""
    answer, seen = await sent(path, method=method, raw_path=raw or path.encode())
    assert (answer.status, seen) == (200, [reached])


@pytest.mark.parametrize(
    ("path", "body", "method"),
    [
        (CHAT, {"model": "other", "messages": []}, "POST"),
        ("/v1/responses", {"model": "GPT-5", "input": "Hi"}, "POST"),
        ("/v1/embeddings", {"model": "other"}, "POST"),
        ("/v1/models/other", b"", "GET"),
    ],
)
async def test_a_model_that_none_has_reaches_none(path: str, body: Any, method: str) -> None:
    answer, seen = await sent(path, body, method=method)
    assert (answer.status, seen) == (404, [])
    error = answer.json["error"]
    assert (error["param"], error["code"]) == ("model", "model_not_found")
    assert error["type"] == "invalid_request_error"
    answer, seen = await sent(path, body, ANY, method=method)
    assert (answer.status, seen) == (200, [("any", None)])


async def test_all_lists_are_joined_each_with_the_credential_it_is_due() -> None:
    answer, seen = await sent("/v1/models", b"", ANY, method="GET")
    assert [model["id"] for model in answer.json["data"]] == ["one", "two", "any"]
    assert sorted(seen) == [("any", None), ("one", "Bearer client"), ("two", None)]


async def test_hundreds_of_thousands_of_tokens_are_routed_by_their_model() -> None:
    body = {"input": [list(range(300))] * 1000, "model": "gpt-4"}
    assert (await sent("/v1/embeddings", body))[1] == [("one", "Bearer client")]


async def test_without_a_model_it_is_the_first() -> None:
    for path, body in ((CHAT, {"messages": []}), ("/v1/files", {})):
        assert (await sent(path, body))[1] == [("one", "Bearer client")]
