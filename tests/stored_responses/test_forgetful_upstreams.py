"""Upstreams that speak Responses and store none: what continues from one is answered from here."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.types import ASGIApp

from tests.support.asgi import call
from tests.support.checker import check_responses
from tests.support.deployments import ORIGIN, build_app
from tests.support.streams import (
    THOUGHT,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

PATH = "/v1/responses"
KEY = {"authorization": "Bearer sk-anna-1234567890"}
OTHER = {"authorization": "Bearer sk-bert-1234567890"}
USER = {"role": "user", "content": "Hi"}
OUTPUT = [reasoning_item(0, THOUGHT), message_item(1, "So.")]
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


FORGETFUL = ("deepseek", "llamacpp", "ollama", "transformers")


def make(
    upstream: Upstream, profile: str = "llamacpp", api: str = "auto", **tables: Any
) -> ASGIApp:
    entry = {"base_url": f"{ORIGIN}/v1", "api": api, "profile": profile}
    return build_app("sidecar", upstream, writer=Scripted(), upstreams=[entry], **tables)


def forgetful(*, stream: bool) -> Upstream:
    first = Answer(responses_stream(OUTPUT)) if stream else Answer.json(response(OUTPUT))
    return Upstream(first, Answer.json(response([message_item(0, "Done.")])))


async def ask(app: ASGIApp, *, stream: bool = False, key: Any = KEY, **more: Any) -> Any:
    body = {"model": "m", "input": [USER], "stream": stream, **more}
    return await call(app, PATH, body, key)


def final_of(answer: Any, *, stream: bool) -> Any:
    return check_responses(answer.data).response if stream else answer.json


@BOTH
@pytest.mark.parametrize("api", ["auto", "responses"])
@pytest.mark.parametrize("summary", [{}, {"reasoning": {"summary": "auto"}}])
async def test_a_response_is_continued_from_what_is_stored_here(
    summary: dict[str, Any], api: str, *, stream: bool
) -> None:
    upstream = forgetful(stream=stream)
    app = make(upstream, api=api)
    first = final_of(await ask(app, stream=stream, **summary), stream=stream)
    answer = await ask(app, previous_response_id=first["id"], **summary)
    assert answer.status == 200
    sent = upstream.requests[1].json
    assert "previous_response_id" not in sent
    texts = [item.get("content") for item in sent["input"]]
    assert texts[0] == texts[-1] == "Hi"
    assert sent["input"][1]["content"] == OUTPUT[0]["content"]
    assert sent["input"][2]["content"][0]["text"] == "So."


@pytest.mark.parametrize("profile", FORGETFUL)
async def test_every_profile_that_stores_nothing_is_continued(profile: str) -> None:
    upstream = forgetful(stream=False)
    app = make(upstream, profile)
    first = (await ask(app)).json
    await ask(app, previous_response_id=first["id"])
    assert "previous_response_id" not in upstream.requests[1].json


async def test_another_tenants_response_is_not_found() -> None:
    upstream = forgetful(stream=False)
    app = make(upstream)
    first = (await ask(app)).json
    answer = await ask(app, key=OTHER, previous_response_id=first["id"])
    assert (answer.status, answer.json["error"]["code"]) == (400, "previous_response_not_found")
    assert len(upstream.requests) == 1


async def test_nothing_is_stored_that_is_not_to_be() -> None:
    app = make(forgetful(stream=False))
    first = (await ask(app, store=False)).json
    answer = await ask(app, previous_response_id=first["id"])
    assert answer.json["error"]["code"] == "previous_response_not_found"


async def test_other_apis_bodies_still_pass_unread() -> None:
    app = make(Upstream(Answer.json({})), limits={"items": 1})
    messages = {"model": "m", "messages": [USER, USER]}
    assert (await call(app, "/v1/chat/completions", messages, KEY)).status == 200


async def test_a_body_that_is_too_large_to_be_read_passes() -> None:
    upstream = forgetful(stream=False)
    app = make(upstream, limits={"body": 1000})
    assert (await ask(app, instructions="x" * 1000)).status == 200
    assert len(upstream.requests[0].body) > 1000


async def test_elsewhere_upstream_answers_for_what_it_stores() -> None:
    upstream = forgetful(stream=False)
    app = make(upstream, "vllm")
    first = (await ask(app)).json
    await ask(app, previous_response_id=first["id"])
    assert upstream.requests[1].json["previous_response_id"] == first["id"]


async def test_where_nothing_is_stored_the_error_names_the_setting() -> None:
    """The server would answer as if nothing had been said before."""
    app = make(forgetful(stream=False), "llamacpp", history={"store": "none"})
    first = (await ask(app)).json
    answer = await ask(app, previous_response_id=first["id"])
    assert (answer.status, answer.json["error"]["code"]) == (400, "previous_response_not_found")
    assert "history.store" in answer.json["error"]["message"]
