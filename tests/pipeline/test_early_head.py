"""Test streams that begin before upstream has answered, and the errors that are told in them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from starlette.types import ASGIApp

from abridge.pipeline.client import Client
from tests.end_to_end.translation.turn import (
    ALL_UPSTREAMS,
    TOOL,
    WORDS,
    answer,
    read_answer,
)
from tests.pipeline.test_renaming import PATHS, answer_of, body_of
from tests.support.asgi import Call, begin, call
from tests.support.checker import check_chat
from tests.support.deployments import build_app
from tests.support.messages_checker import CHECKS
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

KEEP_ALIVE = b": keep-alive\n\n"
SUMMARY = {"default": "auto", "early_head": 0.001}
APIS = pytest.mark.parametrize("client", list(PATHS))


def app_for(answering: Upstream, form: Any = "mounted", **tables: Any) -> ASGIApp:
    return build_app(form, answering, writer=Scripted(), **{"summary": SUMMARY, **tables})


async def answered_late(client: str, answer: Answer, **tables: Any) -> Call:
    """Have upstream answer once the client has been sent a keep-alive."""
    reached = asyncio.Event()
    upstream = Upstream(replace(answer, before=[reached]))
    asked = begin(app_for(upstream, **tables), PATHS[client], body_of(client, stream=True))
    await asked.until(KEEP_ALIVE)
    assert asked.status == 200
    assert asked.headers["content-type"] == "text/event-stream"
    reached.set()
    return await asked.finish()


def without_keep_alives(asked: Call) -> bytes:
    return asked.data.replace(KEEP_ALIVE, b"")


def told_error(client: str, asked: Call) -> dict[str, Any]:
    """Return the error that is all there is in a stream, in the form of the client's API."""
    (frame,) = without_keep_alives(asked).split(b"\n\n")[:-1]
    name, _, data = frame.rpartition(b"data: ")
    assert name == (b"" if client == "chat" else b"event: error\n")
    event: dict[str, Any] = json.loads(data)
    assert asked.complete
    if client == "responses":
        assert (event["type"], event["sequence_number"]) == ("error", 0)
        return event
    return dict(event["error"])


@APIS
@pytest.mark.parametrize("upstream", list(PATHS))
async def test_a_late_answer_follows_the_head_as_it_would_have_come(
    client: str, upstream: str
) -> None:
    tables = {"upstreams": [{"base_url": "http://upstream.test/v1", "api": upstream}]}
    answer = answer_of(upstream, stream=True)
    late = await answered_late(client, answer, form="sidecar", **tables)
    CHECKS[client](without_keep_alives(late))
    assert b"Hello" in late.data or b"Hi" in late.data


@APIS
async def test_an_answer_in_time_keeps_upstreams_headers(client: str) -> None:
    answer = replace(
        answer_of(client, stream=True),
        headers={"content-type": "text/event-stream", "x-ratelimit-remaining-requests": "7"},
    )
    app = app_for(Upstream(answer), summary={**SUMMARY, "early_head": 600})
    asked = await call(app, PATHS[client], body_of(client, stream=True))
    assert asked.headers["x-ratelimit-remaining-requests"] == "7"
    assert KEEP_ALIVE not in asked.data


@APIS
async def test_a_late_error_is_told_in_the_stream(client: str) -> None:
    body = {
        "error": {
            "message": "Slow down.",
            "type": "rate_limit_error",
            "param": None,
            "code": "rate",
        }
    }
    if client == "messages":
        body = {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}}
    late = await answered_late(client, Answer.json(body, 429, **{"retry-after": "3"}))
    error = told_error(client, late)
    assert error["message"] == "Slow down."
    assert (error["status"], error["retry_after"]) == (429, "3")
    assert error.get("code", "rate") == "rate"


@APIS
async def test_an_application_that_fails_late_ends_the_stream_with_an_error(client: str) -> None:
    reached = asyncio.Event()
    upstream = Upstream(Answer(before=[reached, RuntimeError("secret")]))
    asked = begin(app_for(upstream), PATHS[client], body_of(client, stream=True))
    await asked.until(KEEP_ALIVE)
    reached.set()
    with pytest.raises(RuntimeError):
        await asked.finish()
    assert told_error(client, asked)["status"] == 502
    assert b"secret" not in asked.data


