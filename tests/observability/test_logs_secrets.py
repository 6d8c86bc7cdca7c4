"""Test that secrets and prompts from clients, upstreams and summarizers reach no log, whatever
goes wrong."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from starlette.types import ASGIApp

from abridge.errors import AbridgeError, SummarizerError
from tests.support.asgi import call
from tests.support.deployments import build_app
from tests.support.log_watch import PLANTED, Watch
from tests.support.servers import serve
from tests.support.sidecar import sidecar
from tests.support.streams import (
    THOUGHT,
    chat_stream,
    completion,
    frame,
    message_item,
    reasoning_item,
    responses_stream,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

KEY = f"key-{PLANTED}"
HEADERS = {
    "authorization": KEY,
    "api-key": KEY,
    "x-api-key": KEY,
    "x-portkey-api-key": KEY,
    "x-portkey-custom-host": f"https://{PLANTED}.test",
    "helicone-auth": KEY,
    "helicone-target-url": f"https://{PLANTED}.test",
    "cf-aig-authorization": KEY,
    "cookie": KEY,
    "x-request-id": f"{PLANTED} is no id",
    "user-agent": KEY,
}
WORDS = f"My secret is {PLANTED}. {THOUGHT}"
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
SUMMARY = {"reasoning": {"summary": "auto"}}
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": WORDS}], "user": KEY},
    RESPONSES: {"input": WORDS, "metadata": {"key": KEY}},
}
STREAMS = {
    CHAT: chat_stream(WORDS, WORDS),
    RESPONSES: responses_stream([reasoning_item(1, WORDS), message_item(2, WORDS)]),
}


def answers(path: str) -> dict[str, Answer]:
    stream = STREAMS[path]
    error = {"error": {"message": WORDS, "type": KEY, "param": KEY, "code": KEY}}
    return {
        "good": Answer(stream),
        "cut": Answer(stream[:-4]),
        "broken off": Answer([*stream[:6], ValueError(WORDS)]),
        "an error": Answer.json(error, 400),
        "an error in the stream": Answer([*stream[:6], frame(error), frame("[DONE]")]),
        "html": Answer([WORDS.encode()], headers={"content-type": "text/html"}),
        "no json": Answer([WORDS.encode()], headers={"content-type": "application/json"}),
        "frames that are none": Answer([*stream[:6], f"data: {WORDS}\n\n".encode()]),
        "whole": Answer.json(completion({"content": WORDS, "reasoning": WORDS})),
        "nothing": Answer([]),
        "it fails": Answer([RuntimeError(WORDS)]),
    }


WRITERS: dict[str, Callable[[], Scripted]] = {
    "says it": lambda: Scripted(WORDS),
    "fails with it": lambda: Scripted("", error=ValueError(WORDS)),
    "fails in words": lambda: Scripted("", error=SummarizerError("upstream_error", "no")),
}


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture, watch: Watch) -> Iterable[pytest.LogCaptureFixture]:
    caplog.set_level(logging.DEBUG)
    before = len(watch.caught)
    yield caplog
    caught, watch.caught[before:] = watch.caught[before:], []
    assert not caught


@pytest.mark.parametrize("secret", [WORDS, KEY, "sk-1234", "Bearer x", "abr1.k.0123456789"])
def test_a_planted_secret_in_a_log_is_detected(watch: Watch, secret: str) -> None:
    before = len(watch.caught)
    logging.getLogger("abridge.anything").debug("it said %s", secret)
    caught, watch.caught[before:] = watch.caught[before:], []
    assert caught


@pytest.mark.parametrize("kind", answers(CHAT))
@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("mode", ["mounted", "sidecar"])
@pytest.mark.parametrize("sent_fields", [SUMMARY, {}], ids=["engaged", "untouched"])
async def test_no_secret_of_clients_and_upstreams_is_logged(
    logged: pytest.LogCaptureFixture, kind: str, path: str, mode: Any, sent_fields: dict[str, Any]
) -> None:
    registry, upstream = CollectorRegistry(), Upstream(answers(path)[kind])
    app = build_app(mode, upstream, writer=Scripted(), registry=registry)
    await send_request(
        app, path, {"model": "m", "stream": kind != "whole", **BODIES[path], **sent_fields}
    )
    assert any(record.name == "abridge.requests" for record in logged.records)
    assert PLANTED not in generate_latest(registry).decode()


@pytest.mark.parametrize("writer", WRITERS)
async def test_no_secret_of_summarizers_is_logged(
    logged: pytest.LogCaptureFixture, writer: str
) -> None:
    app = build_app("sidecar", Upstream(Answer(STREAMS[CHAT])), writer=WRITERS[writer]())
    await send_request(app, CHAT, {"model": "m", "stream": True, **BODIES[CHAT], **SUMMARY})
    assert logged.records


@pytest.mark.parametrize(
    "body",
    [
        WORDS.encode(),
        json.dumps({"model": "m", "reasoning": {"summary": WORDS}}).encode(),
        json.dumps({"model": "m", "messages": WORDS, "reasoning": WORDS}).encode(),
        json.dumps({"model": "m", "input": [{"encrypted_content": f"abr1.k.{KEY}"}]}).encode(),
    ],
    ids=["no json", "no style", "odd", "no blob"],
)
@pytest.mark.parametrize("path", STREAMS)
async def test_no_secret_of_a_refused_request_is_logged(
    logged: pytest.LogCaptureFixture, body: bytes, path: str
) -> None:
    app = build_app("sidecar", Upstream(), writer=Scripted(), reasoning={"expose": "summary"})
    await call(app, path, body, {**HEADERS, "x-abridge-usage": "separate"})
    assert logged.records


async def send_request(app: ASGIApp, path: str, body: dict[str, Any]) -> None:
    with suppress(AbridgeError, ValueError, RuntimeError, httpx.HTTPError):
        await call(app, path, body, HEADERS, query_string=f"key={KEY}".encode())


@pytest.mark.parametrize("form", ["text", "json"])
async def test_no_secret_is_logged_by_a_process(form: str) -> None:
    """Check a process's whole output at its end."""
    upstream = Upstream(*(Answer(STREAMS[CHAT]), *answers(CHAT).values()))
    flags = ("--log-format", form, "--log-requests", "--summary", "auto", "--profile", "vllm")
    async with (
        serve(upstream) as url,
        sidecar("--upstream", f"{url}/v1", *flags) as running,
        httpx.AsyncClient(base_url=running.url, trust_env=False) as client,
    ):
        for _ in range(1 + len(answers(CHAT))):
            body = {"model": "m", "stream": True, **BODIES[CHAT]}
            with suppress(httpx.HTTPError):
                await client.post(CHAT, params={"key": KEY}, headers=HEADERS, json=body)
        running.signal()
        assert await running.end() == 0
    lines = running.output.splitlines()
    assert sum("abridge.requests" in line for line in lines) == 1 + len(answers(CHAT))
    if form == "json":
        assert all(isinstance(json.loads(line), dict) for line in lines)
        assert not any(line.startswith(" ") for line in running.banner)  # as escaped in text
