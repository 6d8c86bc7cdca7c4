"""Answers that are not read: nothing of upstream's text gets out where reasoning is hidden."""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

import pytest

from tests.end_to_end.translation.test_translation import BOTH, KEY, bridge
from tests.end_to_end.translation.turn import (
    ALL_UPSTREAMS,
    CLIENTS,
    PATHS,
    answer,
    request_body,
)
from tests.support import messages_checker, openapi
from tests.support.asgi import Call, call
from tests.support.deployments import FORMS, PREFIX, Form
from tests.support.matrix import each_in_turn
from tests.support.nesting import nested_json
from tests.support.streams import completion
from tests.support.upstream import Answer, Upstream

RAW = "odd numbers"
JSON = {"content-type": "application/json"}
ANSWERED = completion({"content": "So.", "reasoning": RAW})
EACH_CLIENT = pytest.mark.parametrize("client", CLIENTS)
EACH_UPSTREAM = pytest.mark.parametrize("upstream", ALL_UPSTREAMS)


async def ask(
    client: str, upstream: str, *answers: Answer, form: Form = "sidecar", stream: bool = False
) -> Call:
    app = bridge(Upstream(*answers), upstream, form, expose="summary")
    body = request_body(client, stream=stream)
    return await call(app, PREFIX[form] + PATHS[client], body, KEY)


def check_hidden(received: Call) -> None:
    assert RAW.encode() not in received.data + json.dumps(received.headers).encode()


