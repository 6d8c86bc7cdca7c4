"""Requests for the number of their tokens: who counts, and what is told."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from abridge.sidecar.app import create_app
from tests.support.asgi import Call, begin
from tests.support.deployments import FORMS, ORIGIN, PREFIX, Form, build_app, settings_for
from tests.support.messages_checker import check_error
from tests.support.upstream import Answer, Upstream

PATH = "/v1/messages/count_tokens"

REQUEST: dict[str, Any] = {
    "model": "m",
    "system": "Be brief.",
    "messages": [{"role": "user", "content": "x" * 400}],
}
ESTIMATE = 107  # 400/4 for the message, 9/4 for the system prompt, 4 for the message's frame

NOT_FOUND = Answer.json({"detail": "Not Found"}, 404)
COUNTED = Answer.json({"input_tokens": 12, "extra": "passes"})


async def count(
    upstream: Upstream,
    form: Form = "sidecar",
    body: Any = REQUEST,
    headers: dict[str, str] | None = None,
    path: str = PATH,
    **tables: Any,
) -> Call:
    if "upstreams" in tables and form != "mounted":
        tables["upstreams"] = [
            {"base_url": f"{ORIGIN}/v1", **entry} for entry in tables["upstreams"]
        ]
    app = build_app(form, upstream, **tables)
    return await begin(app, PREFIX[form] + path, body, headers=headers or {}).finish()


def assert_estimated(answer: Call, tokens: int = ESTIMATE) -> None:
    assert answer.status == 200
    assert answer.json == {"input_tokens": tokens, "estimate": True}
    assert answer.headers["x-abridge-estimate"] == "true"
    assert answer.headers["request-id"].startswith("req_")


@pytest.mark.parametrize("form", FORMS)
async def test_upstreams_own_count_passes_as_it_came(form: Form) -> None:
    upstream = Upstream(COUNTED)
    answer = await count(upstream, form)
    assert answer.json == {"input_tokens": 12, "extra": "passes"}
    assert "x-abridge-estimate" not in answer.headers
    (request,) = upstream.requests
    assert request.path.endswith(PATH)
    assert request.json == REQUEST


@pytest.mark.parametrize("form", FORMS)
async def test_an_upstream_without_the_endpoint_leaves_an_estimate(form: Form) -> None:
    assert_estimated(await count(Upstream(NOT_FOUND), form))


async def test_an_error_about_the_model_passes() -> None:
    error = {"type": "error", "error": {"type": "not_found_error", "message": "model: m"}}
    answer = await count(Upstream(Answer.json(error, 404)))
    assert (answer.status, answer.json) == (404, error)


async def test_an_upstream_that_cannot_be_reached_is_told_in_anthropics_shape() -> None:
    app = create_app(
        settings_for(upstreams=[{"base_url": "http://upstream.test/v1"}]),
        transport=httpx.MockTransport(refuse),
        registry=CollectorRegistry(),
    )
    answer = await begin(app, PATH, REQUEST).finish()
    assert (answer.status, answer.json["type"]) == (502, "error")


def refuse(_: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("no")


async def test_other_errors_pass() -> None:
    error = {"type": "error", "error": {"type": "authentication_error", "message": "no key"}}
    answer = await count(Upstream(Answer.json(error, 401)))
    assert (answer.status, answer.json) == (401, error)


async def test_where_reasoning_is_hidden_only_the_number_passes() -> None:
    hidden = {
        "reasoning": {"expose": "summary"},
        "summarizer": {"kind": "upstream"},
        "upstreams": [{"api": "messages"}],
    }
    answer = await count(Upstream(COUNTED), **hidden)
    assert answer.json == {"input_tokens": 12}
    leak = {"type": "error", "error": {"type": "api_error", "message": "SECRET thoughts"}}
    answer = await count(Upstream(Answer.json(leak, 500)), **hidden)
    assert answer.status == 500
    assert check_error(answer.json)["type"] == "api_error"
    assert answer.json["request_id"] == answer.headers["request-id"]
    assert b"SECRET" not in answer.data
    answer = await count(Upstream(Answer.json({"thinking": "SECRET"})), **hidden)
    assert b"SECRET" not in answer.data
    assert_estimated(answer)


async def test_a_path_that_another_server_reads_otherwise_shows_no_answer() -> None:
    """A server that resolves `..` would answer the conversation itself."""
    answer = await count(
        Upstream(Answer.json({"content": [{"type": "thinking", "thinking": "SECRET"}]})),
        path="/v1/messages/x/../count_tokens",
        reasoning={"expose": "none"},
    )
    assert b"SECRET" not in answer.data


async def test_the_profiles_server_counts_where_upstream_speaks_chat() -> None:
    upstream = Upstream(COUNTED)
    answer = await count(upstream, upstreams=[{"api": "chat", "profile": "llamacpp"}])
    assert answer.json == {"input_tokens": 12}
    assert [request.path for request in upstream.requests] == [PATH]


CONVERSATION: dict[str, Any] = {
    "model": "m",
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "Sky."}],
        },
    ],
    "tools": [{"name": "look", "input_schema": {"type": "object", "properties": {}}}],
}


@pytest.mark.parametrize("form", FORMS)
async def test_vllms_tokenizer_counts_the_translated_request(form: Form) -> None:
    upstream = Upstream(Answer.json({"count": 21, "max_model_len": 4096, "tokens": [1, 2]}))
    entry = {"api": "chat", "profile": "vllm"}
    answer = await count(upstream, form, body=CONVERSATION, upstreams=[entry])
    assert answer.json == {"input_tokens": 21}
    (request,) = upstream.requests
    assert request.path == f"{PREFIX[form] if form == 'mounted' else ''}/tokenize"
    roles = [message["role"] for message in request.json["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]
    assert request.json["tools"][0]["function"]["name"] == "look"
    assert set(request.json) == {"model", "messages", "tools", "add_generation_prompt"}


async def test_openais_endpoint_counts_the_translated_request() -> None:
    upstream = Upstream(Answer.json({"object": "response.input_tokens", "input_tokens": 22}))
    entry = {"api": "responses", "profile": "openai"}
    answer = await count(upstream, body=CONVERSATION, upstreams=[entry])
    assert answer.json == {"input_tokens": 22}
    (request,) = upstream.requests
    assert request.path == "/v1/responses/input_tokens"
    assert [item.get("role") for item in request.json["input"][:2]] == ["system", "user"]
    assert not {"store", "stream", "max_output_tokens", "include"} & set(request.json)


async def test_a_tokenizer_that_is_not_there_leaves_an_estimate() -> None:
    upstream = Upstream(NOT_FOUND)
    entry = {"api": "chat", "profile": "vllm"}
    assert_estimated(await count(upstream, upstreams=[entry]))
    assert [request.path for request in upstream.requests] == ["/tokenize"]


async def test_a_name_that_clients_say_is_upstreams_own_in_the_count() -> None:
    upstream = Upstream(COUNTED)
    await count(upstream, upstreams=[{"api": "messages", "rename": {"m": "their-m"}}])
    assert upstream.requests[0].json["model"] == "their-m"


async def test_what_abridge_put_into_the_history_is_not_counted() -> None:
    upstream = Upstream(COUNTED)
    thought = {"type": "thinking", "thinking": "x", "signature": "", "summary_error": {"code": "x"}}
    said = {"role": "assistant", "content": [thought, {"type": "text", "text": "Hi."}]}
    body = {**REQUEST, "messages": [*REQUEST["messages"], said, *REQUEST["messages"]]}
    assert (await count(upstream, body=body)).status == 200
    assert b"summary_error" not in upstream.requests[0].body


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_an_upstream_that_can_count_nothing_is_not_asked(api: str) -> None:
    upstream = Upstream(COUNTED)
    assert_estimated(await count(upstream, upstreams=[{"api": api}]))
    assert upstream.requests == []


async def test_a_broken_tokenizer_leaves_an_estimate() -> None:
    upstream = Upstream(Answer.json({"error": {"message": "out of order"}}, 500))
    assert_estimated(await count(upstream, upstreams=[{"api": "chat", "profile": "sglang"}]))


async def test_a_body_that_is_no_object_is_refused_in_anthropics_shape() -> None:
    answer = await count(Upstream(COUNTED), body=b"[]", upstreams=[{"api": "chat"}])
    assert answer.status == 400
    assert answer.json["error"]["type"] == "invalid_request_error"


async def test_the_limits_hold_for_a_request_to_count() -> None:
    many = {"model": "m", "messages": [{"role": "user", "content": "Hi"}] * 3}
    answer = await count(Upstream(COUNTED), body=many, limits={"items": 2})
    assert answer.status == 400
    assert answer.json["error"]["message"].startswith("Invalid 'messages'")


async def test_a_shared_key_opens_the_count_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPSTREAM_KEY", "sk-upstream")
    upstream = Upstream(COUNTED)
    shared = [{"api_key_env": "UPSTREAM_KEY", "profile": "anthropic", "api": "messages"}]
    assert (await count(upstream, upstreams=shared)).json["input_tokens"] == 12
    assert upstream.requests[0].header("x-api-key") == "sk-upstream"
    batches = await count(upstream, path="/v1/messages/batches", upstreams=shared)
    assert batches.status == 404


async def test_an_estimate_is_no_request_to_a_model() -> None:
    body = json.dumps(REQUEST).encode()
    answer = await count(Upstream(NOT_FOUND), body=body)
    assert_estimated(answer)


RESPONSES_PATH = "/v1/responses/input_tokens"
ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "input_text", "text": "x" * 400}]},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "y" * 400}]},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "z" * 40},
]


@pytest.mark.parametrize("form", FORMS)
async def test_upstreams_own_count_of_items_passes_as_it_came(form: Form) -> None:
    counted = {"object": "response.input_tokens", "input_tokens": 12, "extra": "passes"}
    upstream = Upstream(Answer.json(counted))
    answer = await count(upstream, form, {"model": "m", "input": ITEMS}, path=RESPONSES_PATH)
    assert answer.json == counted
    (request,) = upstream.requests
    assert request.path.endswith(RESPONSES_PATH)
    assert request.json["input"] == ITEMS


async def test_the_items_of_a_request_are_counted_by_the_servers_tokenizer() -> None:
    upstream = Upstream(Answer.json({"count": 34}))
    upstreams = [{"api": "chat", "profile": "vllm"}]
    body = {"model": "m", "input": "Hi"}
    answer = await count(upstream, body=body, path=RESPONSES_PATH, upstreams=upstreams)
    assert answer.json == {"object": "response.input_tokens", "input_tokens": 34}
    (request,) = upstream.requests
    assert request.json["messages"] == [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    ("request_input", "tokens"), [("x" * 400, 4 + 100), (ITEMS, 4 * 4 + 100 + 10 + 4)]
)
async def test_what_nobody_counts_is_estimated_for_responses(
    request_input: Any, tokens: int
) -> None:
    body = {"model": "m", "input": request_input}
    answer = await count(Upstream(NOT_FOUND), body=body, path=RESPONSES_PATH)
    kind = "response.input_tokens"
    assert answer.json == {"object": kind, "input_tokens": tokens, "estimate": True}
    assert answer.headers["x-abridge-estimate"] == "true"
