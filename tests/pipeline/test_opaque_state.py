"""Test what upstream hears of opaque reasoning state that it did not make."""

from __future__ import annotations

import gzip
import json
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from abridge.config.settings import Settings
from abridge.pipeline.trial import MAX_ERROR_BYTES
from abridge.sidecar.app import create_app
from tests.pipeline.test_renaming import PATHS, answer_of
from tests.support.asgi import call
from tests.support.deployments import build_app
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

USER = {"role": "user", "content": "Hi"}
REFUSALS = {
    "responses": {"error": {"code": "invalid_encrypted_content", "message": "Not verified."}},
    "messages": {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "messages.1.content.0: Invalid `signature` in `thinking` block",
        },
    },
}
PROFILES = {"responses": "openai", "messages": "anthropic", "chat": "openrouter"}
BODIES: dict[str, dict[str, Any]] = {
    "responses": {
        "model": "m",
        "input": [
            USER,
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
            },
            USER,
        ],
    },
    "messages": {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            USER,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "Eu8B"},
                    {"type": "text", "text": "Hello."},
                ],
            },
            USER,
        ],
    },
}
STATES = (b"gAAAA", b"Eu8B")

PARSED: dict[str, Any] = {"upstreams": [{"rename": {"other": "another"}}]}
"""Settings with which a request is parsed, and nothing is due to it."""

EACH_API = pytest.mark.parametrize("api", list(BODIES))


def has_state(body: bytes) -> bool:
    return any(state in body for state in STATES)


@EACH_API
@pytest.mark.parametrize("summary", ["off", "auto"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_request_is_sent_again_without_the_state_that_upstream_refuses(
    api: str, summary: str, *, stream: bool
) -> None:
    registry = CollectorRegistry()
    upstream = Upstream(Answer.json(REFUSALS[api], 400), answer_of(api, stream=stream))
    app = build_app("mounted", upstream, writer=Scripted(), registry=registry, **PARSED)
    body = {**BODIES[api], "stream": stream}
    answer = await call(app, PATHS[api], body, {"x-abridge-summary": summary})
    assert answer.status == 200
    first, second = upstream.requests
    assert (has_state(first.body), has_state(second.body)) == (True, False)
    assert b"Hello." in second.body
    assert registry.get_sample_value("abridge_state_refused_total", {"upstream": "default"}) == 1


@EACH_API
async def test_a_second_refusal_is_the_clients(api: str) -> None:
    upstream = Upstream(Answer.json(REFUSALS[api], 400))
    app = build_app("mounted", upstream, **PARSED)
    answer = await call(app, PATHS[api], BODIES[api])
    assert (answer.status, answer.json) == (400, REFUSALS[api])
    assert len(upstream.requests) == 2


@EACH_API
async def test_any_other_refusal_passes_as_it_came(api: str) -> None:
    error = {"error": {"message": "No.", "code": "invalid_value"}}
    upstream = Upstream(Answer.json(error, 400))
    app = build_app("mounted", upstream, **PARSED)
    answer = await call(app, PATHS[api], BODIES[api])
    assert (answer.status, answer.json, len(upstream.requests)) == (400, error, 1)


@EACH_API
@pytest.mark.parametrize("size", [MAX_ERROR_BYTES // 2, 3 * MAX_ERROR_BYTES])
@pytest.mark.parametrize("pieces", [1, 8])
async def test_a_refusal_of_any_size_passes_whole(api: str, size: int, pieces: int) -> None:
    error = json.dumps({"error": {"message": "x" * size}}).encode()
    step = -(-len(error) // pieces)
    steps = [error[at : at + step] for at in range(0, len(error), step)]
    headers = {"content-type": "application/json", "content-length": str(len(error))}
    upstream = Upstream(Answer(steps, 400, headers))
    answer = await call(build_app("mounted", upstream, **PARSED), PATHS[api], BODIES[api])
    assert (answer.data, answer.complete, len(upstream.requests)) == (error, True, 1)


async def test_a_refusal_that_is_compressed_is_understood() -> None:
    packed = gzip.compress(json.dumps(REFUSALS["responses"]).encode())
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    refusal = Answer([packed], 400, headers)
    upstream = Upstream(refusal, answer_of("responses", stream=False))
    app = build_app("mounted", upstream, **PARSED)
    assert (await call(app, PATHS["responses"], BODIES["responses"])).status == 200


async def failed_over(
    api: str, body: dict[str, Any], *, second: dict[str, Any]
) -> tuple[int, list[httpx.Request]]:
    """Have the first of two upstreams be busy; return the status, and what each received."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        whole = answer_of(second.get("api", api), stream=False)
        content = b"".join(step for step in whole.steps if isinstance(step, bytes))
        headers = {"content-type": "application/json"}
        return (
            httpx.Response(503)
            if request.url.host == "first.test"
            else httpx.Response(200, content=content, headers=headers)
        )

    first = {"profile": PROFILES[api]}
    upstreams = [
        {"name": "first", "base_url": "http://first.test/v1", "fallback": "second", **first},
        {"name": "second", "base_url": "http://second.test/v1", **first, **second},
    ]
    app = create_app(
        Settings.model_validate({"upstreams": upstreams}),
        transport=httpx.MockTransport(answer),
        registry=CollectorRegistry(),
    )
    return (await call(app, PATHS[api], body)).status, requests


@EACH_API
@pytest.mark.parametrize(
    ("second", "keeps"),
    [
        ({}, True),
        ({"profile": "openrouter"}, False),
        ({"profile": "vllm", "api": "chat"}, False),
    ],
)
async def test_a_fallback_of_another_provider_does_not_get_state(
    api: str, second: dict[str, Any], *, keeps: bool
) -> None:
    status, requests = await failed_over(api, BODIES[api], second=second)
    assert status == 200
    assert [has_state(request.content) for request in requests] == [True, keeps]
    assert b"Hello." in requests[1].content


async def test_clear_reasoning_goes_to_any_fallback() -> None:
    body = {
        "model": "m",
        "messages": [USER, {"role": "assistant", "content": "Hello.", "reasoning": "Hm."}, USER],
    }
    status, requests = await failed_over("chat", body, second={"profile": "vllm"})
    assert status == 200
    assert [b"Hm." in request.content for request in requests] == [True, True]
