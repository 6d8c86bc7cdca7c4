"""Test that upstream hears its own names of models, and clients theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.pipeline.renaming import RenamingApp
from tests.support.asgi import Call, call
from tests.support.deployments import Form, build_app, form
from tests.support.messages_checker import check_messages
from tests.support.streams import (
    THOUGHT,
    chat_stream,
    completion,
    frame,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

__all__ = ["form"]

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
PREFIXES = {"mounted": "", "sidecar": "", "embedded": "/llm"}
OUTPUT = [reasoning_item(0, THOUGHT), message_item(1, "Hello.")]
UPSTREAM = {"base_url": "http://upstream.test/v1", "rename": {"say-*": "up/{}"}}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "up/m",
    "content": [{"type": "text", "text": 'Hello. "model":"up/m"'}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
MESSAGE_EVENTS = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": 'Hello. "model":"up/m"'},
    },
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 1},
    },
    {"type": "message_stop"},
]


GEMINI = {
    "candidates": [{"content": {"parts": [{"text": "Hello."}]}, "finishReason": "STOP"}],
    "modelVersion": "up/m",
    "responseId": "r1",
}


def answer_of(api: str, *, stream: bool) -> Answer:
    if api == "messages":
        frames = [frame(event, event["type"]) for event in MESSAGE_EVENTS]
        return Answer(frames) if stream else Answer.json(MESSAGE)
    if api == "chat":
        whole = completion({"reasoning_content": THOUGHT, "content": "Hello."}, model="up/m")
        frames = [data.replace(b"thinker-1", b"up/m") for data in chat_stream(THOUGHT, "Hello.")]
    else:
        whole = response(OUTPUT, model="up/m")
        frames = responses_stream(OUTPUT, model="up/m")
    return Answer(frames) if stream else Answer.json(whole)


def body_of(api: str, **more: Any) -> dict[str, Any]:
    conversation = {
        "input" if api == "responses" else "messages": [{"role": "user", "content": "Hi"}]
    }
    return {
        "model": "say-m",
        **conversation,
        **({"max_tokens": 9} if api == "messages" else {}),
        **more,
    }


def models_in(answer: Call) -> set[Any]:
    """Return the models that an answer names, in each of its events."""
    events = (
        [answer.json]
        if answer.data.startswith(b"{")
        else [
            json.loads(line[5:])
            for line in answer.data.splitlines()
            if line.startswith(b"data:") and line != b"data: [DONE]"
        ]
    )
    holders = [event.get("response") or event.get("message") or event for event in events]
    return {holder["model"] for holder in holders if "model" in holder}


@pytest.mark.parametrize("api", list(PATHS))
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("summary", ["auto", "off"])
async def test_upstream_hears_its_name_and_the_client_its_own(
    form: Form, api: str, summary: str, *, stream: bool
) -> None:
    upstream = Upstream(answer_of(api, stream=stream))
    app = build_app(form, upstream, writer=Scripted(), upstreams=[UPSTREAM])
    answer = await call(
        app,
        PREFIXES[form] + PATHS[api],
        body_of(api, stream=stream),
        {"x-abridge-summary": summary},
    )
    assert answer.status == 200
    assert upstream.requests[0].json["model"] == "up/m"
    assert models_in(answer) == {"say-m"}
    if api == "messages" and stream:
        check_messages(answer.data)
    if api == "messages":
        assert b'Hello. \\"model\\":\\"up/m\\"' in answer.data


@pytest.mark.parametrize("api", list(PATHS))
@pytest.mark.parametrize("upstream_api", list(PATHS))
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_translated_answer_has_the_clients_name(
    api: str, upstream_api: str, *, stream: bool
) -> None:
    upstream = Upstream(answer_of(upstream_api, stream=stream))
    app = build_app(
        "sidecar", upstream, writer=Scripted(), upstreams=[{**UPSTREAM, "api": upstream_api}]
    )
    answer = await call(app, PATHS[api], body_of(api, stream=stream))
    assert upstream.requests[0].json["model"] == "up/m"
    assert models_in(answer) == {"say-m"}


@pytest.mark.parametrize("api", list(PATHS))
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_an_api_with_the_model_in_the_path_has_upstreams_name_there(
    api: str, *, stream: bool
) -> None:
    whole = {**GEMINI, "modelVersion": "up-m"}
    upstream = Upstream(Answer([frame(whole)]) if stream else Answer.json(whole))
    entry = {**UPSTREAM, "rename": {"say-*": "up-{}"}, "api": "gemini"}
    app = build_app("sidecar", upstream, upstreams=[entry])
    answer = await call(app, PATHS[api], body_of(api, stream=stream))
    assert "/models/up-m:" in upstream.requests[0].path
    assert models_in(answer) == {"say-m"}


async def test_fallback_models_are_renamed_and_the_one_that_answers_is_named_back() -> None:
    upstream = Upstream(Answer.json(completion({"content": "Hello."}, model="up/b")))
    app = build_app("mounted", upstream, upstreams=[{"rename": UPSTREAM["rename"]}])
    body = body_of("chat", models=["say-b", "other", 1])
    answer = await call(app, PATHS["chat"], body)
    assert upstream.requests[0].json["models"] == ["up/b", "other", 1]
    assert answer.json["model"] == "say-b"


@pytest.mark.parametrize("api", list(PATHS))
async def test_a_model_without_a_rule_passes_byte_for_byte(api: str) -> None:
    sent = answer_of(api, stream=True)
    upstream = Upstream(Answer(list(sent.steps), headers=dict(sent.headers)))
    app = build_app("mounted", upstream, upstreams=[{"rename": {"other": "up/m"}}])
    body = json.dumps({**body_of(api), "model": "up/m", "stream": True}, indent=1).encode()
    answer = await call(app, PATHS[api], body)
    assert upstream.requests[0].body == body
    assert answer.data == b"".join(step for step in sent.steps if isinstance(step, bytes))


async def renamed(pieces: list[bytes], *, limit: int = 1000, **headers: str) -> Call:
    given = {"content-type": "text/event-stream", "content-length": "5", "etag": "x", **headers}
    upstream = Upstream(Answer(pieces, headers=given))
    return await call(RenamingApp(upstream, {"up": "c"}, limit), "/", b"")


EVENT = b'data: {"model":"up","x":1}\n\n'


@pytest.mark.parametrize("size", [1, 3, 20, 100])
@pytest.mark.parametrize("newline", [b"\n", b"\r", b"\r\n"])
async def test_a_name_is_replaced_however_its_bytes_are_split(size: int, newline: bytes) -> None:
    data = (EVENT * 3 + b": comment\n\ndata: [DONE]").replace(b"\n", newline)
    answer = await renamed([data[at : at + size] for at in range(0, len(data), size)])
    assert answer.data == data.replace(b"up", b"c")
    assert not {"content-length", "etag"} & answer.headers.keys()


async def test_a_line_goes_on_as_soon_as_it_is_whole() -> None:
    answer = await renamed([EVENT + b"data: {", b"}\n\n"])
    bodies = [message["body"] for message in answer.sent[1:]]
    assert bodies[:2] == [EVENT.replace(b"up", b"c"), b"data: {}\n\n"]


async def test_what_is_longer_than_an_event_may_be_passes_as_it_is() -> None:
    long = b'data: {"model":"up","x":"' + 100 * b"x" + b'"}\n\n'
    answer = await renamed([long[:50], long[50:] + EVENT, EVENT], limit=99)
    assert answer.data == long + EVENT + EVENT.replace(b"up", b"c")
    whole = b'{"model":"up","x":"' + 100 * b"x" + b'"}'
    answer = await renamed(
        [whole[:50], whole[50:]], limit=99, **{"content-type": "application/json"}
    )
    assert answer.data == whole


@pytest.mark.parametrize("headers", [{"content-encoding": "gzip"}, {"content-type": "text/plain"}])
async def test_what_is_encoded_or_no_json_passes_as_it_is(headers: dict[str, str]) -> None:
    answer = await renamed([EVENT], **headers)
    assert (answer.data, answer.headers["etag"]) == (EVENT, "x")


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/completions"])
async def test_other_endpoints_hear_upstreams_name(form: Form, path: str) -> None:
    whole = Answer.json({"model": "up/m", "data": [{"model": "up/m"}]})
    upstream = Upstream(whole)
    app = build_app(form, upstream, upstreams=[UPSTREAM])
    body = b'{ "input": {"model": "say-m"}, "model": "say-m" }'
    answer = await call(app, PREFIXES[form] + path, body, {"accept-encoding": "gzip"})
    (request,) = upstream.requests
    assert request.body == b'{ "input": {"model": "say-m"}, "model": "up/m" }'
    assert request.header("content-length") == str(len(request.body))
    assert request.header("accept-encoding") in (None, "identity")
    assert answer.json == {"model": "say-m", "data": [{"model": "up/m"}]}


async def test_other_requests_pass_byte_for_byte() -> None:
    upstream = Upstream(Answer.json({"model": "up/m"}))
    app = build_app("mounted", upstream, upstreams=[{"rename": UPSTREAM["rename"]}])
    for body in (b'{ "model": "up/m" }', b'{"model": 1}', b"[]", b"no JSON"):
        answer = await call(app, "/v1/embeddings", body)
        assert (upstream.requests[-1].body, answer.json) == (body, {"model": "up/m"})


@pytest.mark.parametrize("headers", [{}, {"anthropic-version": "2023-06-01"}])
async def test_a_model_is_described_under_the_clients_name(
    form: Form, headers: dict[str, str]
) -> None:
    upstream = Upstream(Answer.json({"id": "up/m", "object": "model"}))
    app = build_app(form, upstream, upstreams=[UPSTREAM])
    path = PREFIXES[form] + "/v1/models/say-m"
    answer = await call(app, path, b"", headers, method="GET")
    assert upstream.requests[0].path == "/v1/models/up/m"
    assert answer.json["id"] == "say-m"


@pytest.mark.parametrize("name", ["x-../../files/f", "x-..", "x-./f", "x-%2e%2e/f", "x-a/../b"])
async def test_no_name_leads_to_another_path(name: str) -> None:
    upstream = Upstream(Answer.json({"id": "f"}))
    app = build_app("mounted", upstream, upstreams=[{"rename": {"x-*": "{}"}}])
    await call(app, f"/v1/models/{name}", b"", method="GET")
    assert upstream.requests[0].path == f"/v1/models/{name}"


async def test_a_list_has_each_model_once_under_the_clients_names() -> None:
    models = [{"id": "up/a", "x": 1}, {"id": "say-a"}, {"id": "b"}, {"id": "b"}]
    app = build_app("sidecar", Upstream(Answer.json({"data": models})), upstreams=[UPSTREAM])
    answer = await call(app, "/v1/models", b"", method="GET")
    assert answer.json["data"] == [{"id": "say-a", "x": 1}, {"id": "b"}]


@pytest.mark.parametrize("upstream_api", ["chat", "responses"])
async def test_a_summary_by_the_same_model_is_asked_for_by_upstreams_name(
    upstream_api: str,
) -> None:
    """The summarizer's call takes the client's way where upstream speaks another API."""
    upstream = Upstream(answer_of(upstream_api, stream=False))
    app = build_app(
        "sidecar",
        upstream,
        upstreams=[{**UPSTREAM, "api": upstream_api, "rename": {"*": "up/{}"}}],
        summarizer={"kind": "upstream"},
    )
    answer = await call(
        app, PATHS["chat"], {**body_of("chat"), "model": "m", "reasoning": {"summary": "auto"}}
    )
    assert {request.json["model"] for request in upstream.requests} == {"up/m"}
    assert len(upstream.requests) > 1
    assert b"up/m" not in answer.data
