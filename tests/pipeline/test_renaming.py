"""Test that upstream hears its own names of models, and clients theirs."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from abridge.pipeline.renaming import RenamingApp
from tests.end_to_end.translation.turn import PATHS, answer, read_answer
from tests.support.asgi import Call, call
from tests.support.deployments import PREFIX, Form, build_app, form
from tests.support.streams import completion
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

__all__ = ["form"]

UPSTREAM = {"base_url": "http://upstream.test/v1", "rename": {"say-*": "up/{}"}}
TEXT = 'Hello. "model":"up/m"'
EACH = pytest.mark.parametrize("api", PATHS)
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def answer_of(api: str, *, stream: bool, model: str = "up/m") -> Answer:
    """Return an answer of this model."""
    sent = answer(api, stream=stream, text=TEXT)
    steps = [step for step in sent.steps if isinstance(step, bytes)]
    named = [
        re.sub(rb'("model(?:Version)?": )"[^"]*"', rb'\1"%b"' % model.encode(), step)
        for step in steps
    ]
    return Answer(named, headers=sent.headers)


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


def models_in(reply: Call) -> set[Any]:
    """Return the models that an answer names, in each of its events."""
    events = (
        [reply.json]
        if reply.data.startswith(b"{")
        else [
            json.loads(line[5:])
            for line in reply.data.splitlines()
            if line.startswith(b"data:") and line != b"data: [DONE]"
        ]
    )
    holders = [event.get("response") or event.get("message") or event for event in events]
    return {holder["model"] for holder in holders if "model" in holder}


@EACH
@BOTH
@pytest.mark.parametrize("summary", ["auto", "off"])
async def test_upstream_hears_its_name_and_the_client_its_own(
    form: Form, api: str, summary: str, *, stream: bool
) -> None:
    upstream = Upstream(answer_of(api, stream=stream))
    app = build_app(form, upstream, writer=Scripted(), upstreams=[UPSTREAM])
    reply = await call(
        app,
        PREFIX[form] + PATHS[api],
        body_of(api, stream=stream),
        {"x-abridge-summary": summary},
    )
    assert reply.status == 200
    assert upstream.requests[0].json["model"] == "up/m"
    assert models_in(reply) == {"say-m"}
    assert read_answer(api, reply, stream=stream).text == TEXT


@EACH
@pytest.mark.parametrize("upstream_api", PATHS)
@BOTH
async def test_a_translated_answer_has_the_clients_name(
    api: str, upstream_api: str, *, stream: bool
) -> None:
    upstream = Upstream(answer_of(upstream_api, stream=stream))
    app = build_app(
        "sidecar", upstream, writer=Scripted(), upstreams=[{**UPSTREAM, "api": upstream_api}]
    )
    reply = await call(app, PATHS[api], body_of(api, stream=stream))
    assert upstream.requests[0].json["model"] == "up/m"
    assert models_in(reply) == {"say-m"}


@EACH
@BOTH
async def test_an_api_with_the_model_in_the_path_has_upstreams_name_there(
    api: str, *, stream: bool
) -> None:
    upstream = Upstream(answer_of("gemini", stream=stream, model="up-m"))
    entry = {**UPSTREAM, "rename": {"say-*": "up-{}"}, "api": "gemini"}
    app = build_app("sidecar", upstream, upstreams=[entry])
    reply = await call(app, PATHS[api], body_of(api, stream=stream))
    assert "/models/up-m:" in upstream.requests[0].path
    assert models_in(reply) == {"say-m"}


async def test_fallback_models_are_renamed_and_the_one_that_answers_is_named_back() -> None:
    upstream = Upstream(Answer.json(completion({"content": "Hello."}, model="up/b")))
    app = build_app("mounted", upstream, upstreams=[{"rename": UPSTREAM["rename"]}])
    body = body_of("chat", models=["say-b", "other", 1])
    reply = await call(app, PATHS["chat"], body)
    assert upstream.requests[0].json["models"] == ["up/b", "other", 1]
    assert reply.json["model"] == "say-b"


@EACH
async def test_a_model_without_a_rule_passes_byte_for_byte(api: str) -> None:
    sent = answer_of(api, stream=True)
    upstream = Upstream(Answer(list(sent.steps), headers=dict(sent.headers)))
    app = build_app("mounted", upstream, upstreams=[{"rename": {"other": "up/m"}}])
    body = json.dumps({**body_of(api), "model": "up/m", "stream": True}, indent=1).encode()
    reply = await call(app, PATHS[api], body)
    assert upstream.requests[0].body == body
    assert reply.data == b"".join(step for step in sent.steps if isinstance(step, bytes))


async def renamed(pieces: list[bytes], *, limit: int = 1000, **headers: str) -> Call:
    given = {"content-type": "text/event-stream", "content-length": "5", "etag": "x", **headers}
    upstream = Upstream(Answer(pieces, headers=given))
    return await call(RenamingApp(upstream, {"up": "c"}, limit), "/", b"")


EVENT = b'data: {"model":"up","x":1}\n\n'


@pytest.mark.parametrize("size", [1, 3, 20, 100])
@pytest.mark.parametrize("newline", [b"\n", b"\r", b"\r\n"])
async def test_a_name_is_replaced_however_its_bytes_are_split(size: int, newline: bytes) -> None:
    data = (EVENT * 3 + b": comment\n\ndata: [DONE]").replace(b"\n", newline)
    reply = await renamed([data[at : at + size] for at in range(0, len(data), size)])
    assert reply.data == data.replace(b"up", b"c")
    assert not {"content-length", "etag"} & reply.headers.keys()


async def test_a_line_goes_on_as_soon_as_it_is_whole() -> None:
    reply = await renamed([EVENT + b"data: {", b"}\n\n"])
    bodies = [message["body"] for message in reply.sent[1:]]
    assert bodies[:2] == [EVENT.replace(b"up", b"c"), b"data: {}\n\n"]


async def test_what_is_longer_than_an_event_may_be_passes_as_it_is() -> None:
    long = b'data: {"model":"up","x":"' + 100 * b"x" + b'"}\n\n'
    reply = await renamed([long[:50], long[50:] + EVENT, EVENT], limit=99)
    assert reply.data == long + EVENT + EVENT.replace(b"up", b"c")
    whole = b'{"model":"up","x":"' + 100 * b"x" + b'"}'
    reply = await renamed(
        [whole[:50], whole[50:]], limit=99, **{"content-type": "application/json"}
    )
    assert reply.data == whole


@pytest.mark.parametrize("kind", ["application/json", "text/plain", ""])
async def test_a_stream_of_another_type_is_renamed_as_it_comes(kind: str) -> None:
    sent = [EVENT[:3], EVENT[3:], EVENT, b"data: [DONE]\n\n"]
    reply = await renamed(sent, **{"content-type": kind})
    assert reply.data == (await renamed([b"".join(sent)])).data != b"".join(sent)
    assert len([message for message in reply.sent if message.get("body")]) == len(sent) - 1


@pytest.mark.parametrize("headers", [{"content-encoding": "gzip"}, {"content-type": "text/html"}])
async def test_what_is_encoded_or_no_json_passes_as_it_is(headers: dict[str, str]) -> None:
    reply = await renamed([EVENT], **headers)
    assert (reply.data, reply.headers["etag"]) == (EVENT, "x")


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/completions"])
async def test_other_endpoints_hear_upstreams_name(form: Form, path: str) -> None:
    whole = Answer.json({"model": "up/m", "data": [{"model": "up/m"}]})
    upstream = Upstream(whole)
    app = build_app(form, upstream, upstreams=[UPSTREAM])
    body = b'{ "input": {"model": "say-m"}, "model": "say-m" }'
    reply = await call(app, PREFIX[form] + path, body, {"accept-encoding": "gzip"})
    (request,) = upstream.requests
    assert request.body == b'{ "input": {"model": "say-m"}, "model": "up/m" }'
    assert request.header("content-length") == str(len(request.body))
    assert request.header("accept-encoding") in (None, "identity")
    assert reply.json == {"model": "say-m", "data": [{"model": "up/m"}]}


async def test_other_requests_pass_byte_for_byte() -> None:
    upstream = Upstream(Answer.json({"model": "up/m"}))
    app = build_app("mounted", upstream, upstreams=[{"rename": UPSTREAM["rename"]}])
    for body in (b'{ "model": "up/m" }', b'{"model": 1}', b"[]", b"no JSON"):
        reply = await call(app, "/v1/embeddings", body)
        assert (upstream.requests[-1].body, reply.json) == (body, {"model": "up/m"})


@pytest.mark.parametrize("headers", [{}, {"anthropic-version": "2023-06-01"}])
async def test_a_model_is_described_under_the_clients_name(
    form: Form, headers: dict[str, str]
) -> None:
    upstream = Upstream(Answer.json({"id": "up/m", "object": "model"}))
    app = build_app(form, upstream, upstreams=[UPSTREAM])
    path = PREFIX[form] + "/v1/models/say-m"
    reply = await call(app, path, b"", headers, method="GET")
    assert upstream.requests[0].path == "/v1/models/up/m"
    assert reply.json["id"] == "say-m"


@pytest.mark.parametrize("name", ["x-../../files/f", "x-..", "x-./f", "x-%2e%2e/f", "x-a/../b"])
async def test_no_name_leads_to_another_path(name: str) -> None:
    upstream = Upstream(Answer.json({"id": "f"}))
    app = build_app("mounted", upstream, upstreams=[{"rename": {"x-*": "{}"}}])
    await call(app, f"/v1/models/{name}", b"", method="GET")
    assert upstream.requests[0].path == f"/v1/models/{name}"


async def test_a_list_has_each_model_once_under_the_clients_names() -> None:
    models = [{"id": "up/a", "x": 1}, {"id": "say-a"}, {"id": "b"}, {"id": "b"}]
    app = build_app("sidecar", Upstream(Answer.json({"data": models})), upstreams=[UPSTREAM])
    reply = await call(app, "/v1/models", b"", method="GET")
    assert reply.json["data"] == [{"id": "say-a", "x": 1}, {"id": "b"}]


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
    reply = await call(
        app, PATHS["chat"], {**body_of("chat"), "model": "m", "reasoning": {"summary": "auto"}}
    )
    assert {request.json["model"] for request in upstream.requests} == {"up/m"}
    assert len(upstream.requests) > 1
    assert b'"up/m"' not in reply.data