def check_error(received: Call, status: int) -> dict[str, Any]:
    """Assert that this is an error without anything that upstream said; return it."""
    assert received.status == status
    check_hidden(received)
    assert received.headers["content-type"] == "application/json"
    assert received.headers["content-length"] == str(len(received.data))
    openapi.check("ErrorResponse", received.json)
    error: dict[str, Any] = received.json["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error


ERRORS: dict[str, Answer] = {
    "message": Answer.json({"error": {"message": RAW, "type": RAW, "code": RAW}}, 500),
    "generation": Answer.json({"error": {"message": RAW, "failed_generation": RAW}}, 400),
    "answer": Answer.json({**ANSWERED, "error": {"message": "No."}}, 500),
    "answer beside": Answer.json({**ANSWERED, "error": {"message": RAW}}, 400),
    "answer inside": Answer.json({"error": {"message": "No.", "response": ANSWERED}}, 502),
    "answer alone": Answer.json(ANSWERED, 500),
    "detail": Answer.json({"detail": RAW}, 502),
    "object": Answer.json({"detail": {"thought": RAW}}, 422),
    "text": Answer([RAW.encode()], 503, {"content-type": "text/plain"}),
    "refusing text": Answer([RAW.encode()], 400, {"content-type": "text/plain"}),
    "stream": Answer([f"data: {RAW}\n\n".encode()], 500),
    "thinking": Answer.json({"error": {"message": f"<think>{RAW}</think>"}}, 400),
    "nested": Answer([nested_json({"error": {"x": "nested here", "message": RAW}}, 600)], 500),
    "answer and nested": Answer([nested_json({**ANSWERED, "error": "nested here"}, 600)], 400),
    "wrongly packed": Answer([RAW.encode()], 429, {**JSON, "content-encoding": "gzip"}),
    "unknown encoding": Answer([RAW.encode()], 429, {**JSON, "content-encoding": "br"}),
    "header": Answer([b"{}"], 401, {**JSON, "x-said": RAW, "www-authenticate": RAW}),
}


TOO_LONG = "This model's maximum context length is 8192 tokens. 你好 requested 9000 tokens."
REFUSALS: dict[str, Answer] = {
    "OpenAI": Answer.json({"error": {"message": TOO_LONG, "code": "context_length_exceeded"}}, 400),
    "Anthropic": Answer.json(
        {"type": "error", "error": {"type": "invalid_request_error", "message": TOO_LONG}}, 400
    ),
    "Google": Answer.json({"error": {"code": 400, "message": TOO_LONG, "status": "X"}}, 400),
    "a text": Answer.json({"error": TOO_LONG}, 413),
    "vLLM once": Answer.json({"object": "error", "message": TOO_LONG, "code": 40303}, 400),
    "FastAPI": Answer.json({"detail": TOO_LONG}, 422),
    "packed": Answer(
        [gzip.compress(json.dumps({"error": {"message": TOO_LONG}}).encode())],
        429,
        {**JSON, "content-encoding": "gzip"},
    ),
}


OTHERS: dict[str, Answer] = {
    "redirect": Answer([RAW.encode()], 307, {"location": f"/{RAW}", "content-type": "text/html"}),
    "json redirect": Answer.json(ANSWERED, 302),
    "not modified": Answer([RAW.encode()], 304, {}),
    "no content": Answer([RAW.encode()], 204, {}),
    "json without content": Answer.json(ANSWERED, 204),
    "text": Answer([RAW.encode()], 200, {"content-type": "text/plain"}),
    "cut": Answer([b'{"reasoning": "', RAW.encode()], 200, JSON),
    "untyped": Answer([RAW.encode()], 200, {}),
    "unknown encoding": Answer([RAW.encode()], 200, {**JSON, "content-encoding": "br"}),
    "encoded stream": Answer([RAW.encode()], 200, {**JSON, "content-encoding": "zstd"}),
    "wrongly packed": Answer([RAW.encode()], 200, {**JSON, "content-encoding": "gzip"}),
}


OWN_WORDS = ".*pstream.*"
TOLD = {
    **{f"error {name}": (played, played.status, OWN_WORDS) for name, played in ERRORS.items()},
    **{
        f"refusal {name}": (played, played.status, re.escape(TOO_LONG))
        for name, played in REFUSALS.items()
    },
    **{f"other {name}": (played, 502, OWN_WORDS) for name, played in OTHERS.items()},
}
"""What upstream answers; the status and what words a client is told. A refusal keeps its words, as
clients shorten a conversation by what they say."""


@BOTH
@EACH_UPSTREAM
@EACH_CLIENT
async def test_an_error_is_told_in_abridges_own_words_and_a_refusal_in_upstreams(
    client: str, upstream: str, *, stream: bool
) -> None:
    turn = ALL_UPSTREAMS.index(upstream) + 2 * CLIENTS.index(client) + stream
    for name, (played, status, words) in each_in_turn(TOLD.items(), turn, 4):
        received = await ask(client, upstream, played, stream=stream)
        error = check_error(received, status)
        assert re.fullmatch(words, error["message"]), name
        assert error["code"] == "upstream_error" or not name.startswith("other")
        assert "location" not in received.headers, name


@BOTH
@EACH_UPSTREAM
async def test_a_client_of_messages_is_told_neither(upstream: str, *, stream: bool) -> None:
    errors = [name for name in TOLD if not name.startswith("refusal")]
    for name in each_in_turn(errors, ALL_UPSTREAMS.index(upstream) + stream, 2):
        received = await ask("messages", upstream, TOLD[name][0], stream=stream)
        check_hidden(received)
        assert received.status >= 400, name
        assert "pstream" in messages_checker.check_error(received.json)["message"], name


@EACH_CLIENT
@pytest.mark.parametrize("form", FORMS)
async def test_an_error_keeps_its_status_code_and_rate_limits(form: Form, client: str) -> None:
    error = {"message": "Slow", "type": "rate_limit_error", "param": "input", "code": "too_fast"}
    limits = {"retry-after": "3", "x-ratelimit-remaining-requests": "0"}
    played = Answer.json({"error": error}, 429, **limits)
    received = await ask(client, client, played, form=form)
    told = check_error(received, 429)
    assert told == error
    assert limits.items() <= received.headers.items()


async def test_an_error_of_another_api_keeps_what_its_type_means() -> None:
    error = {"type": "rate_limit_error", "message": "Slow", "x": RAW}
    received = await ask("chat", "messages", Answer.json({"type": "error", "error": error}, 429))
    assert check_error(received, 429)["code"] == "rate_limit_exceeded"


@EACH_CLIENT
@pytest.mark.parametrize("name", ["redirect", "no content"])
async def test_where_nothing_is_hidden_they_pass(name: str, client: str) -> None:
    app = bridge(Upstream(OTHERS[name]), client, expose="both")
    received = await call(app, PATHS[client], request_body(client, stream=False), KEY)
    assert (received.status, received.data) == (OTHERS[name].status, RAW.encode())


@BOTH
@EACH_CLIENT
@pytest.mark.parametrize("code", ["model_not_found", None])
async def test_an_error_met_while_the_api_is_found_out_is_told_likewise(
    code: str | None, client: str, *, stream: bool
) -> None:
    missing = Answer.json({"error": {"message": "No.", "code": code}, "x": RAW}, 404)
    received = await ask(client, "auto", missing, missing, missing, stream=stream)
    assert check_error(received, 404)["code"] == code


async def test_an_error_of_another_api_is_translated_where_nothing_is_hidden() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Busy."}}
    app = bridge(Upstream(Answer.json(error, 529)), "messages", expose="both")
    received = await call(app, PATHS["chat"], request_body("chat", stream=False), KEY)
    assert received.json["error"]["message"] == "Busy."


@BOTH
async def test_an_answer_that_can_be_read_is_none_of_these(*, stream: bool) -> None:
    assert (await ask("chat", "chat", answer("chat", stream=stream), stream=stream)).status == 200