@APIS
@pytest.mark.parametrize("calls", [False, True], ids=["text", "calls"])
@pytest.mark.parametrize("upstream", ALL_UPSTREAMS)
async def test_a_whole_answer_is_told_in_the_stream(
    client: str, upstream: str, *, calls: bool
) -> None:
    tables = {"upstreams": [{"base_url": "http://upstream.test/v1", "api": upstream}]}
    whole = answer(upstream, stream=False, calls=calls)
    body = json.loads(b"".join(whole.steps))
    spread = replace(whole, steps=[json.dumps(body, indent=1).encode()])
    late = await answered_late(client, spread, form="sidecar", **tables)
    late.sent[1:] = [{"type": "http.response.body", "body": without_keep_alives(late)}]
    read = read_answer(client, late, stream=True)
    assert read.text == WORDS
    assert [name for name, _ in read.calls] == ([TOOL] if calls else [])
    assert b"**Adding up**" in late.data


@APIS
async def test_a_whole_answer_that_is_an_error_is_told_as_one(client: str) -> None:
    error = {"type": "error", "error": {"type": "api_error", "message": "Out of order."}}
    late = await answered_late(client, Answer.json(error))
    assert b"Out of order." in late.data
    assert b"completed" not in late.data
    assert b"message_stop" not in late.data


@APIS
@pytest.mark.parametrize("upstream", ALL_UPSTREAMS)
@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"null", b"[1]", b'{"content":"Hi"}', b'{"error":{"message":"Out."}}'],
)
async def test_json_that_is_no_answer_of_its_api_is_no_empty_answer(
    client: str, upstream: str, body: bytes
) -> None:
    tables = {"upstreams": [{"base_url": "http://upstream.test/v1", "api": upstream}]}
    sent = Answer([body], headers={"content-type": "application/json"})
    late = await answered_late(client, sent, form="sidecar", **tables)
    assert (b"Out." if b"Out." in body else b"could not be read") in late.data
    assert not any(end in late.data for end in (b"[DONE]", b".completed", b"message_stop"))


@APIS
async def test_an_answer_that_is_neither_is_an_error(client: str) -> None:
    page = Answer([b"<p>Hi</p>"], headers={"content-type": "text/html"})
    assert told_error(client, await answered_late(client, page))["status"] == 502


async def test_keep_alives_go_on_until_upstream_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "KEEP_ALIVE_SECONDS", 0.001)
    reached = asyncio.Event()
    upstream = Upstream(replace(answer_of("chat", stream=True), before=[reached]))
    asked = begin(app_for(upstream), PATHS["chat"], body_of("chat", stream=True))
    await asked.until(KEEP_ALIVE, times=3)
    reached.set()
    await asked.finish()
    assert asked.data.startswith(3 * KEEP_ALIVE)
    check_chat(without_keep_alives(asked))


@pytest.mark.parametrize("stream", [True, False], ids=["unsummarized", "whole"])
async def test_no_head_is_sent_where_no_stream_is_rewritten(*, stream: bool) -> None:
    reached = asyncio.Event()
    upstream = Upstream(replace(answer_of("chat", stream=stream), before=[reached]))
    summary = {**SUMMARY, "default": "off"} if stream else SUMMARY
    asked = begin(app_for(upstream, summary=summary), PATHS["chat"], body_of("chat", stream=stream))
    await asyncio.sleep(0.05)
    assert not asked.sent
    reached.set()
    await asked.finish()
    assert KEEP_ALIVE not in asked.data


async def test_a_client_that_leaves_after_the_head_stops_upstream() -> None:
    upstream = Upstream(Answer(before=[asyncio.Event()]))
    asked = begin(app_for(upstream), PATHS["chat"], body_of("chat", stream=True))
    await asked.until(KEEP_ALIVE)
    asked.left.set()
    await asked.finish()
    assert upstream.left == 1


async def test_the_fallback_answers_behind_the_head() -> None:
    reached = asyncio.Event()
    busy = replace(Answer.json({"error": {"message": "busy"}}, 503), before=[reached])
    upstream = Upstream(busy, answer_of("chat", stream=True))
    upstreams = [
        {"name": "first", "base_url": "http://first.test/v1", "fallback": "second"},
        {"name": "second", "base_url": "http://second.test/v1"},
    ]
    app = app_for(upstream, "sidecar", upstreams=upstreams)
    asked = begin(app, PATHS["chat"], body_of("chat", stream=True))
    await asked.until(KEEP_ALIVE)
    reached.set()
    await asked.finish()
    assert len(upstream.requests) == 2
    check_chat(without_keep_alives(asked))
